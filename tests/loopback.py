"""A real HTTP server on the loopback that answers, and misbehaves, as a test tells it to."""

from __future__ import annotations

import json
import socketserver
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

CLOSE, HANG = "close", "hang"
# Of the number of the request (from 0) and its body: what to reply as JSON, (status, headers, bytes), CLOSE or HANG.
Answer = Callable[[int, Any], Any]


def letters(text: str) -> list[float]:
    """Two scores from the letters of a text; anyone can work them out."""
    good, bad = (sum(map(text.count, some)) for some in ("ace", "bdf"))
    return [(1 + bad) / (2 + good + bad), (1 + good) / (2 + good + bad)]


def scores(number: int, body: Any) -> Any:
    return {"results": [{"scores": letters(text)} for text in body["inputs"]]}


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, answer: Answer, certificate: Path | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.answer, self.lock, self.over = answer, threading.Lock(), threading.Event()
        self.bodies: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.answered: Counter[str] = Counter()  # texts in replies that were good
        scheme = "https" if certificate else "http"
        self.url = f"{scheme}://127.0.0.1:{self.server_address[1]}/classify"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news here."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server = self.server
        with server.lock:
            number = len(server.bodies)
            server.bodies.append(body)
            server.headers.append(dict(self.headers))
        reply = server.answer(number, body)
        if reply == HANG:
            server.over.wait(20)
        if reply in (HANG, CLOSE):
            self.close_connection = True
            return
        status, headers, content = reply if isinstance(reply, tuple) else (200, {}, json.dumps(reply).encode())
        if not isinstance(reply, tuple):
            with server.lock:
                server.answered.update(body["inputs"] if "inputs" in body else [json.dumps(body)])
        lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(content)}", *(f"{k}: {v}" for k, v in headers.items())]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode() + content)  # one write: two would wait for each other

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@contextmanager
def serving(answer: Answer = scores, certificate: Path | None = None) -> Iterator[Server]:
    with Server(answer, certificate) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()
