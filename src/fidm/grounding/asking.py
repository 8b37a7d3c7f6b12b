"""Asking a server: each question once, kept answers first, and what was found out about the server."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from fidm.errors import GroundingError
from fidm.grounding.attempts import Request, token_ratio
from fidm.grounding.cache import AnswerCache, Stored
from fidm.grounding.client import THINKING_OFF, ChatClient, RefusedError, UnansweredError, read_reply

logger = logging.getLogger(__name__)

PROBE_TOKENS = 96


class Asker:
    """A server and a file of answers, shared by all threads.

    Parameters
    ----------
    client : ChatClient
        The server.
    cache : AnswerCache or None
        The answers so far.
    model : str or None
        The model's name; None asks the server.
    """

    def __init__(self, client: ChatClient, cache: AnswerCache | None, model: str | None) -> None:
        self.client, self.cache = client, cache
        self._model = model
        self._lock = threading.RLock()
        self._in_flight: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._is_probed = False
        self._enforced: bool | None = None
        self._ratio: float | None = None
        self._extras: dict[str, Any] = dict(THINKING_OFF)
        self._server: dict[str, Any] = {}
        self._seen_enforced: set[bool | None] = set()
        self._seen_fingerprints: set[str] = set()

    def provenance(self) -> dict[str, Any]:
        """Return what was found out about the server and the model; without paths."""
        with self._lock:
            enforced = False if False in self._seen_enforced else None
            return {
                "model": None if self._model is None else Path(self._model).name,
                "server": dict(self._server),
                "system_fingerprint": sorted(self._seen_fingerprints),
                "enforced": True if self._seen_enforced == {True} else enforced,
                "endpoint": self.client.host_class,
            }

    def model_name(self) -> str:
        """Return the model's name, as it was given or as the server says."""
        with self._lock:
            if self._model is None:
                listed = self.client.models()
                names = [str(item["id"]) for item in listed if item.get("id")]
                if len(names) != 1:
                    known = ", ".join(Path(name).name for name in names[:20]) or "none"
                    raise GroundingError(
                        f"The server has {len(names)} models ({known}). Say which one with model=…",
                        source=self.client.url,
                    )
                self._model = names[0]
                self._server = _described(listed[0])
            return self._model

    def kept(self, key: str) -> Stored | None:
        """Return an answer that is kept."""
        return None if self.cache is None else self.cache.get(key)

    def answer(self, request: Request) -> Stored:
        """Return the answer to a request: the kept one, else a new one, which is then kept."""
        with self._lock:
            # Two dialogs may ask the same at the same time; the second then waits for the first.
            alone = self._in_flight.get(request.key) or threading.Lock()
            self._in_flight[request.key] = alone
        with alone:
            stored = self.kept(request.key)
            if stored is None:
                self._probe(request)
                body = self.client.chat(request.body | self._extras)
                stored = Stored(body, self._enforced, self._ratio)
                if self.cache is not None:
                    self.cache.put(request.key, stored)
        fingerprint = read_reply(stored.body).fingerprint
        with self._lock:
            self._seen_enforced.add(stored.enforced)
            self._seen_fingerprints |= {fingerprint} - {""}
        return stored

    def close(self) -> None:
        """Close the connections and the file."""
        self.client.close()
        if self.cache is not None:
            self.cache.close()

    def _probe(self, request: Request) -> None:
        """Find out once whether the server keeps to schemas, and how it counts tokens.

        It is asked to say hello in a form whose only filling is a random code that stands nowhere in the
        prompt.
        """
        with self._lock:
            if self._is_probed:
                return
            code = f"zq-{secrets.token_hex(8)}"
            schema = {
                "type": "object",
                "properties": {"code": {"enum": [code]}},
                "required": ["code"],
                "additionalProperties": False,
            }
            messages = [request.body["messages"][0], {"role": "user", "content": "Say hello."}]
            probe = {
                "model": request.body["model"],
                "messages": messages,
                "temperature": 0,
                "max_tokens": PROBE_TOKENS,
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "code", "strict": True, "schema": schema},
                },
            }
            try:
                body = self.client.chat(probe | self._extras)
            except RefusedError as error:
                # A strict server may refuse fields it does not know.
                if error.status not in (400, 422):
                    raise
                body = self.client.chat(probe)
                self._extras = {}
            reply = read_reply(body)
            self._enforced = f'"{code}"' in reply.content
            self._ratio = token_ratio(messages, reply.prompt_tokens)
            self._is_probed = True
            self._describe(request.body["model"])
            logger.info("Schema enforced by the server: %s.", self._enforced)

    def _describe(self, model: str) -> None:
        """Note what the server says of the model, if it says anything."""
        if self._server:
            return
        try:
            listed = self.client.models()
        except (RefusedError, UnansweredError):
            return
        self._server = next((_described(item) for item in listed if item.get("id") == model), {})


def _described(item: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers a server gives of its model, without paths."""
    meta = item.get("meta")
    known = {**item, **(meta if isinstance(meta, dict) else {})}
    wanted = ("owned_by", "n_params", "size", "ftype", "n_ctx", "n_ctx_train", "n_vocab", "max_model_len")
    return {key: known[key] for key in wanted if isinstance(known.get(key), int | str)}
