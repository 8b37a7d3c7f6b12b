"""Who may talk to the review server: the page it served itself, on this machine, and nobody else.

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

Only the page's own files, which hold nothing of any study, are given without the token.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN = b"x-fidm-token"
DATA = "/api/"
"""Everything under this path needs the token."""

METHODS = ("GET", "HEAD", "POST")

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
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

    Parameters
    ----------
    app : ASGI application
        What is guarded.
    port : int
        Where the server listens.
    token : str
        What every request for data must carry.
    """

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self.app = app
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
        tokens = given.get(TOKEN, [])
        if len(tokens) != 1 or not hmac.compare_digest(tokens[0], self._token):
            return 401, "The token is missing or wrong. Open the address that fidm review printed."
        return None
