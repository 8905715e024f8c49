"""A proxy on loopback as those in front of servers are: it cuts what is quiet too long, and reads when it likes."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

PIECE = 4096


@dataclass
class Proxy:
    """`idle_s` without a byte from the server end a connection; `pause_s` is how long it reads nothing in its midst."""

    port: int
    idle_s: float
    pause_s: float
    cut: int = 0

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def running_proxy(server_port: int, *, idle_s: float = 30, pause_s: float = 0) -> Iterator[Proxy]:
    """A proxy before the server, while the block runs. `cut` counts the connections that it ended."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = Proxy(listener.getsockname()[1], idle_s, pause_s)
        threading.Thread(target=_accept, args=(listener, server_port, proxy), daemon=True).start()
        yield proxy


def _accept(listener: socket.socket, server_port: int, proxy: Proxy) -> None:
    with suppress(OSError):  # the listener is closed at the end
        while True:
            client, _ = listener.accept()
            threading.Thread(target=_relay, args=(client, server_port, proxy), daemon=True).start()


def _relay(client: socket.socket, server_port: int, proxy: Proxy) -> None:
    with client, socket.create_connection(("127.0.0.1", server_port)) as server:
        threading.Thread(target=_copy, args=(client, server), daemon=True).start()
        server.settimeout(proxy.idle_s)
        with suppress(ConnectionError):
            try:
                paused = False
                while piece := server.recv(PIECE):
                    client.sendall(piece)
                    if not paused:
                        paused = True
                        time.sleep(proxy.pause_s)
            except TimeoutError:
                proxy.cut += 1


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(PIECE):
            target.sendall(piece)
