"""A server that answers as recorded and keeps what it did not expect."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TRANSCRIPTS = Path(__file__).resolve().parents[2] / "transcripts"


def transcripts():
    return {path.stem: json.loads(path.read_text()) for path in sorted(TRANSCRIPTS.glob("*.json"))}


class ReplayServer:
    """One conversation."""

    def __init__(self, transcript):
        self.left = list(transcript["exchanges"])
        self.unexpected = []
        self.answered_at = time.monotonic()
        self.changed = threading.Condition()
        self.has_left = threading.Event()
        replay = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self):
                length = int(self.headers.get("content-length") or 0)
                text = self.rfile.read(length)
                body = json.loads(text) if text else None
                found = replay.take(self.command, self.path, self.headers, body)
                status, headers, data = found
                said = json.dumps(data).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(said)))
                try:
                    self.end_headers()
                    self.wfile.write(said)
                except ConnectionError:
                    pass  # a worker that has ended does not wait for the answer to its leave

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def take(self, method, path, headers, body):
        with self.changed:
            exchange = self.match(method, path, headers, body)
            if exchange is not None:
                self.left.remove(exchange)
            self.changed.notify_all()
        if exchange is None:
            self.unexpected.append((method, path, body))
            error = {"code": "UNEXPECTED", "message": f"{method} {path}", "retryable": False}
            return 418, {}, {"success": False, "error": error}
        early = exchange.get("not_before_ms", 0) / 1000 - (time.monotonic() - self.answered_at)
        if early > 0.01:
            self.unexpected.append((method, path, f"{early:.3f} s too early"))
        if path.endswith("/work/leave"):
            self.has_left.set()
        if exchange.get("hold"):
            self.has_left.wait(20)
        self.answered_at = time.monotonic()
        answer = exchange["answer"]
        return answer["status"], answer.get("headers", {}), answer["body"]

    def match(self, method, path, headers, body):
        for exchange in self.left:
            request = exchange["request"]
            if (request["method"], request["path"]) != (method, path):
                continue
            has_headers = all(headers.get(k) == v for k, v in request.get("headers", {}).items())
            wanted, got = request.get("body"), body
            for name in exchange.get("whatever", []):
                wanted, got = ({**it, name: None} for it in (wanted, got))
            return exchange if wanted == got and has_headers else None
        return None

    def wait_until_said(self, seconds=20):
        """Until everything was said that comes before the stop."""
        with self.changed:
            self.changed.wait_for(
                lambda: self.unexpected or all(e.get("after_stop") for e in self.left), seconds
            )

    def close(self):
        self.server.shutdown()
        self.server.server_close()
