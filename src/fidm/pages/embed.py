"""Putting data and scripts into a page so that nothing in them can break out of it.

What people said ends up in pages. It goes there as JSON that cannot end the element it stands in, and the
page's own scripts are allowed by their hash alone, so that nothing else on it is ever run.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

ASSETS = ("base.css", "map.js")
"""The files that pages share."""

RISKY = "<>&\u2028\u2029"
"""What could end a script element, or a line of a script."""


def script_json(value: Any) -> str:
    r"""Return a value as JSON that may stand inside a ``<script type="application/json">`` element.

    Halves of characters, which no page can hold, become the replacement character.

    Examples
    --------
    >>> script_json({"said": "</script>"})
    '{"said":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in RISKY:  # far faster than str.translate
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_asset(name: str) -> str:
    """Return the text of one of the files that pages share (:data:`ASSETS`)."""
    if name not in ASSETS:
        raise ValueError(f"There is no shared file {name!r}.")
    return files("fidm.pages").joinpath("static", name).read_text("utf-8")


def csp_hash(text: str) -> str:
    """Return the hash by which a content-security policy allows a script or a style.

    Examples
    --------
    >>> csp_hash("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
