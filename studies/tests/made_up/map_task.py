"""Tiny made-up files in the format of the HCRC Map Task: no word in them was ever said to anybody."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

DIALOGS = tuple(
    f"q{quad}{sight}c{n}" for quad, sight in ((1, "e"), (2, "n"), (5, "e"), (6, "n")) for n in range(1, 9)
)
"""Four quads of eight conversations, so sixteen givers with two dialogs each."""

PLAIN = ("go", "left", "right", "down", "up", "to", "the", "a", "bit", "round", "until", "past")
MAPS = ("lake", "barn", "mill", "cave", "oak", "pier", "tower", "bog", "farm", "gate", "well", "fort")
"""Words of maps; a giver's two dialogs share three of them."""

GIVER = {1: 0, 7: 0, 2: 1, 8: 1, 3: 2, 5: 2, 4: 3, 6: 3}
MOVES = 14
HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<nite:root xmlns:nite="http://nite.sourceforge.net/" id="{}">\n'
)
OTHERS = ("ready", "align", "query_yn")


def write(folder: Path, *, seed: int = 1, dialogs: Sequence[str] = DIALOGS) -> None:
    """Write the moves and timed units of both speakers of every dialog."""
    for path, text in made_up(seed, dialogs).items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")


def write_archive(path: Path, *, seed: int = 1) -> None:
    """Write the same files into one archive, as they are passed on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as packed:
        for name, text in made_up(seed).items():
            data = text.encode()
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(data)
            packed.addfile(member, io.BytesIO(data))


def made_up(seed: int = 1, dialogs: Sequence[str] = DIALOGS) -> dict[str, str]:
    """Return the text of every file by its path."""
    rng = np.random.default_rng(seed)
    pace = rng.normal(0.0, 0.35, (4, 4))
    found = {}
    for k, dialog in enumerate(dialogs):
        quad, giver = k // 8, GIVER[int(dialog[-1])]
        own = MAPS[3 * giver : 3 * giver + 3]
        for who in "gf":
            talk = pace[quad, giver] if who == "g" else 0.0
            units, moves = _speaker(f"{dialog}{who}", dialog, who, own, talk, rng)
            found[f"timed-units/{dialog}.{who}.timed-units.xml"] = units
            found[f"moves/{dialog}.{who}.moves.xml"] = moves
    return found


def _speaker(
    prefix: str, dialog: str, who: str, own: tuple[str, ...], talk: float, rng: np.random.Generator
) -> tuple[str, str]:
    """One speaker's timed units and moves; between moves there is a silence, within some a pause."""
    units: list[str] = []
    moves: list[str] = []
    now = 0.0

    def add(kind: str, seconds: float, text: str = "") -> str:
        nonlocal now
        name = f"{prefix}.{len(units) + 1}"
        extra = ' type="inbreath"' if kind == "noi" else ""
        close = f">{text}</{kind}>" if text else "/>"
        units.append(f'<{kind} id="{name}" start="{now:.4f}" end="{now + seconds:.4f}"{extra}{close}')
        now += seconds
        return name

    for number in range(1, MOVES + 1):
        label = "instruct" if who == "g" and number % 3 else OTHERS[number % len(OTHERS)]
        first = last = ""
        if number % 5 == 0:
            first = add("noi", 0.2)
        for i in range(1 + int(rng.poisson(5 * np.exp(talk)))):
            if i and rng.random() < 0.25:
                add("sil", float(rng.lognormal(-1.2, 0.7)))
            words = own if rng.random() < 0.4 else PLAIN
            last = add("tu", float(rng.gamma(6.0, 0.04)), str(rng.choice(words)))
            first = first or last
        span = f"id({first})" if first == last else f"id({first})..id({last})"
        given_up = "true_aban" if number == 7 else "false_aban"
        moves.append(
            f'<move cont="false_cont" interj="false_interj" rep="none" aban="{given_up}" meta="false_meta" '
            f'id="{dialog}.{who}.move.{number}" label="{label}">'
            f'<nite:child href="{dialog}.{who}.timed-units.xml#{span}"/></move>'
        )
        silence = add("sil", 0.6)
        moves.append(
            f'<ims id="{dialog}.{who}.move.{number}.5">'
            f'<nite:child href="{dialog}.{who}.timed-units.xml#id({silence})"/></ims>'
        )
    whole = [
        HEAD.format(f"{kind}.{dialog}.{who}") + "\n".join(lines) + "\n</nite:root>\n"
        for kind, lines in (("tu", units), ("move", moves))
    ]
    return whole[0], whole[1]
