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
        self.ends, self.threads = [], []
        self._start(self._accept)

    def _start(self, work, *args):
        thread = threading.Thread(target=work, args=args, daemon=True)
        self.threads.append(thread)
        thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                self.ends.append(client)
                server = socket.create_connection(("127.0.0.1", self.target))
                self.ends.append(server)
                cut = threading.Event()
                self._start(self._forward, client, server, cut)
                self._start(self._back, server, client, cut)

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
        """End the wire: a socket that is left to the garbage collector complains in some later test."""
        for end in (self.listener, *self.ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in list(self.threads):
            thread.join(timeout=10)
        for end in (self.listener, *self.ends):
            end.close()
