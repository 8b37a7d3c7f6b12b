"""The HCRC Map Task: students tell each other a route on a map that the other cannot see.

Of each dialog the loader reads the *instruct* moves of the one who gives the route: what is said to make the
other draw a piece of it. There is no list of decisions, so there is no task; every move is a segment, counted
as one (``n_moves`` is 1) and measured as :doc:`/explanation/words-to-moves` does:

``duration_s``
    from the first to the last word of the move, without pauses;
``n_characters``, ``n_words``
    letters and digits, and words; ``log_words`` is the logarithm of the latter, as a design column;
``pause_s``, ``n_pauses``
    gaps between words of more than 0.25 s, added up and counted; noises such as breath are no words;
``silence_s``
    what the annotators marked as silence between the first and the last word, however short;
``span_s``
    from the first to the last word with everything in between.

Who speaks follows from the corpus's design (:mod:`fidm_studies.map_task.dataset`).
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fidm.cohort import UNKNOWN_STATE, Cohort, offsets_of
from fidm.errors import DataError, Problem
from fidm.types import Progress
from fidm_studies.dataset import Dataset, Loaded, Source, read_manifest
from fidm_studies.map_task.files import (
    ARCHIVE,
    DIALOG,
    GIVER,
    Move,
    published_files,
    read_moves,
    read_units,
)

LABEL = "instruct"
"""The moves that are read: what is said to make the other one draw."""

PAUSE_ABOVE_S = 0.25
"""Shorter gaps between words belong to articulation; the same limit as in grounded dialogs."""

TASK = "route giving"
"""What the episodes are called; there is no model of it."""

SEGMENTS = {
    "segment": pl.String,
    "n_moves": pl.Int32,
    "duration_s": pl.Float64,
    "n_characters": pl.Int64,
    "n_words": pl.Int64,
    "pause_s": pl.Float64,
    "n_pauses": pl.Int64,
    "silence_s": pl.Float64,
    "span_s": pl.Float64,
    "log_words": pl.Float64,
    "familiar": pl.Boolean,
    "abandoned": pl.Boolean,
}
"""The columns of the segments."""


def read(folder: Path, on_progress: Progress) -> Loaded:
    """Read the instruct moves of everybody who gave a route."""
    files = published_files(folder)
    dialogs = sorted({Path(path).name.split(".")[0] for path in files}, key=place)
    if not dialogs:
        raise DataError("There is no file of moves or timed units of a route giver.", source=str(folder))
    segments: dict[str, list[dict[str, Any]]] = {}
    words: dict[str, Counter[str]] = {}
    problems: list[Problem] = []
    wordless = 0
    for done, dialog in enumerate(dialogs):
        on_progress("dialogs", done, len(dialogs))
        paths = [f"{kind}/{dialog}.{GIVER}.{kind}.xml" for kind in ("timed-units", "moves")]
        missing = [path for path in paths if path not in files]
        if missing:
            problems += [Problem("The file is missing.", where=path) for path in missing]
            continue
        units = read_units(files[paths[0]], paths[0])
        words[dialog] = Counter(unit.text for unit in units.values() if unit.kind == "tu" and unit.text)
        moves, lost = read_moves(files[paths[1]], paths[1], units)
        problems += [
            Problem("Its timed units are not in the other file.", where=f"{paths[1]}, move {number}")
            for number in lost
        ]
        chosen = [(move, measured(move)) for move in moves if move.label == LABEL]
        wordless += sum(1 for _, found in chosen if found is None)
        segments[dialog] = [
            {**found, "segment": move.name, "familiar": is_familiar(dialog), "abandoned": move.abandoned}
            for move, found in chosen
            if found is not None
        ]
    on_progress("dialogs", len(dialogs), len(dialogs))
    if problems:
        raise DataError("The files do not belong together.", source=str(folder), problems=problems)
    if not any(segments.values()):
        raise DataError(f"No route giver has an {LABEL} move with words.", source=str(folder))
    cohort = _cohort(segments)
    maps = same_map(words)
    return Loaded(
        dataset=DATASET,
        tasks=(),
        cohort=cohort,
        tables={"same_map": maps},
        notes=_notes(cohort, maps, wordless),
    )


def measured(move: Move) -> dict[str, Any] | None:
    """Return what a move cost its speaker; None if it has no word, or no time.

    Examples
    --------
    >>> from fidm_studies.map_task.files import Move, Unit
    >>> said = (Unit("tu", 0.0, 0.5, "go"), Unit("sil", 0.5, 1.5, ""), Unit("tu", 1.5, 2.0, "left"))
    >>> found = measured(Move("1", "instruct", said, abandoned=False))
    >>> found["duration_s"], found["pause_s"], found["n_characters"]
    (1.0, 1.0, 6)
    """
    said = [i for i, unit in enumerate(move.units) if unit.kind == "tu"]
    if not said:
        return None
    within = move.units[said[0] : said[-1] + 1]
    spoken = [unit for unit in within if unit.kind == "tu"]
    span = spoken[-1].end_s - spoken[0].start_s
    gaps = [later.start_s - one.end_s for one, later in pairwise(spoken)]
    pauses = [gap for gap in gaps if gap > PAUSE_ABOVE_S + 1e-9]
    pause = math.fsum(pauses)
    if span - pause <= 0:
        return None
    return {
        "n_moves": 1,
        "duration_s": round(span - pause, 6),
        "n_characters": sum(_characters(unit.text) for unit in spoken),
        "n_words": len(spoken),
        "pause_s": round(pause, 6),
        "n_pauses": len(pauses),
        "silence_s": round(math.fsum(u.end_s - u.start_s for u in within if u.kind == "sil"), 6),
        "span_s": round(span, 6),
        "log_words": math.log(len(spoken)),
    }


# ---------------------------------------------------------------------- putting it together


def _cohort(segments: Mapping[str, list[dict[str, Any]]]) -> Cohort:
    people = sorted({giver(dialog) for dialog in segments})
    order = sorted(segments, key=lambda dialog: (giver(dialog), place(dialog)))
    counts = Counter(giver(dialog) for dialog in order)
    rows = [row for dialog in order for row in segments[dialog]]
    nothing = np.zeros(0, dtype=np.int32)
    return Cohort(
        participants=pl.DataFrame(
            {
                "participant": people,
                "quad": [name[:3] for name in people],
                "eye_contact": [name[2] == "e" for name in people],
            }
        ),
        episodes=pl.DataFrame(
            {
                "episode": order,
                "task": [TASK] * len(order),
                "familiar": [is_familiar(dialog) for dialog in order],
            }
        ),
        episode_offsets=offsets_of([counts[name] for name in people]),
        step_offsets=np.zeros(len(order) + 1, dtype=np.int64),
        state=nothing,
        action=nothing,
        end_state=np.full(len(order), UNKNOWN_STATE, dtype=np.int32),
        segments=pl.DataFrame([{name: row[name] for name in SEGMENTS} for row in rows], schema=SEGMENTS),
        segment_offsets=offsets_of([len(segments[dialog]) for dialog in order]),
    )


def _notes(cohort: Cohort, maps: pl.DataFrame, wordless: int) -> tuple[str, ...]:
    whole = maps.drop_nulls()
    agree = whole.filter(pl.col("by_design") == pl.col("by_words")).height
    abandoned = int(cohort.segments["abandoned"].sum())
    notes = [
        f"{cohort.n_segments:,} {LABEL} moves of {len(cohort):,} route givers in {cohort.n_episodes:,} "
        "dialogs are read.",
        "Who gave the route follows from the corpus's design, in which each giver gave the same map twice; "
        f"in {agree:,} of {whole.height:,} dialogs the giver's rare words point to the one the design names.",
        f"{abandoned:,} moves that their speakers gave up before the end are kept.",
    ]
    if wordless:
        notes.append(f"{wordless:,} {LABEL} moves without a word, or without a time, are left out.")
    return tuple(notes)


def _characters(text: str) -> int:
    """Letters and digits, with their accents."""
    return sum(unicodedata.category(letter)[0] in "LNM" for letter in text)


_UNITS_AT = "a25bfdcd5a3041a46f071434e1bc38c2bde60fb0"
_MOVES_AT = "7478ba45d1014090bef9fc8bb55705ec26e95ca3"

DATASET = Dataset(
    name="map-task",
    title="HCRC Map Task",
    folder="hcrc_map_task",
    summary="One person tells another a route on a map; every word is timed and every move annotated.",
    people="64 students in 128 dialogs",
    licence="CC BY-NC-SA 2.5",
    licence_url="https://creativecommons.org/licenses/by-nc-sa/2.5/",
    terms="Cite the corpus, use it for no commercial purpose, and share what you make of it alike.",
    citation=(
        "Anderson, A. H., Bader, M., Bard, E. G., Boyle, E., Doherty, G., Garrod, S., Isard, S., Kowtko, J., "
        "McAllister, J., Miller, J., Sotillo, C., Thompson, H. S., & Weinert, R. (1991). The HCRC Map Task "
        "Corpus. Language and Speech, 34(4), 351–366. https://doi.org/10.1177/002383099103400404",
        "Carletta, J., Isard, A., Isard, S., Kowtko, J. C., Doherty-Sneddon, G., & Anderson, A. H. (1997). "
        "The reliability of a dialogue structure coding scheme. Computational Linguistics, 23(1), 13–31. "
        "https://aclanthology.org/J97-1002/",
    ),
    sources=(
        Source(
            home="https://github.com/innerfirexy/hcrc-map-task",
            version=_UNITS_AT,
            base_url=f"https://raw.githubusercontent.com/innerfirexy/hcrc-map-task/{_UNITS_AT}/",
            within="timed-units/",
            there="data/timed-units/",
        ),
        Source(
            home="https://github.com/NathanDuran/Maptask-Corpus",
            version=_MOVES_AT,
            base_url=f"https://raw.githubusercontent.com/NathanDuran/Maptask-Corpus/{_MOVES_AT}/",
            within="moves/",
            there="maptask_archive/moves/",
        ),
    ),
    manifest=read_manifest("map_task.txt"),
    read=read,
    archives=(ARCHIVE,),
)


GIVERS = {1: "a1", 7: "a1", 2: "b2", 8: "b2", 3: "a2", 5: "a2", 4: "b1", 6: "b1"}
"""Who gives the route in each conversation of a quad; a1 came with a2, and b1 with b2."""


FAMILIAR = {"early": (3, 4, 7, 8), "late": (1, 2, 5, 6)}
"""The conversations with the person one came with, in quads 1 to 4 and in quads 5 to 8."""


def is_familiar(dialog: str) -> bool:
    """Return whether the two of a dialog came together.

    Examples
    --------
    >>> is_familiar("q1ec3"), is_familiar("q5ec3")
    (True, False)
    """
    quad, _, conversation = place(dialog)
    return conversation in FAMILIAR["early" if quad <= 4 else "late"]


def giver(dialog: str) -> str:
    """Return who gave the route in a dialog.

    Examples
    --------
    >>> giver("q1ec1"), giver("q1ec7"), giver("q1nc7")
    ('q1e-a1', 'q1e-a1', 'q1n-a1')
    """
    quad, sight, conversation = place(dialog)
    return f"q{quad}{sight}-{GIVERS[conversation]}"


def same_map(words: Mapping[str, Counter[str]]) -> pl.DataFrame:
    """Return, for each dialog, the one of its quad with the same map by design, and the nearest by words.

    Nearness is the cosine of log(1 + count) · log(dialogs / dialogs with the word), over the giver's words.
    """
    spread = Counter(word for found in words.values() for word in found)
    weights = {
        dialog: {
            word: math.log1p(count) * math.log(len(words) / spread[word]) for word, count in found.items()
        }
        for dialog, found in words.items()
    }
    length = {dialog: math.sqrt(math.fsum(x * x for x in w.values())) for dialog, w in weights.items()}
    rows = []
    for dialog in words:
        others = [other for other in words if other != dialog and other[:3] == dialog[:3]]
        designed = next((other for other in others if giver(other) == giver(dialog)), None)
        near = {other: _overlap(weights[dialog], weights[other]) / (length[other] or 1.0) for other in others}
        nearest = max(near, key=lambda other: near[other]) if near else None
        rows.append({"dialog": dialog, "by_design": designed, "by_words": nearest})
    return pl.DataFrame(
        rows, schema={"dialog": pl.String, "by_design": pl.String, "by_words": pl.String}
    ).sort("dialog")


def _overlap(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    return math.fsum(weight * other.get(word, 0.0) for word, weight in one.items())


def place(dialog: str) -> tuple[int, str, int]:
    """Return the quad of a dialog, ``"e"`` for eye contact or ``"n"`` for none, and its conversation.

    Examples
    --------
    >>> place("q4nc1")
    (4, 'n', 1)
    """
    found = DIALOG.fullmatch(dialog)
    if found is None:
        raise DataError(f"{dialog!r} is not the name of a dialog such as 'q1ec1'.")
    return int(found[1]), found[2], int(found[3])
