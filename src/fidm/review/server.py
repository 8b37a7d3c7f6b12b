"""The review server: a few addresses on this machine, for one page.

The page's own files are given by a fixed table of names: no part of an address ever reaches the file system.
Nothing about requests is logged; an error of the program is logged by its kind and place, without what was
said.

Who may talk to the review server: the page it served itself, on this machine, and nobody else.

The server listens on 127.0.0.1 alone, but any program and any web page opened on this machine can reach that.
What keeps them out:

- **A token.** 32 random bytes in the printed address, behind the ``#``: browsers never send that part, so it
  is in no request line, no log and no ``Referer``. The page takes it out of the address at once, keeps it for
  its tab and sends it as a header. A cookie would be worse: cookies of 127.0.0.1 go to every port of it, so
  to every other local server, and a browser adds them to requests that other pages make. A header of its
  own is added by nobody else, and a page of another origin cannot even try: its browser asks first
  (CORS), and is refused.
- **The Host header** must be this server's own, so that a name that was made to point at 127.0.0.1 after a
  page was loaded (DNS rebinding) gets nothing.
- **Origin** must be this server's own on everything that writes, and wherever it is given; so must
  ``Sec-Fetch-Site``.
- **Headers of answers** allow the page its own scripts and styles and no other address, forbid frames, and
  keep everything out of caches.

Only the page's own files, which hold nothing of any study, are given without the token. A recording is
played by an element of the page, which cannot send a header. Its address is a ticket instead: 32 random bytes
for each dialog, told only to whoever has the token, good while the server runs.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import signal
import socket
import traceback
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import unquote

import uvicorn
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fidm.errors import DataError, FidmError
from fidm.grounding.review.trail import clean_name
from fidm.pages import read_asset, script_json
from fidm.review.desk import About, ChangedError, Desk, Drawing, Judged, MissingError

TOKEN = b"x-fidm-token"
DATA = "/api/"
"""Everything under this path needs the token."""

RECORDINGS = "/api/audio/"
"""What is followed by the ticket for a recording, which stands for the token."""

METHODS = ("GET", "HEAD", "POST")

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "media-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""What the page may load and run: its own files; text can never become markup or a script."""

HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""What every answer says, errors included."""


class Guard:
    """Stands before the application and lets nobody in who is not the page itself.

    ``port`` is where the server listens, ``token`` what every request for data must carry, ``tickets`` what
    the address of a recording may end with instead.
    """

    def __init__(self, app: ASGIApp, *, port: int, token: str, tickets: Container[str] = ()) -> None:
        self.app, self.tickets = app, tickets
        self.hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":  # neither web sockets nor anything else
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in HEADERS}
                own = [(name, value) for name, value in message["headers"] if name.lower() not in names]
                message = {**message, "headers": [*own, *HEADERS]}
            await send(message)

        refused = self.refusal(scope["method"], scope["path"], scope["headers"])
        if refused is None:
            await self.app(scope, receive, send_guarded)
            return
        status, why = refused
        await JSONResponse({"error": why}, status)(scope, receive, send_guarded)

    def refusal(
        self, method: str, path: str, headers: Iterable[tuple[bytes, bytes]]
    ) -> tuple[int, str] | None:
        """Return the status and the reason if a request must not be answered; None if it may be."""
        given: dict[bytes, list[bytes]] = {}
        for name, value in headers:
            given.setdefault(name.lower(), []).append(value)
        hosts = given.get(b"host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return 421, "This server answers to its own address only."
        if method not in METHODS:
            return 405, "Only GET and POST are answered."
        if not path.startswith(DATA):
            return None if method != "POST" else (405, "This is read only.")
        origins = given.get(b"origin", [])
        own = {b"http://" + host for host in self.hosts if host == hosts[0].lower()}
        if any(origin.lower() not in own for origin in origins) or (method == "POST" and len(origins) != 1):
            return 403, "Another page's requests are not answered."
        if any(site != b"same-origin" for site in given.get(b"sec-fetch-site", [])):
            return 403, "Another page's requests are not answered."
        if method != "POST" and path.startswith(RECORDINGS) and path[len(RECORDINGS) :] in self.tickets:
            return None
        tokens = given.get(TOKEN, [])
        if len(tokens) != 1 or not hmac.compare_digest(tokens[0], self._token):
            return 401, "The token is missing or wrong. Open the address that fidm review printed."
        return None


HOST = "127.0.0.1"
MOST_BYTES = 256 * 1024
"""The longest body of a request."""

KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
OWN = (
    "review.html", "review.css", "review.js", "api.js", "dom.js", "list.js", "talk.js", "walk.js", "edit.js",
    "keys.js", "who.js", "hear.js",
)  # fmt: skip
"""The files of the page itself."""

SHARED = ("base.css", "map.js")
"""The files it shares with other pages."""

REVIEWER = "x-fidm-reviewer"

AModel = TypeVar("AModel", bound=BaseModel)
Endpoint = Callable[[Request], Awaitable[Response]]
_log = logging.getLogger(__name__)


def make_app(desk: Desk, *, port: int, token: str) -> ASGIApp:
    """Return the application for a study, behind its guard; every request for data must carry the token."""
    routes = [Route("/", _file("review.html"))]
    routes += [Route(f"/{name}", _file(name)) for name in (*OWN[1:], *SHARED)]
    routes += [
        Route("/api/start", _get(lambda request: desk.start())),
        Route("/api/list", _get(lambda request: _listing(desk, request))),
        Route("/api/dialog", _get(lambda request: _dialog(desk, request))),
        Route(RECORDINGS + "{ticket}", _recording(desk)),
        Route("/api/preview", _post(About, desk.preview, desk), methods=["POST"]),
        Route("/api/decide", _post(Judged, desk.judge, desk), methods=["POST"]),
        Route(
            "/api/sample", _post(Drawing, lambda who, d: desk.draw(who, d.n, d.seed), desk), methods=["POST"]
        ),
    ]
    handlers: dict[Any, Any] = {HTTPException: _refused, Exception: _failed}
    app = Starlette(routes=routes, exception_handlers=handlers)
    return Guard(app, port=port, token=token, tickets=desk.recordings)


def _answer(value: Any, status: int = 200) -> Response:
    return Response(script_json(value), status, media_type="application/json")


def _file(name: str) -> Endpoint:
    """An address that gives one file, read once."""
    text = (
        read_asset(name)
        if name in SHARED
        else files("fidm.review").joinpath("static", name).read_text("utf-8")
    )
    kind = KINDS[name.rpartition(".")[2]]

    async def give(_: Request) -> Response:
        return Response(text, media_type=f"{kind}; charset=utf-8")

    return give


def _who(request: Request) -> str:
    return clean_name(unquote(request.headers.get(REVIEWER, "")))


def _listing(desk: Desk, request: Request) -> dict[str, Any]:
    query = request.query_params
    return desk.listing(_who(request), sample=query.get("sample", ""), head=query.get("head", ""))


def _dialog(desk: Desk, request: Request) -> dict[str, Any]:
    query = request.query_params
    return desk.dialog(
        _who(request),
        query.get("participant", ""),
        query.get("episode", ""),
        sample=query.get("sample", ""),
        settling=query.get("settling") == "1",
    )


def _recording(desk: Desk) -> Endpoint:
    """An address that gives recordings, whole or the ranges of bytes that are asked for."""

    async def give(request: Request) -> Response:
        try:
            path, kind = await run_in_threadpool(desk.recording, request.path_params["ticket"])
        except MissingError as error:
            return _answer({"error": str(error)}, 404)
        return FileResponse(path, media_type=kind)

    return give


def _get(work: Callable[[Request], dict[str, Any]]) -> Endpoint:
    async def give(request: Request) -> Response:
        try:
            return _answer(await run_in_threadpool(work, request))
        except FidmError as error:
            return _answer({"error": str(error)}, 404 if isinstance(error, MissingError) else 422)

    return give


def _post(kind: type[AModel], work: Callable[[str, AModel], dict[str, Any]], desk: Desk) -> Endpoint:
    async def take(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return _answer({"error": "JSON is expected."}, 415)
        try:
            body = await _body(request)
        except ClientDisconnect:  # nobody is left to be told
            return _answer({"error": "The request broke off."}, 400)
        if body is None:
            return _answer({"error": "That is too long."}, 413)
        try:
            asked = kind.model_validate(json.loads(body), strict=True)
        except (ValueError, RecursionError, ValidationError):  # says nothing of what was sent
            return _answer({"error": "The request is not in the form that is expected."}, 400)
        who = _who(request)
        try:
            return _answer(await run_in_threadpool(work, who, asked))
        except ChangedError as error:
            now = await run_in_threadpool(desk.present, who, asked) if isinstance(asked, About) else {}
            return _answer({**now, "error": str(error)}, 409)
        except FidmError as error:
            return _answer({"error": str(error)}, 404 if isinstance(error, MissingError) else 422)

    return take


async def _body(request: Request) -> bytes | None:
    """The body of a request; None where it is too long."""
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > MOST_BYTES:
            return None
    return bytes(found)


async def _refused(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return _answer({"error": "There is nothing at this address." if status == 404 else "Refused."}, status)


async def _failed(_: Request, error: Exception) -> Response:
    """Answer for an error of the program; logged are its kind and place, never what it was about."""
    place = traceback.extract_tb(error.__traceback__)[-1:]
    where = ", ".join(f"{one.filename}:{one.lineno} in {one.name}" for one in place)
    _log.error("The review server failed: %s at %s", type(error).__name__, where)
    said = "The server failed. Nothing was decided. Please report it with what the terminal says."
    return _answer({"error": said}, 500)


class _Server(uvicorn.Server):
    """A server that ends when it is told to, and lets the program go on after it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at Ctrl-C or SIGTERM; what is to be done afterwards is up to the caller."""
        before = {
            number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def listen(port: int = 0) -> socket.socket:
    """Return a socket that listens on this machine alone; port 0 takes any that is free."""
    if not 0 <= port <= 65_535:
        raise DataError(f"--port is {port}; it must be between 0 and 65535.")
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
        made.listen()
    except OSError as error:
        made.close()
        raise DataError(
            f"Port {port} cannot be used: {error.strerror}. Leave --port out to take any that is free."
        ) from None
    return made


def serve(app: ASGIApp, sock: socket.socket) -> None:
    """Answer requests until Ctrl-C or SIGTERM."""
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="critical",
        access_log=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=3,
    )
    _Server(config).run(sockets=[sock])
