"""Simulated people who talk: dialogs whose every move, word and pause is known.

The way from transcripts to profiles can be run on them from end to end and compared with the truth: simulate,
write files, read, ground, replay, fit.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from fidm.cohort import Cohort, offsets_of
from fidm.errors import DataError
from fidm.grounding.route.program import write_program
from fidm.io.dialogs import formats as known_formats
from fidm.io.dialogs import write as write_dialog
from fidm.io.talk import Transcript, Transcripts
from fidm.model.channels import Channel
from fidm.model.effort import paper_channels
from fidm.simulate.acting import Actor, Stretch, Style
from fidm.simulate.cohort import (
    AgentName,
    People,
    check_agent,
    covariance_root,
    draw_truth,
    true_ways,
    valid_shifts,
)
from fidm.simulate.speaking import SHORTEST_PAUSE_MS, Dialog, Effort, Phrases
from fidm.simulate.walker import Habits, Walker
from fidm.tasks.model import TaskModel
from fidm.tasks.solve import solve
from fidm.types import Floats

__all__ = ["Style", "Talks", "simulate_talks"]

SEVEN_FORMATS = ("chat", "elan", "textgrid", "vtt", "srt", "whisper", "csv")
"""The formats dialogs are written in unless told otherwise."""


@dataclass(frozen=True, slots=True, eq=False)
class Talks:
    """Simulated dialogs and the truth about them.

    Parameters
    ----------
    transcripts : Transcripts
        The dialogs, one per person.
    cohort : Cohort
        What was really done, and what the talk really is; true parameters stand in the participants table.
    programs : tuple
        For each person, the route program of each segment as text.
    turns : tuple
        For each person, the first and the last turn of each segment, as numbers of the transcript's turns.
    inferred : bool array [N]
        For each step of the cohort, whether the person named a destination and left it to the planner.
    """

    transcripts: Transcripts
    cohort: Cohort
    programs: tuple[tuple[str, ...], ...] = field(repr=False)
    turns: tuple[tuple[tuple[int, int], ...], ...] = field(repr=False)
    inferred: NDArray[np.bool_] = field(repr=False)

    def write(self, folder: str | Path, *, formats: Sequence[str] = SEVEN_FORMATS) -> tuple[Path, ...]:
        """Write every dialog into a folder, each in the next of several formats.

        Parameters
        ----------
        folder : path
            Made if need be.
        formats : sequence of str
            Names of formats (see :func:`fidm.io.dialogs.formats`); one name writes all dialogs alike.
        """
        suffixes = {known.name: known.suffixes[0] for known in known_formats()}
        strange = [name for name in formats if name not in suffixes]
        if strange or not formats:
            raise DataError(f"formats has {strange[:1]}; it may have {', '.join(suffixes)}.")
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        found = []
        for i, transcript in enumerate(self.transcripts):
            name = formats[i % len(formats)]
            found.append(place / f"{transcript.participant}{suffixes[name]}")
            write_dialog(transcript, found[-1], format=name)
        return tuple(found)

    def __len__(self) -> int:
        return len(self.transcripts)

    def __repr__(self) -> str:
        return f"Talks({len(self)} people, {self.cohort.n_segments:,} segments)"


def simulate_talks(
    task: TaskModel,
    n: int,
    *,
    seed: int,
    language: str = "yue",
    people: People | None = None,
    style: Style | None = None,
    shifts: ArrayLike | None = None,
    first: int = 0,
    agent: AgentName = "model",
    habits: Habits | None = None,
) -> Talks:
    """Let people with known parameters do a task by telling an assessor where to go.

    Parameters
    ----------
    task : TaskModel
        A task made from a map.
    n : int
        How many people.
    seed : int
        The same seed gives the same dialogs, and people of the same parameters as
        :func:`fidm.simulate_cohort` gives.
    language : {"yue", "zh", "en"}
        What they speak.
    people : People, optional
        How they differ.
    style : Style, optional
        How they put their way into words.
    shifts : array [n, D], optional
        As in :func:`fidm.simulate_cohort`.
    first : int
        The number of the first person, to simulate many part by part.
    agent : {"model", "walker"}
        Whether people choose as the model says or walk from target to target and slip, as in
        :func:`fidm.simulate_cohort`.
    habits : Habits, optional
        How walkers go about a task. The assessor does not wait for what they never think of, nor for what
        ``style.early_request`` leaves out.

    Notes
    -----
    Talk has a floor: it cannot be shorter than the words a program needs, a segment has at least one turn,
    an utterance takes at least 0.12 s and a pause at least 0.30 s. Where less was drawn, the table of
    segments holds what the talk came to. In English the drawn number of characters is multiplied by 3.5.
    The Cantonese and Mandarin wordings were composed and not checked by a native speaker.

    Examples
    --------
    >>> import fidm
    >>> from fidm.simulate.talk import simulate_talks
    >>> talks = simulate_talks(fidm.load_task("errands"), 2, seed=1, language="en")
    >>> talks.transcripts[0].participant, len(talks.programs[0]) == len(talks.turns[0])
    ('P0000001', True)
    """
    if not all(isinstance(number, int | np.integer) for number in (n, seed, first)):
        raise DataError("n, seed and first must be whole numbers.")
    if n < 1 or first < 0 or seed < 0:
        raise DataError(f"n is {n}, first is {first} and seed is {seed}; there must be somebody to simulate.")
    check_agent(agent, habits)
    kind = people or People()
    by = Walker.of(task, kind, habits) if agent == "walker" else solve(task)
    actor = Actor(task, style or Style(), by)
    phrases = Phrases(language, actor.spec)
    channels = tuple(channel for channel in paper_channels() if channel.name in kind.truth)
    root = covariance_root(kind, len(channels))
    moved = valid_shifts(shifts, n, len(root))
    rows = []
    for j in range(first, first + n):
        rng = np.random.default_rng([seed, j])
        truth = draw_truth(rng, kind, root, moved[j - first])
        rows.append(_one_person(actor, phrases, kind, channels, truth, rng))
    ways = true_ways(np.array([row.truth for row in rows]), kind, agent, habits)
    return _assemble(rows, task.name, language, channels, ways, first)


@dataclass(slots=True, eq=False)
class _Talker:
    """One person's dialog and what is true of it."""

    truth: Floats
    stretches: list[Stretch]
    end_state: int
    dialog: Dialog
    spent: list[Effort]
    turns: list[tuple[int, int]]


def _one_person(
    actor: Actor,
    phrases: Phrases,
    kind: People,
    channels: tuple[Channel, ...],
    truth: Floats,
    rng: np.random.Generator,
) -> _Talker:
    stretches, end = actor.act(truth, rng)
    drawn = _draw(stretches, kind, channels, truth, phrases.letters_per_character, rng)
    dialog = Dialog(phrases, rng)
    _open(dialog, actor)
    spent: list[Effort] = []
    turns: list[tuple[int, int]] = []
    for stretch, effort in zip(stretches, drawn, strict=True):
        begun = len(dialog.turns)
        spent.append(dialog.describe(stretch.program, effort))
        turns.append((begun, len(dialog.turns) - 1))
        dialog.assessor_says(phrases.said("assessor", "moved"))
        for phase in stretch.opened:
            _request(dialog, actor, phase)
    is_done = end.state == actor.terrain.end
    dialog.assessor_says(phrases.said("assessor", "thanks" if is_done else "stopped"))
    return _Talker(truth, stretches, end.state, dialog, spent, turns)


def _draw(
    stretches: Sequence[Stretch],
    kind: People,
    channels: tuple[Channel, ...],
    truth: Floats,
    letters: float,
    rng: np.random.Generator,
) -> list[Effort]:
    """Draw what each segment costs; a channel nobody asked for costs as little as it can."""
    x = np.log1p([stretch.n_moves for stretch in stretches])
    found: dict[str, Floats] = {}
    for channel, theta in zip(channels, truth[1:], strict=True):
        own = kind.truth[channel.name]
        xi = own.intercept + own.slope * x + theta
        values = channel.record(channel.sample(xi, own.shape, rng))
        found[channel.column] = values * found[channel.column] if channel.column in found else values
    none = np.zeros(len(x))
    pause = found.get("pause_s", none)
    table = np.stack(
        [
            np.round(1000 * found.get("duration_s", none)),
            np.round(letters * found.get("n_characters", none)),
            found.get("n_turns", none),
            np.where(pause > 0, np.maximum(np.round(1000 * pause), SHORTEST_PAUSE_MS), 0),
        ],
        axis=1,
    ).astype(np.int64)
    return [Effort(*row) for row in table.tolist()]


def _open(dialog: Dialog, actor: Actor) -> None:
    """Let the assessor say what is to be done."""
    phrases, phases = dialog.phrases, actor.spec.phases
    targets = phases[0].targets
    later = [target for phase in phases[1:] if phase.name not in actor.told for target in phase.targets]
    words = phrases.by_verb("opening") if targets else phrases.said("assessor", "prompts")
    if later and targets:
        words = [word + phrases.tables["opening"]["later"] for word in words]
    gaps = {kind: phrases.listed(targets, kind[:-1]) for kind in ("items", "places") if targets}
    dialog.assessor_says(words, **gaps, later=phrases.listed(later, "place") if later else "")


def _request(dialog: Dialog, actor: Actor, phase: str) -> None:
    """Let the assessor ask for the targets of a phase."""
    phrases = dialog.phrases
    targets = next(entry.targets for entry in actor.spec.phases if entry.name == phase)
    words = phrases.said("request", "bakery") if targets == ("bakery",) and actor.spec.verb == "BUY" else ()
    gaps = {kind: phrases.listed(targets, kind[:-1]) for kind in ("items", "places")}
    dialog.assessor_says(words or phrases.by_verb("request"), **gaps)


def _assemble(
    rows: list[_Talker],
    task: str,
    language: str,
    channels: tuple[Channel, ...],
    ways: dict[str, Floats],
    first: int,
) -> Talks:
    truth = np.array([row.truth for row in rows])
    names = [f"P{j + 1:07d}" for j in range(first, first + len(rows))]
    columns: dict[str, Any] = {"participant": names, **ways}
    columns |= {f"true_{channel.name}": truth[:, k] for k, channel in enumerate(channels, start=1)}
    stretches = [stretch for row in rows for stretch in row.stretches]
    spent = [effort for row in rows for effort in row.spent]
    segments = pl.DataFrame(
        {
            "segment": [str(i + 1) for row in rows for i in range(len(row.stretches))],
            "n_moves": pl.Series([stretch.n_moves for stretch in stretches], dtype=pl.Int32),
            "duration_s": [effort.duration_ms / 1000 for effort in spent],
            "n_characters": pl.Series([effort.characters for effort in spent], dtype=pl.Int32),
            "n_turns": pl.Series([effort.turns for effort in spent], dtype=pl.Int32),
            "pause_s": [effort.pause_ms / 1000 for effort in spent],
        }
    )
    inferred = np.array([flag for stretch in stretches for flag in stretch.inferred], dtype=np.bool_)
    sizes = [[len(stretch.actions) for stretch in row.stretches] for row in rows]
    cohort = Cohort(
        participants=pl.DataFrame(columns),
        episodes=pl.DataFrame({"episode": ["1"] * len(rows), "task": [task] * len(rows)}),
        episode_offsets=np.arange(len(rows) + 1),
        step_offsets=offsets_of([sum(own) for own in sizes]),
        state=np.array([state for stretch in stretches for state in stretch.states], dtype=np.int32),
        action=np.array([action for stretch in stretches for action in stretch.actions], dtype=np.int32),
        end_state=np.array([row.end_state for row in rows], dtype=np.int32),
        segments=segments,
        segment_offsets=offsets_of([len(own) for own in sizes]),
        segment=np.concatenate([np.repeat(np.arange(len(own), dtype=np.int32), own) for own in sizes]),
        inferred=inferred,
    )
    dialogs = (
        Transcript(name, tuple(row.dialog.turns), language=language)
        for name, row in zip(names, rows, strict=True)
    )
    return Talks(
        transcripts=Transcripts.of(dialogs),
        cohort=cohort,
        programs=tuple(tuple(write_program(s.program) for s in row.stretches) for row in rows),
        turns=tuple(tuple(row.turns) for row in rows),
        inferred=inferred,
    )


NEEDS = {"chat": "rustling", "elan": "rustling", "srt": "rustling", "vtt": "webvtt"}
"""The formats that need a package of the extra ``speech``."""


def formats_here() -> tuple[str, ...]:
    """Return those of the seven formats that can be written with the packages that are installed."""
    return tuple(name for name in SEVEN_FORMATS if name not in NEEDS or importlib.util.find_spec(NEEDS[name]))
