"""Very large studies: requests written to, and answers read from, the JSONL files of OpenAI's batch format.

``vllm run-batch -i requests.jsonl -o answers.jsonl --model …`` answers such a file without a server. What a
later segment needs depends on where the earlier ones led, and a second try on the first answer, so a study is
worked off in rounds: export what can be asked now (the next open segment of every dialog), run it, import the
answers into the cache, go on with those segments for which :meth:`LanguageModel.pending` is empty, and
repeat until an export writes nothing. All dialogs move on together, so there are about as many rounds as
the longest dialog has segments, and some more for second tries.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fidm.errors import GroundingError, Problem
from fidm.grounding.base import Context, Segment
from fidm.grounding.llm.cache import AnswerCache, Stored
from fidm.grounding.llm.client import THINKING_OFF, UnansweredError, read_reply
from fidm.grounding.llm.grounder import LanguageModel

MAX_LINE_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import brought.

    Parameters
    ----------
    n_answers : int
        Answers that are now in the cache.
    problems : tuple of Problem
        Lines that could not be used; their requests are exported again in the next round.
    """

    n_answers: int
    problems: tuple[Problem, ...] = ()


def export_requests(
    model: LanguageModel, segments: Iterable[tuple[Segment, Context]], path: str | Path
) -> int:
    """Write the calls that segments need next, and the cache does not hold, as a batch file.

    Parameters
    ----------
    model : LanguageModel
        With the name of its model given, and a cache. No server is asked.
    segments : iterable of (Segment, Context)
        The next open segment of each dialog.
    path : str or Path
        The file to write, which only its owner can read: it holds what was said.

    Returns
    -------
    int
        How many calls were written; 0 when nothing is left to ask.
    """
    if model.cache is None:
        raise GroundingError("A batch needs a cache to keep its answers: LanguageModel(…, cache=path).")
    written: set[str] = set()
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.stem}-", suffix=target.suffix)
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                for segment, context in segments:
                    for request in model.pending(segment, context):
                        if request.key in written:
                            continue
                        written.add(request.key)
                        line = {
                            "custom_id": request.key,
                            "method": "POST",
                            "url": "/v1/chat/completions",
                            "body": request.body | THINKING_OFF,
                        }
                        file.write(json.dumps(line) + "\n")
            os.replace(name, target)
        finally:
            Path(name).unlink(missing_ok=True)
    except OSError as error:
        raise GroundingError(f"cannot be written: {error.strerror}.", source=str(target)) from None
    return len(written)


def import_answers(path: str | Path, cache: AnswerCache) -> Imported:
    """Put the answers of a batch into a cache.

    Parameters
    ----------
    path : str or Path
        The file the batch wrote.
    cache : AnswerCache
        Where they are kept; answers that are there already stay.
    """
    n_answers, problems = 0, []
    try:
        with Path(path).open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE_BYTES):
                number += 1
                if not line.strip():
                    continue
                wrong = _import_line(line, cache)
                if wrong:
                    problems.append(Problem(wrong, line=number))
                else:
                    n_answers += 1
    except OSError as error:
        raise GroundingError(f"cannot be read: {error.strerror}.", source=str(path)) from None
    return Imported(n_answers, tuple(problems))


def _import_line(line: bytes, cache: AnswerCache) -> str:
    """Keep one answer; what is wrong with it, if anything, without a word of it."""
    try:
        item = json.loads(line)
        key, response = item["custom_id"], item["response"]
        status, body = response.get("status_code", 200), response["body"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "This line is no answer in the batch format."
    if not isinstance(key, str) or not re.fullmatch("[0-9a-f]{64}", key):
        return "This answer belongs to no request of fidm."
    if status != 200 or not isinstance(body, dict):
        return "This request failed."
    try:
        read_reply(body)
    except UnansweredError:
        return "This answer is no chat completion."
    cache.put(key, Stored(body))
    return ""
