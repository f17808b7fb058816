"""A web server in a thread, which serves one file as well or as badly as a test asks."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Served:
    """`cuts` are after how many bytes answers break off, in turn; `asked` are the ranges asked."""

    content: bytes
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)
    status: int | None = None
    says_length: bool = True
    shift: int = 0
    asked: list[str | None] = field(default_factory=list)
    port: int = 0

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/{name}"


@contextmanager
def serving(served: Served) -> Iterator[Served]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.headers.get("Range")
            served.asked.append(asked)
            first = int(asked.removeprefix("bytes=").rstrip("-")) if asked and served.ranges else 0
            if served.status or first > len(served.content) - 1:
                self.send_error(served.status or 416)
                return
            body = served.content[first:]
            self.send_response(206 if first else 200)
            if first:
                start = first + served.shift
                total = len(served.content)
                self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
            if served.says_length:
                self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: served.cuts.pop(0)] if served.cuts else body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Say nothing of a client that leaves in the middle: tests do."""

    with Server(("127.0.0.1", 0), Handler) as server:
        served.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
