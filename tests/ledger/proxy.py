"""A wire between client and server that is cut right after the client has said a certain word."""

import contextlib
import socket
import threading

__all__ = ["CutWire"]


class CutWire:
    """Forwards to a port on loopback; once armed and `word` forwarded, the client hears nothing more."""

    def __init__(self, port, word):
        self.word, self.target, self.armed = word, port, False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
                cut = threading.Event()
                threading.Thread(target=self._forward, args=(client, server, cut), daemon=True).start()
                threading.Thread(target=self._back, args=(server, client, cut), daemon=True).start()

    def _forward(self, client, server, cut):
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if self.armed and self.word in data:
                    cut.set()
                server.sendall(data)
                if cut.is_set():
                    client.shutdown(socket.SHUT_RDWR)
                    return

    def _back(self, server, client, cut):
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if not cut.is_set():
                    client.sendall(data)

    def close(self):
        self.listener.close()
