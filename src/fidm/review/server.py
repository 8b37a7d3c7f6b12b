"""The review server: a few addresses on this machine, for one page.

The page's own files are given by a fixed table of names: no part of an address ever reaches the file system.
Nothing about requests is logged; an error of the program is logged by its kind and place, without what was
said.
"""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import socket
import traceback
from collections.abc import Awaitable, Callable, Iterator
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import unquote

import uvicorn
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from fidm.errors import DataError, FidmError
from fidm.grounding.entries import clean_name
from fidm.pages.embed import read_asset, script_json
from fidm.review.desk import About, ChangedError, Desk, Drawing, Judged, MissingError
from fidm.review.guard import Guard

HOST = "127.0.0.1"
MOST_BYTES = 256 * 1024
"""The longest body of a request."""

KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
OWN = (
    "review.html", "review.css", "review.js", "api.js", "dom.js", "list.js", "talk.js", "walk.js", "edit.js",
    "keys.js", "who.js",
)  # fmt: skip
"""The files of the page itself."""

SHARED = ("base.css", "map.js")
"""The files it shares with other pages."""

REVIEWER = "x-fidm-reviewer"

AModel = TypeVar("AModel", bound=BaseModel)
Endpoint = Callable[[Request], Awaitable[Response]]
_log = logging.getLogger(__name__)


def make_app(desk: Desk, *, port: int, token: str) -> ASGIApp:
    """Return the application for a study, behind its guard.

    Parameters
    ----------
    desk : Desk
        The study.
    port : int
        Where it will listen.
    token : str
        What every request for data must carry.
    """
    routes = [Route("/", _file("review.html"))]
    routes += [Route(f"/{name}", _file(name)) for name in (*OWN[1:], *SHARED)]
    routes += [
        Route("/api/start", _get(lambda request: desk.start())),
        Route("/api/list", _get(lambda request: _listing(desk, request))),
        Route("/api/dialog", _get(lambda request: _dialog(desk, request))),
        Route("/api/preview", _post(About, desk.preview, desk), methods=["POST"]),
        Route("/api/decide", _post(Judged, desk.judge, desk), methods=["POST"]),
        Route(
            "/api/sample", _post(Drawing, lambda who, d: desk.draw(who, d.n, d.seed), desk), methods=["POST"]
        ),
    ]
    handlers: dict[Any, Any] = {HTTPException: _refused, Exception: _failed}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), port=port, token=token)


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
    """Return a socket that listens on this machine alone.

    Parameters
    ----------
    port : int
        The port; 0 takes any that is free.
    """
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
    """Answer requests until Ctrl-C or SIGTERM.

    Parameters
    ----------
    app : ASGI application
        What answers.
    sock : socket
        Where it listens, see :func:`listen`.
    """
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
