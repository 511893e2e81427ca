"""Queries over HTTP at full concurrency, with a server that fails now and then: `python -m scrimp.benchmarks.http`.

The server is a process of its own on the loopback. It turns away one request in 100, breaks the connection at one in 200,
and counts what it has answered: nothing may be lost and nothing answered twice.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socketserver
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ..attacks.account import Account, Cashier
from ..attacks.replies import ReplyStore
from ..victims.endpoints import endpoint_victim

MEASURED = Path(__file__).parent / "measured"


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads, request_queue_size = True, 64

    def __init__(self, delay: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock, self.delay, self.requests = threading.Lock(), delay, 0
        self.answered: Counter[str] = Counter()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection broken on purpose is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(self.server.delay)
        with self.server.lock:
            self.server.requests += 1
            number = self.server.requests
            fails = number % 100 == 0 or number % 200 == 50
            if not fails:
                self.server.answered.update(texts)
        if number % 200 == 50:
            self.close_connection = True
            return
        content = json.dumps([[len(text) % 2, 1 - len(text) % 2] for text in texts]).encode()
        status = "503 Busy\r\nRetry-After: 0" if fails else "200 OK"
        head = f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n\r\n"
        self.wfile.write(head.encode() + content)  # one write: two would wait for each other

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


def _serve(delay: float, end: Connection) -> None:
    with _Server(delay) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        end.send(f"http://127.0.0.1:{server.server_address[1]}/")
        end.recv()
        end.send((server.requests, dict(server.answered)))
        server.shutdown()


def measure(queries: int, concurrency: int, texts_per_request: int, delay: float) -> dict[str, Any]:
    """Asks `queries` different texts once each."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(delay, there))
    process.start()
    settings = {"url": here.recv(), "name": "loopback", "body": "{texts}", "reply": "", "backoff": 0.01}
    victim = endpoint_victim(settings | {"concurrency": concurrency, "texts_per_request": texts_per_request})
    texts = [f"text number {at}" for at in range(queries)]
    account = Account(queries)
    for text in texts:
        account.bill((text,))
    with tempfile.TemporaryDirectory() as folder:
        store = ReplyStore(Path(folder) / "replies.sqlite")
        cashier = Cashier(victim, 1 << 20, store)
        start, cpu = time.perf_counter(), time.process_time()
        cashier.pay([account])
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
        store.close()
    here.send(None)
    requests, answered = here.recv()
    process.join()
    right = sum(int(account.replies[(text,)][0]) == len(text) % 2 for text in texts if (text,) in account.replies)
    return {
        "queries": queries,
        "concurrency": concurrency,
        "texts_per_request": texts_per_request,
        "delay_s": delay,
        "requests": requests,
        "lost": queries - right,
        "answered_twice": sum(times > 1 for times in answered.values()),
        "seconds": round(wall, 2),
        "per_second": round(queries / wall, 1),
        "client_cpu_s": round(cpu, 2),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=10_000, help="(%(default)s)")
    parser.add_argument("--concurrency", type=int, default=16, help="(%(default)s)")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds the server takes for a request (%(default)s)")
    parser.add_argument("--out", type=Path, default=MEASURED / "http.json", help="where the record goes (%(default)s)")
    args = parser.parse_args(arguments)
    rows = [measure(args.queries, args.concurrency, size, args.delay) for size in (1, 32)]
    args.out.write_text(json.dumps({"rows": rows}, indent=1) + "\n")
    for row in rows:
        print(json.dumps(row))


if __name__ == "__main__":
    main()
