"""Show a folder of pages in the browser, on loopback alone, until Ctrl-C."""

import sys
import webbrowser
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=sys.argv[1])) as server:
    address = f"http://127.0.0.1:{server.server_port}/"
    print(f"{address} (Ctrl-C ends it)")
    webbrowser.open(address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        print()
