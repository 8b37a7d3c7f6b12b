"""Many dialogs become a cohort, with everything needed to lead each move back to the words.

:func:`ground` is what :func:`fidm.ground` runs. What it returns holds the cohort, a table of segments with
their programs and alternatives, a table of moves with the words they came from, and where it all came from.
Every trace is checked as in the paper, anew and not by the code that made it: it must start at the entrance,
follow the rules of its task step by step, buy and pay only where that can be done, have as many moves as its
segments say, and its segments must follow each other in time.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, astuple, dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

import fidm
from fidm.cohort import (
    ANY_SCRIPT,
    NO_SCRIPT,
    PAUSES_INCLUDED,
    PROBLEM_SCHEMA,
    SCRIPT,
    Cohort,
    offsets_of,
)
from fidm.errors import GroundingError, Problem, few, remedy
from fidm.grounding.base import Grounder, Reading
from fidm.grounding.dialog import GroundedDialog, Path, Reader, Settings, follow_path, ground_dialog
from fidm.grounding.route.program import Program, write_program
from fidm.grounding.route.replay import Terrain
from fidm.grounding.rules.grounder import Rules
from fidm.grounding.rules.language import called, languages
from fidm.grounding.rules.romanised import is_romanised
from fidm.grounding.segment import Segmenter, cut_dialog, script_of
from fidm.io.columns import excluded_people
from fidm.io.dialogs import shows_pauses
from fidm.io.sheets import typed
from fidm.talk import Transcript
from fidm.tasks.model import TaskModel
from fidm.tasks.stack import TaskSet, follow, trace_problems
from fidm.types import Progress

NOTHING_SAID = "No moves were read."
"""What is said of a dialog without a single action."""


def trace_checks(task: TaskModel, cohort: Cohort, dialogs: Sequence[GroundedDialog]) -> pl.DataFrame:
    """Return what is wrong with any trace, as a table of problems; empty where all are sound."""
    tasks = TaskSet.of(task)
    followed = follow(tasks, cohort)
    rows: list[tuple[str, int | None, str, str, str]] = []
    owner = cohort.ids.gather(cohort.episode_owner()).to_list()
    moves = {i for i, name in enumerate(task.actions) if name in ("N", "S", "E", "W")}
    for e, dialog in enumerate(dialogs):
        first, last = int(cohort.step_offsets[e]), int(cohort.step_offsets[e + 1])
        if first == last:
            rows.append(("steps", None, owner[e], NOTHING_SAID, "Does the participant say where to go?"))
        elif _cell(task, int(cohort.state[first])) != _cell(task, task.start):
            rows.append(("steps", 1, owner[e], "The trace does not start at the entrance.", ""))
        low, high = int(cohort.segment_offsets[e]), int(cohort.segment_offsets[e + 1])
        if cohort.segment is not None:
            moved = np.isin(cohort.action[first:last], list(moves))
            counted = np.bincount(
                cohort.segment[first:last][moved & (cohort.segment[first:last] >= 0)], minlength=high - low
            )
            said = cohort.segments["n_moves"][low:high].to_numpy()
            if not np.array_equal(counted, said):
                rows.append(
                    ("segments", None, owner[e], "Segments say another number of moves than there are.", "")
                )
        ends = [
            (one.effort.start_s, one.effort.end_s)
            for one in dialog.segments
            if one.effort.start_s is not None
        ]
        for (_, end), (start, _) in pairwise(ends):
            if end is not None and start is not None and start < end - 1e-6:
                rows.append(("segments", None, owner[e], "Segments overlap in time, or are out of order.",
                             "Are the times of this file in order?"))  # fmt: skip
                break
    found = pl.DataFrame(rows, schema=PROBLEM_SCHEMA, orient="row")
    return pl.concat([found, trace_problems(tasks, cohort, followed)])


def _cell(task: TaskModel, state: int) -> int:
    """Where a state is, whatever phase was opened in it before the first step."""
    return state if task.grid is None else state % task.grid.grid.n_cells


SEGMENT_SCHEMA = {
    "participant": pl.String,
    "episode": pl.String,
    "segment": pl.String,
    "status": pl.String,
    "grounder": pl.String,
    "program": pl.String,
    "probability": pl.Float64,
    "doubts": pl.String,
    "n_actions": pl.Int32,
    "n_moves": pl.Int32,
    "n_inferred": pl.Int32,
    "turns": pl.String,
    "first_turn": pl.Int32,
    "last_turn": pl.Int32,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "duration_s": pl.Float64,
    "n_characters": pl.Int32,
    "n_turns": pl.Int32,
    "pause_s": pl.Float64,
    "opened": pl.String,
    "reached": pl.String,
    "closed_by": pl.String,
    "readings": pl.String,
}
"""The columns of the table of grounded segments; turns are counted from 1 and set apart by spaces."""

MOVE_SCHEMA = {
    "participant": pl.String,
    "episode": pl.String,
    "step": pl.Int32,
    "segment": pl.String,
    "action": pl.String,
    "inferred": pl.Boolean,
    "instruction": pl.String,
    "turn": pl.Int32,
    "word_start": pl.Int32,
    "word_end": pl.Int32,
    "probability": pl.Float64,
}
"""The columns of the table that leads every action back to the words it came from."""


@dataclass(frozen=True, slots=True, eq=False)
class Grounded:
    """Dialogs turned into moves.

    Parameters
    ----------
    cohort : Cohort
        The people, their steps and their segments; ready to be fitted.
    segments : DataFrame
        Every segment with its program, its alternatives and its doubts.
    moves : DataFrame
        Every action with the words it came from.
    checks : DataFrame
        What structural checks found wrong; empty where every trace is sound.
    provenance : mapping
        Which grounder, which version, which settings.
    dialogs : tuple of GroundedDialog
        The dialogs themselves.
    terrain : Terrain
        The map.
    settings : Settings
        What was set.
    """

    cohort: Cohort
    segments: pl.DataFrame
    moves: pl.DataFrame
    checks: pl.DataFrame
    provenance: Mapping[str, Any]
    dialogs: tuple[GroundedDialog, ...] = field(repr=False)
    terrain: Terrain = field(repr=False)
    settings: Settings = field(repr=False)

    def shares(self) -> dict[str, float]:
        """Return the share of segments of each status, and the share of moves that are inferred."""
        counts = self.segments.group_by("status").len().sort("status")
        total = max(1, self.segments.height)
        found = {str(status): n / total for status, n in counts.iter_rows()}
        moves = int(self.segments["n_moves"].sum())
        found["inferred_moves"] = int(self.segments["n_inferred"].sum()) / moves if moves else 0.0
        return found

    def draws(self, n: int, *, seed: int) -> Iterator[Cohort]:
        """Sample whole groundings: every segment's reading by its probability, then replayed.

        In a draw every move counts, since the doubt is in the sampling. Readings of later segments are those
        proposed after the best reading of the earlier ones.

        Parameters
        ----------
        n : int
            How many cohorts.
        seed : int
            The same seed gives the same draws, in any order of the people.
        """
        if n < 1 or seed < 0:
            raise GroundingError(f"n is {n} and seed is {seed}; n must be 1 or more and seed 0 or more.")
        for draw in range(n):
            paths = []
            for dialog in self.dialogs:
                who = f"{dialog.transcript.participant}\0{dialog.transcript.episode}"
                rng = np.random.default_rng([seed, draw, zlib.crc32(who.encode())])
                chosen = [_drawn(one.proposal.readings, rng) for one in dialog.segments]
                paths.append(follow_path(dialog, self.terrain, self.settings.weighing, chosen=chosen))
            drawn = _cohort(self.dialogs, paths, self.terrain.task.name, self.provenance)
            yield drawn.with_participants(self.cohort.participants)

    def __repr__(self) -> str:
        shares = ", ".join(f"{name} {share:.0%}" for name, share in self.shares().items())
        return f"Grounded({len(self.dialogs)} dialogs, {self.segments.height} segments: {shares})"


def _drawn(readings: Sequence[Reading], rng: np.random.Generator) -> Program:
    if len(readings) == 1:
        rng.random()
        return readings[0].program
    total = np.cumsum([reading.probability for reading in readings])
    return readings[int(np.searchsorted(total, rng.random() * total[-1], side="right"))].program


def ground(
    transcripts: Iterable[Transcript],
    task: TaskModel,
    *,
    by: Grounder | None = None,
    settings: Settings | None = None,
    segmenter: Segmenter = cut_dialog,
    workers: int = 1,
    on_progress: Progress | None = None,
) -> Grounded:
    """Turn dialogs into moves.

    Parameters
    ----------
    transcripts : iterable of Transcript
        The dialogs, for instance from :func:`fidm.read`.
    task : TaskModel
        The task they are about; it must have been drawn as a map.
    by : Grounder, optional
        Who reads them; the rules of this package if left out. One that has a method ``about`` is asked for
        the grounder of each participant.
    settings : Settings, optional
        What counts as a character and as a pause, what ends a segment, what doubtful moves count.
    segmenter : callable, optional
        Another rule that cuts a dialog into segments, see :func:`fidm.grounding.segment.cut_dialog`.
    workers : int
        How many dialogs are read at the same time. Worth it for a language-model server; changes no number.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.

    Examples
    --------
    >>> import fidm
    >>> from fidm.talk import Transcript, Turn
    >>> said = Turn("PAR", 0.0, 2.0, "go left one square and up three squares", role="participant")
    >>> task = fidm.load_task("grocery")
    >>> grounded = fidm.ground([Transcript("P1", (said,))], task)
    >>> [task.actions[action] for action in grounded.cohort.action]
    ['W', 'N', 'N', 'N']
    """
    grounder = by if by is not None else Rules()
    chosen = settings or Settings()
    if not isinstance(task, TaskModel):
        raise GroundingError(f"task must be a TaskModel, not a {type(task).__name__}. See fidm.load_task.")
    if not callable(getattr(grounder, "ground", None)):
        raise GroundingError(f"by must be a grounder, such as fidm.Rules(), not a {type(by).__name__}.")
    transcripts = [transcripts] if isinstance(transcripts, Transcript) else transcripts
    terrain = Terrain(task)
    reader = Reader(terrain, chosen, segmenter)
    items = list(transcripts)
    odd = [type(item).__name__ for item in items if not isinstance(item, Transcript)]
    if odd:
        raise GroundingError(f"fidm.ground takes transcripts, not a {odd[0]}. fidm.read makes them.")
    keys = [(item.participant, item.episode) for item in items]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise GroundingError(f"Two dialogs are of {twice[0]!r}, episode {twice[1]!r}.")
    check_letters(items, chosen.language)
    spoken, known = [reader.language_of(item) for item in items], languages()
    strange = [
        item for item, code in zip(items, spoken, strict=True) if not chosen.language and code not in known
    ]
    if strange:
        raise GroundingError(
            f"{len(strange)} of {len(items)} dialogs name a language that cannot be read, the first of them "
            f"that of {strange[0].participant!r}. Built in: {', '.join(languages())}. Say which it is "
            f"({remedy('language', 'language in grounding.toml')}), or give a language file."
        )
    timed = [item for item in items if any(turn.is_timed for turn in item.turns)]
    is_mixed = len({shows_pauses(item.format) for item in timed}) == 2
    if is_mixed:  # all are measured in the way in which all can be
        chosen = replace(chosen, counting=replace(chosen.counting, duration="turns"))
        reader = Reader(terrain, chosen, segmenter)
    for language in sorted(set(spoken)):
        reader.vocabulary(language)
    say = on_progress or (lambda doing, done, of: None)
    found: list[tuple[GroundedDialog, Path]] = []

    about = getattr(grounder, "about", None)

    def one(item: Transcript) -> tuple[GroundedDialog, Path]:
        dialog = ground_dialog(item, grounder if about is None else about(item.participant), reader)
        path = follow_path(dialog, terrain, chosen.weighing)
        return replace(dialog, places=None), path  # where the figure may stand is large, and used by now

    say("grounding", 0, len(items))
    if workers <= 1:
        for item in items:
            found.append(one(item))
            say("grounding", len(found), len(items))
    else:
        with ThreadPoolExecutor(workers) as pool:
            for made in pool.map(one, items):
                found.append(made)
                say("grounding", len(found), len(items))
    dialogs, paths = [dialog for dialog, _ in found], [path for _, path in found]
    if is_mixed:
        dialogs = [
            dialog if shows_pauses(dialog.transcript.format) else dialog.without_pauses()
            for dialog in dialogs
        ]
    provenance = {
        **grounder.provenance(),
        "fidm": fidm.__version__,
        "dialogs_sha256": _digest(items),
        "task": task.name,
        "task_fingerprint": task.fingerprint,
        "counting": asdict(chosen.counting),
        "segmenter": f"{segmenter.__module__}.{getattr(segmenter, '__qualname__', type(segmenter).__name__)}",
        "segmenting": asdict(chosen.segmenting),
        "weighing": asdict(chosen.weighing),
        "language": chosen.language,
        "context_turns": chosen.context_turns,
    }
    return assemble(dialogs, terrain, chosen, provenance, paths=paths)


def check_letters(items: Sequence[Transcript], language: str = "") -> None:
    """Raise an error that names every dialog in romanised Chinese."""
    problems = []
    for item in items:
        named = language or item.language
        if is_romanised(item, called(named) or named):
            tiers = dict.fromkeys(repr(turn.speaker) for turn in item if turn.role == "participant")
            where = f"{item.source or item.participant}, speaker {few(tiers)}"
            problems.append(Problem("is in Latin letters.", where))
    if problems:
        raise GroundingError(
            f"{len(problems)} of {len(items)} dialogs are in romanised Chinese (such as Jyutping, Yale or "
            "pinyin), which cannot be read: characters are needed, since one syllable is many words. Where "
            "the file has a tier of characters, make that one the participant and the romanised one other "
            f"({remedy('roles of fidm.read', '[speakers] in grounding.toml')}); else put the transcript into "
            "characters first.",
            problems=problems,
        )


def _digest(items: Sequence[Transcript]) -> str:
    """A hash of what was said, by whom and when; it tells whether two groundings read the same dialogs."""
    found = hashlib.sha256()
    for item in sorted(items, key=lambda item: (item.participant, item.episode)):
        found.update(repr((item.participant, item.episode, len(item))).encode())
        for turn in item.turns:
            found.update(
                repr((turn.role, turn.start_s, turn.end_s, turn.text)).encode(errors="surrogatepass")
            )
    return found.hexdigest()


def assemble(
    dialogs: Sequence[GroundedDialog],
    terrain: Terrain,
    settings: Settings,
    provenance: Mapping[str, Any],
    *,
    paths: Sequence[Path] | None = None,
) -> Grounded:
    """Put grounded dialogs together: the cohort, the tables, the checks; ``paths`` if they are known."""
    if paths is None:
        paths = [follow_path(dialog, terrain, settings.weighing) for dialog in dialogs]
    order = list(dict.fromkeys(dialog.transcript.participant for dialog in dialogs))
    place = {name: i for i, name in enumerate(order)}
    both = sorted(zip(dialogs, paths, strict=True), key=lambda one: place[one[0].transcript.participant])
    dialogs, paths = [dialog for dialog, _ in both], [path for _, path in both]
    cohort = _cohort(dialogs, paths, terrain.task.name, provenance)
    return Grounded(
        cohort=cohort,
        segments=_segment_table(dialogs, paths, terrain),
        moves=_move_table(dialogs, paths, terrain),
        checks=trace_checks(terrain.task, cohort, dialogs),
        provenance=provenance,
        dialogs=tuple(replace(dialog, places=None) for dialog in dialogs),
        terrain=terrain,
        settings=settings,
    )


def _cohort(
    dialogs: Sequence[GroundedDialog], paths: Sequence[Path], task: str, provenance: Mapping[str, Any]
) -> Cohort:
    people = list(dict.fromkeys(dialog.transcript.participant for dialog in dialogs))
    counts = dict.fromkeys(people, 0)
    for dialog in dialogs:
        counts[dialog.transcript.participant] += 1
    kept = [(dialog.segments[i], n) for dialog, path in zip(dialogs, paths, strict=True)
            for i, n in zip(path.kept, path.n_moves, strict=True)]  # fmt: skip
    segments = pl.DataFrame(
        {
            "segment": [str(one.segment.number) for one, _ in kept],
            "n_moves": [n for _, n in kept],
            "duration_s": [one.effort.duration_s for one, _ in kept],
            "n_characters": [one.effort.n_characters for one, _ in kept],
            "n_turns": [one.effort.n_turns for one, _ in kept],
            "pause_s": [one.effort.pause_s for one, _ in kept],
            "start_s": [one.effort.start_s for one, _ in kept],
            "end_s": [one.effort.end_s for one, _ in kept],
            "status": [one.status for one, _ in kept],
        },
        schema={
            "segment": pl.String, "n_moves": pl.Int32, "duration_s": pl.Float64, "n_characters": pl.Int32,
            "n_turns": pl.Int32, "pause_s": pl.Float64, "start_s": pl.Float64, "end_s": pl.Float64,
            "status": pl.String,
        },
    )  # fmt: skip
    if provenance.get("counting", {}).get("duration") == "turns":
        segments = segments.with_columns(pl.lit(True).alias(PAUSES_INCLUDED))
    scripts = [_script(dialog) for dialog in dialogs]
    if len(set(scripts) - {NO_SCRIPT}) > 1:
        of_each = [script for script, path in zip(scripts, paths, strict=True) for _ in path.kept]
        segments = segments.with_columns(
            pl.col("n_characters").alias(ANY_SCRIPT), pl.Series(SCRIPT, of_each, dtype=pl.String)
        )
    cohort = Cohort(
        participants=_people(people, dialogs),
        episodes=pl.DataFrame(
            {"episode": [dialog.transcript.episode for dialog in dialogs], "task": [task] * len(dialogs)},
            schema={"episode": pl.String, "task": pl.String},
        ),
        episode_offsets=offsets_of([counts[name] for name in people]),
        step_offsets=offsets_of([len(path.actions) for path in paths]),
        state=np.array([s for path in paths for s in path.states], dtype=np.int32),
        action=np.array([a for path in paths for a in path.actions], dtype=np.int32),
        end_state=np.array([path.end for path in paths], dtype=np.int32),
        segments=segments,
        segment_offsets=offsets_of([len(path.kept) for path in paths]),
        weight=np.array([w for path in paths for w in path.weight], dtype=np.float64),
        segment=np.array([s for path in paths for s in path.segment], dtype=np.int32),
        inferred=np.array([flag for path in paths for flag in path.inferred], dtype=np.bool_),
    )
    return one_script(cohort)


def _people(people: Sequence[str], dialogs: Sequence[GroundedDialog]) -> pl.DataFrame:
    """The table of participants, with what the files of their dialogs say of them, the first one first."""
    said: dict[str, dict[str, str]] = {name: {"participant": name} for name in people}
    for dialog in dialogs:
        own = said[dialog.transcript.participant]
        own |= {name: value for name, value in dialog.transcript.about.items() if value and name not in own}
    columns = list(dict.fromkeys(name for own in said.values() for name in own)) or ["participant"]
    table = pl.DataFrame([list(map(own.get, columns)) for own in said.values()],
                         schema=dict.fromkeys(columns, pl.String), orient="row")  # fmt: skip
    return table.with_columns(typed(column) for column in table if column.name != "participant")


def _script(dialog: GroundedDialog) -> str:
    """The script of what the participant said."""
    said = [turn.text for turn in dialog.transcript.turns if turn.role == "participant"]
    return script_of("\n".join(said)) or NO_SCRIPT


def one_script(cohort: Cohort) -> Cohort:
    """Return the same people with character counts of one script alone: of most who are not excluded.

    A Chinese character says as much as several letters, so counts of several scripts cannot be compared.
    Where two scripts have as many people, the one with more characters is kept.
    """
    if SCRIPT not in cohort.segments.columns:
        return cohort
    excluded = excluded_people(cohort.participants)["participant"]
    takes_part = ~pl.col("participant").is_in(excluded.implode())
    known = cohort.segment_table().filter(takes_part, pl.col(SCRIPT) != NO_SCRIPT)
    used = known.group_by(SCRIPT).agg(pl.col("participant").n_unique(), pl.col(ANY_SCRIPT).sum())
    most = used.sort("participant", ANY_SCRIPT, SCRIPT, descending=[True, True, False])[SCRIPT][:1]
    kept = pl.when(pl.col(SCRIPT).is_in([*most, NO_SCRIPT])).then(ANY_SCRIPT)
    return replace(cohort, segments=cohort.segments.with_columns(n_characters=kept))


def _segment_table(
    dialogs: Sequence[GroundedDialog], paths: Sequence[Path], terrain: Terrain
) -> pl.DataFrame:
    rows: dict[str, list[Any]] = {name: [] for name in SEGMENT_SCHEMA}
    moves = set(terrain.move_code)
    for dialog, path in zip(dialogs, paths, strict=True):
        actions = [0] * len(dialog.segments)
        moved = [0] * len(dialog.segments)
        inferred = [0] * len(dialog.segments)
        for (i, _), action, flag in zip(path.source, path.actions, path.inferred, strict=True):
            actions[i] += 1
            moved[i] += action in moves
            inferred[i] += flag
        for i, one in enumerate(dialog.segments):
            values = (
                dialog.transcript.participant, dialog.transcript.episode, str(one.segment.number), one.status,
                one.proposal.grounder, write_program(one.proposal.program), one.proposal.sureness,
                " ".join(one.doubts), actions[i], moved[i], inferred[i],
                " ".join(str(turn + 1) for turn in one.segment.turns), one.segment.dialog[0] + 1,
                one.segment.dialog[-1] + 1, *astuple(one.effort), " ".join(one.segment.opened),
                " ".join(one.segment.reached),
                one.segment.closed_by, write_readings(one.proposal.readings),
            )  # fmt: skip
            for name, value in zip(SEGMENT_SCHEMA, values, strict=True):
                rows[name].append(value)
    return pl.DataFrame(rows, schema=SEGMENT_SCHEMA)


def write_readings(readings: Sequence[Reading]) -> str:
    """Return readings as JSON: program, probability, and the words each instruction came from."""
    return json.dumps(
        [
            {
                "program": write_program(reading.program),
                "probability": reading.probability,
                "spans": [list(step.span) for step in reading.program],
                "sure": [step.probability for step in reading.program],
            }
            for reading in readings
        ]
    )


def _move_table(dialogs: Sequence[GroundedDialog], paths: Sequence[Path], terrain: Terrain) -> pl.DataFrame:
    rows: dict[str, list[Any]] = {name: [] for name in MOVE_SCHEMA}
    names = (*terrain.task.actions, terrain.spec.exit.action if terrain.spec.exit else "")
    for dialog, path in zip(dialogs, paths, strict=True):
        who, episode = dialog.transcript.participant, dialog.transcript.episode
        for k, ((i, number), action, flag) in enumerate(
            zip(path.source, path.actions, path.inferred, strict=True), start=1
        ):
            segment = dialog.segments[i].segment
            step = dialog.segments[i].proposal.program[number]
            turn, start = segment.turn_of(step.span[0])
            last, end = segment.turn_of(max(step.span[0], step.span[1] - 1))
            end = end + 1 if last == turn else len(dialog.transcript.turns[turn].text)
            values = (
                who, episode, k, str(segment.number), names[action], flag, str(step), turn + 1, start, end,
                step.probability,
            )  # fmt: skip
            for name, value in zip(MOVE_SCHEMA, values, strict=True):
                rows[name].append(value)
    return pl.DataFrame(rows, schema=MOVE_SCHEMA)
