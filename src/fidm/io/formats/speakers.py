"""Who a speaker is in the task, by the names that labs and their software use."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from fidm.errors import DataError
from fidm.io.formats.base import RawTurn, clean
from fidm.talk import ROLES, Role

KNOWN: dict[str, Role] = {
    **dict.fromkeys(
        (
            "par", "participant", "child", "chi", "patient", "pat", "p", "subject", "sub", "sbj", "client",
            "interviewee", "testee", "target_child", "target_adult", "參加者", "參與者", "受試者",
            "病人", "長者",
        ),
        "participant",
    ),
    **dict.fromkeys(
        (
            "inv", "investigator", "assessor", "ass", "examiner", "exa", "exm", "interviewer", "int",
            "experimenter", "exp",
            "tester", "doctor", "doc", "clinician", "therapist", "nurse", "researcher", "e", "a",
            "評估員", "評估者", "研究員", "測試員", "醫生",
        ),
        "assessor",
    ),
    **dict.fromkeys(("other", "oth", "unidentified"), "other"),
}  # fmt: skip
"""Speakers known by name. A diariser's SPEAKER_00 is nobody in particular; ``roles`` must map it."""

MOST_NAMES, LONGEST_NAME = 12, 24


def load_roles(roles: Mapping[str, str] | str | Path | None) -> dict[str, Role]:
    """Return the roles by name, in lower case; a path is read as TOML, JSON or CSV (speaker, role)."""
    if roles is None:
        return {}
    given = dict(roles) if isinstance(roles, Mapping) else _from_file(Path(roles))
    source = "" if isinstance(roles, Mapping) else str(roles)
    found: dict[str, Role] = {}
    for name, said in given.items():
        role = next(
            (role for role in ROLES if isinstance(said, str) and role == said.strip().casefold()), None
        )
        if role is None or not isinstance(name, str):
            raise DataError(
                "roles must map names of speakers to 'participant', 'assessor' or 'other'.", source=source
            )
        found[clean(name).casefold()] = role
    return found


def _from_file(path: Path) -> dict[str, object]:
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}.", source=str(path)) from None
    except UnicodeDecodeError:
        raise DataError("is not UTF-8 text.", source=str(path)) from None
    kind = path.suffix.casefold()
    try:
        if kind == ".toml":
            found = tomllib.loads(text)
            nested = found.get("roles")
            return dict(nested) if isinstance(nested, dict) else found
        if kind == ".json":
            loaded = json.loads(text)
            if isinstance(loaded, dict):
                return loaded
        if kind == ".csv":
            rows = [row for row in csv.reader(io.StringIO(text)) if any(cell.strip() for cell in row)]
            if rows and [cell.strip().casefold() for cell in rows[0]] == ["speaker", "role"]:
                rows = rows[1:]
            if all(len(row) == 2 for row in rows):
                return {row[0]: row[1] for row in rows}
    except (tomllib.TOMLDecodeError, ValueError, csv.Error, RecursionError):
        pass
    raise DataError(
        'is not a table of roles: TOML or JSON with PAR = "participant", or CSV with speaker and role.',
        source=str(path),
    )


def who_is(turn: RawTurn, roles: Mapping[str, Role]) -> tuple[str, Role | None]:
    """Return the name under which a speaker is known and the role; None where nobody knows them.

    What ``roles`` says comes first, then what the file says, then the names everybody uses.
    """
    names = [name for name in (turn.speaker, *turn.others) if name]
    for name in names or [""]:
        role = roles.get(name.casefold())
        if role is not None:
            return name, role
    if turn.role is not None:
        return turn.speaker, turn.role
    for name in names:
        role = KNOWN.get(name.casefold())
        if role is not None:
            return name, role
    return turn.speaker, None


def shown_names(names: list[str]) -> str:
    """Return names of speakers for a message; what does not look like a name is counted, not shown.

    A table whose columns are mixed up has words in the place of names.
    """
    plain = [name for name in names if _is_name(name)] if len(names) <= MOST_NAMES else []
    others = len(names) - len(plain)
    listed = ", ".join(repr(name) if name else "no name" for name in plain)
    if others:
        more = f"{others} that {'is' if others == 1 else 'are'} not shown"
        listed = f"{listed} and {more}" if listed else more
    return listed


def _is_name(name: str) -> bool:
    """Whether a name is a code such as SPEAKER_00 or a short word; a sentence must not pass for one."""
    if not name.isascii():
        return len(name) <= 4 and name.isalnum()
    return len(name) <= LONGEST_NAME and re.fullmatch(r"[A-Za-z0-9_.@-]*", name) is not None
