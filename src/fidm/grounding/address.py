"""Which servers are on this machine: the check that keeps speech from leaving it."""

from __future__ import annotations

import ipaddress
import socket
from typing import TYPE_CHECKING, Any, Literal

from fidm.errors import GroundingError

if TYPE_CHECKING:
    from httpx import URL


def import_httpx() -> Any:
    """Return the HTTP library; an error that says how to install it where it is missing."""
    try:
        import httpx
    except ImportError:
        raise GroundingError(
            "Language models need the package httpx. Install it with: pip install 'fidm[llm]'"
        ) from None
    return httpx


def check_address(base_url: str, *, allow_remote: bool) -> tuple[str, Literal["loopback", "remote"]]:
    """Return a server's address, tidied, and whether it is on this machine; refuse others unless allowed."""
    httpx = import_httpx()
    try:
        url: URL = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError, ValueError):
        raise GroundingError(
            f"{base_url!r} is no address. Write one such as http://127.0.0.1:8080/v1"
        ) from None
    if url.scheme not in ("http", "https") or not url.host or url.userinfo or url.query or url.fragment:
        raise GroundingError(
            "The address of a server looks like http://127.0.0.1:8080/v1, without a password or a query. "
            "Give a key as api_key."
        )
    path = url.path.rstrip("/") or "/v1"
    local = is_loopback(url.host)
    if not local and not allow_remote:
        raise GroundingError(
            f"The server {url.host!r} is not on this machine, so what people said would leave it. Use a "
            "server at 127.0.0.1, or say allow_remote=True if the study's rules permit it; that is recorded.",
            source=str(url),
        )
    return str(url.copy_with(path=path)), "loopback" if local else "remote"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine and nothing else: 127.0.0.0/8, ::1, or ``localhost`` if it means these.

    Other names are never taken for this machine, whatever they resolve to now: that can change.
    """
    name = host.strip("[]").lower()
    if name == "localhost":
        try:
            found = {str(item[4][0]) for item in socket.getaddrinfo(name, None)}
        except OSError:
            return False
        return bool(found) and all(is_loopback(address) for address in found if address != name)
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
