"""A server that speaks OpenAI's chat protocol and does, when told, each thing real servers get wrong.

Every chat request is kept in ``requests``. ``script`` is a list of behaviours, one per chat request, the last of
which repeats; the enforcement probe is answered by ``probe`` and not counted.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

UP_THREE = '{"instructions":[{"words":"up three","op":"MOVE","way":"up","squares":3}]}'


class FakeServer:
    """Use as a context manager; ``url`` is its address."""

    def __init__(self, *script: str, answer: str = UP_THREE, probe: str = "enforced", service_s: float = 0.0):
        self.script = list(script) or ["ok"]
        self.answer: Any = answer
        self.probe = probe
        self.service_s = service_s
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.n_probes = 0
        self.models = ["fake-model"]
        self.lock = threading.Lock()
        self.stopping = threading.Event()

    def __enter__(self) -> FakeServer:
        owner = self

        class Handler(_Handler):
            fake = owner

        self.http = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def behaviour(self, body: dict[str, Any]) -> tuple[str, int]:
        """What to do with a request, and its number from 0; -1 for the probe."""
        schema = body["response_format"]["json_schema"]["schema"]
        with self.lock:
            if "code" in schema["properties"]:
                self.n_probes += 1
                return f"probe {self.probe}", -1
            number = len(self.requests)
            self.requests.append(body)
            return self.script[min(number, len(self.script) - 1)], number


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    fake: FakeServer
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        self.send_json({"object": "list", "data": [{"id": name} for name in self.fake.models]})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body = json.loads(raw)
        if not self.path.endswith("/chat/completions"):
            self.send_json({"error": {"message": "no such address"}}, 404)
            return
        with self.fake.lock:
            self.fake.headers.append(dict(self.headers))
        what, number = self.fake.behaviour(body)
        if self.fake.service_s:
            time.sleep(self.fake.service_s)
        name, _, argument = what.partition(" ")
        getattr(self, f"do_{name}")(body, number, argument)

    # ------------------------------------------------------------------ what it can do

    def do_probe(self, body: dict[str, Any], number: int, argument: str) -> None:
        if argument == "strict" and "chat_template_kwargs" in body:
            self.send_json({"error": {"message": "unknown field"}}, 400)
            return
        code = body["response_format"]["json_schema"]["schema"]["properties"]["code"]["enum"][0]
        text = "Hello!" if argument == "ignored" else json.dumps({"code": code})
        self.send_json(self.completion(body, text))

    def do_ok(self, body: dict[str, Any], number: int, argument: str) -> None:
        self.send_json(self.completion(body, self.text(body, number)))

    def do_say(self, body: dict[str, Any], number: int, argument: str) -> None:
        self.send_json(self.completion(body, argument))

    def do_length(self, body: dict[str, Any], number: int, argument: str) -> None:
        self.send_json(self.completion(body, self.text(body, number)[:20], finish="length"))

    def do_reasoning(self, body: dict[str, Any], number: int, argument: str) -> None:
        found = self.completion(body, None)
        found["choices"][0]["message"][argument] = self.text(body, number)
        self.send_json(found)

    def do_status(self, body: dict[str, Any], number: int, argument: str) -> None:
        status, _, retry = argument.partition(" ")
        # Servers quote what they were sent: here, all of it.
        echo = {"error": {"message": body["messages"][-1]["content"]}}
        self.send_json(echo, int(status), {"Retry-After": retry} if retry else {})

    def do_too_long(self, body: dict[str, Any], number: int, argument: str) -> None:
        self.send_json({"error": {"type": "exceed_context_size_error", "message": "too long"}}, 400)

    def do_redirect(self, body: dict[str, Any], number: int, argument: str) -> None:
        self.send_json({}, 307, {"Location": argument})

    def do_hang(self, body: dict[str, Any], number: int, argument: str) -> None:
        self.fake.stopping.wait(float(argument))
        self.close_connection = True

    def do_close(self, body: dict[str, Any], number: int, argument: str) -> None:
        self.close_connection = True

    def do_half(self, body: dict[str, Any], number: int, argument: str) -> None:
        self.start(200, {"Content-Length": "1000"})
        self.wfile.write(b'{"choices":')
        self.close_connection = True

    def do_garbage(self, body: dict[str, Any], number: int, argument: str) -> None:
        self.start(200, {"Content-Length": "64"})
        self.wfile.write(bytes(range(128, 192)))

    def do_object(self, body: dict[str, Any], number: int, argument: str) -> None:
        self.send_json(json.loads(argument))

    def do_huge(self, body: dict[str, Any], number: int, argument: str) -> None:
        self.start(200, {"Content-Length": str(10**9)})
        self.close_connection = True
        for _ in range(1000):
            self.wfile.write(b" " * 1_000_000)

    def do_trickle(self, body: dict[str, Any], number: int, argument: str) -> None:
        self.start(200, {"Content-Length": "1000"})
        self.close_connection = True
        while not self.fake.stopping.wait(0.05):
            self.wfile.write(b" ")
            self.wfile.flush()

    def do_usage(self, body: dict[str, Any], number: int, argument: str) -> None:
        found = self.completion(body, self.text(body, number))
        found["usage"] = json.loads(argument)
        self.send_json(found)

    def do_logprobs(self, body: dict[str, Any], number: int, argument: str) -> None:
        text = self.text(body, number)
        found = self.completion(body, text)
        tokens = re.findall(r"\w+|\W", text)
        found["choices"][0]["logprobs"] = {
            "content": [{"token": t, "logprob": float(argument)} for t in tokens]
        }
        self.send_json(found)

    # ------------------------------------------------------------------ how it does it

    def text(self, body: dict[str, Any], number: int) -> str:
        answer = self.fake.answer
        return str(answer(body, number)) if callable(answer) else str(answer)

    def completion(self, body: dict[str, Any], text: str | None, finish: str = "stop") -> dict[str, Any]:
        n_characters = sum(len(message["content"]) for message in body["messages"])
        return {
            "choices": [
                {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}
            ],
            "usage": {"prompt_tokens": n_characters // 4 + 8, "completion_tokens": 1},
            "system_fingerprint": "fake-1",
        }

    def start(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def send_json(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        raw = json.dumps(value).encode()
        self.start(status, {"Content-Length": str(len(raw)), **(headers or {})})
        self.wfile.write(raw)


class CountingProxy(FakeServer):
    """Passes everything on to a real server and keeps what was asked and answered."""

    def __init__(self, target: str) -> None:
        super().__init__("forward")
        self.target = urlsplit(target)
        self.n_answered = 0

    def __enter__(self) -> FakeServer:
        owner = self

        class Handler(_Forward):
            fake = owner

        self.http = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02})
        self.thread.start()
        return self


class _Forward(_Handler):
    fake: CountingProxy

    def do_GET(self) -> None:
        self.forward("GET", None)

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        _, number = self.fake.behaviour(json.loads(raw))
        self.forward("POST", raw)
        if number >= 0:
            with self.fake.lock:
                self.fake.n_answered += 1

    def forward(self, method: str, raw: bytes | None) -> None:
        target = self.fake.target
        connection = http.client.HTTPConnection(target.hostname or "", target.port or 80, timeout=300)
        try:
            connection.request(method, self.path, raw, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        self.start(response.status, {"Content-Length": str(len(answer))})
        self.wfile.write(answer)
