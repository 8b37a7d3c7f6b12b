"""What a report says of each person: the profile, every step, every segment and what was said.

Everything is laid out for everybody at once and cut into episodes once, so that the work grows with the
number of steps and not with its square.

A number that is not finite is null. A step with a ``probability`` of 0 whose ``unexpectedness`` is null is
infinitely unexpected: the person's η is infinite, and another action was the best one. Times are null where
nobody recorded them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars import selectors as cs
from scipy.stats import rankdata

from fidm.behind import KEYS, Words
from fidm.channels import channel_words, parameter_words
from fidm.cohort import Cohort
from fidm.fit.profile import FEWEST_FOR_SHARES, SENSITIVITY, STATUSES, TOLD_APART, Profile
from fidm.grounding.review.verdicts import doubt_in_words
from fidm.io.columns import COLUMN as EXCLUDED
from fidm.model.gaps import segment_uses
from fidm.pages import map_scene
from fidm.present.numbers import DIGITS, flag_text, percent_text, rounded
from fidm.report import parts as words
from fidm.report.opening import Key, Known
from fidm.tasks.model import TaskModel
from fidm.types import Progress

STEPS = {
    "step": "step", "segment": "segment", "action": "action", "is_move": "move", "inferred": "inferred",
    "counts": "counts", "best": "best", "probability": "probability", "unexpectedness": "unexpectedness",
    "q_gap": "q_gap", "percentile": "percentile", "turn": "turn", "word_start": "from", "word_end": "to",
    "cell": "cell", "next_cell": "next_cell", "where": "where",
}  # fmt: skip
"""The columns of the actions, and what they are called in a person's steps."""

EFFORT = ("observed", "expected", "residual", "own_z")
"""What is shown of a segment in each channel."""


@dataclass(frozen=True, slots=True, eq=False)
class Tables:
    """Everybody's tables, cut into episodes."""

    cohort: Cohort
    keys: list[Key]
    steps: Mapping[Key, pl.DataFrame]
    effort: Mapping[Key, pl.DataFrame]
    grounded: Mapping[Key, pl.DataFrame] | None
    turns: Mapping[Key, pl.DataFrame]
    task: list[TaskModel]
    scene: Mapping[str, int]

    @classmethod
    def of(cls, known: Known) -> Tables:
        """Cut everybody's tables."""
        cohort, by_name = known.cohort, {task.name: task for task in known.tasks}
        keys = known.cohort.episode_keys()
        single = known.tasks[0] if len(known.tasks) == 1 else None
        task = [single or by_name[name] for name in keys["task"].to_list()]
        drawn = [one.name for one in known.tasks if one.has_places]
        actions = known.behind.actions.with_columns(**_cells(cohort, task))
        blank = [name for name in STEPS if name not in actions.columns]
        said = known.behind.words
        actions = actions.with_columns(
            *(pl.lit(None).alias(name) for name in blank), action=_actions(actions, cohort, task, said)
        )
        return cls(
            cohort,
            list(zip(keys["participant"], keys["episode"], strict=True)),
            _cut(actions.select(*KEYS, **{new: old for old, new in STEPS.items()})),
            _cut(_with_times(known)),
            None if said is None else _cut(said.segments),
            {} if said is None else _cut(said.turns),
            task,
            {name: i for i, name in enumerate(drawn)},
        )

    def episodes_of(self, row: int) -> range:
        """Return the numbers of a person's episodes."""
        return range(int(self.cohort.episode_offsets[row]), int(self.cohort.episode_offsets[row + 1]))


def _cut(table: pl.DataFrame) -> dict[Key, pl.DataFrame]:
    """A table by participant and episode, its numbers rounded; those that are not finite are null."""
    times = cs.by_name("start_s", "end_s", require_all=False)
    finite = table.with_columns(pl.when(cs.float().is_finite()).then(cs.float()))
    short = finite.with_columns((cs.float() - times).round_sig_figs(DIGITS), times.cast(pl.Float64).round(2))
    short = short.with_columns(
        pl.when(cs.float() == 0).then(0.0).otherwise(cs.float()).name.keep()
    )  # no -0.0
    parts = short.partition_by(*KEYS, maintain_order=True, as_dict=True, include_key=False)
    return {(str(who), str(episode)): part for (who, episode), part in parts.items()}


def _with_times(known: Known) -> pl.DataFrame:
    """The segments' effort, with their times and status where the study's own table has them."""
    table = known.behind.segments
    own = [name for name in ("start_s", "end_s", "status") if name in known.cohort.segments.columns]
    return table.with_columns(known.cohort.segments[name] for name in own if name not in table.columns)


def _actions(
    actions: pl.DataFrame, cohort: Cohort, task: Sequence[TaskModel], said: Words | None
) -> pl.Series:
    """What each step did; leaving, which a task leaves out, is called as the grounding or task calls it."""
    of_step = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.step_offsets))
    ways_out = [None if one.grid is None or one.grid.spec.exit is None else one.grid.spec.exit.action
                for one in task]  # fmt: skip
    named = actions.select(
        *KEYS,
        "step",
        pl.col("action").cast(pl.String),
        left=pl.Series(ways_out, dtype=pl.String).gather(of_step),
    )
    if said is not None:
        grounded = said.moves.select(*KEYS, "step", grounded="action")
        named = named.join(grounded, on=[*KEYS, "step"], how="left", maintain_order="left")
        named = named.with_columns(left=pl.coalesce("grounded", "left"))
    return named.select(pl.coalesce("action", "left"))["action"]


def _cells(cohort: Cohort, task: Sequence[TaskModel]) -> dict[str, NDArray[np.int64]]:
    """The cell each step was taken in and the one it led to; -1 where there is none."""
    n = cohort.n_steps
    of_step = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.step_offsets))
    following = np.append(cohort.state[1:], -1).astype(np.int64)
    has_steps = np.flatnonzero(np.diff(cohort.step_offsets) > 0)
    following[cohort.step_offsets[has_steps + 1] - 1] = cohort.end_state[has_steps]
    cell, after = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    kinds = list({id(one): one for one in task}.values())
    for one in kinds:
        if not one.has_places:
            continue
        mine = np.array([other is one for other in task])[of_step]
        if one.grid is None:
            own = np.flatnonzero(mine)
            cell[own], after[own] = _places(one, cohort, own, following[own])
            continue
        size, end = one.grid.grid.n_cells, one.grid.end
        for found, state in ((cell, cohort.state.astype(np.int64)), (after, following)):
            found[mine] = np.where((state[mine] >= 0) & (state[mine] < end), state[mine] % size, -1)
        is_last = mine & ((following < 0) | (following == end)) & (cell >= 0)
        for i in np.flatnonzero(is_last).tolist():  # nobody recorded the end, or a movement led to it
            name = one.actions[cohort.action[i]] if cohort.action[i] >= 0 else ""
            there = one.grid.after(int(cohort.state[i]), name)
            after[i] = cell[i] if there < 0 and following[i] < 0 else there
    return {"cell": cell, "next_cell": after}


def _places(
    task: TaskModel, cohort: Cohort, steps: NDArray[np.int64], following: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The place of steps in a task with coordinates, and the one each led to."""
    place, state, action = task.place, cohort.state[steps], cohort.action[steps]
    there = following.copy()
    for i in np.flatnonzero((following < 0) & (action >= 0)).tolist():  # nobody recorded the end
        first, last = task.successor_offsets[task.pair(int(state[i]), int(action[i])) :][:2].tolist()
        there[i] = task.successor[first] if last - first == 1 else -1
    return place[state], np.where(there >= 0, place[there], -1)


def episode_part(known: Known, tables: Tables, e: int, number: int) -> dict[str, Any]:
    """One episode of a person; in a de-identified report episodes and segments are numbered anew."""
    key, task = tables.keys[e], tables.task[e]
    steps = tables.steps.get(key)
    columns = {name: [] if steps is None else steps[name].to_list() for name in STEPS.values()}
    segments = _segments(known, tables, key, columns["segment"])
    turns = _turns(known, tables, key, segments)
    if known.is_deidentified:
        renamed = {one["segment"]: str(i) for i, one in enumerate(segments, start=1)}
        columns["segment"] = [renamed.get(name) for name in columns["segment"]]
        segments = [{**one, "segment": renamed[one["segment"]]} for one in segments]
        turns = [{**one, "segment": renamed.get(one["segment"])} for one in turns]
    return {
        "episode": str(number + 1) if known.is_deidentified else key[1],
        "task": task.name,
        "scene": tables.scene.get(task.name),
        "language": known.languages.get(key),
        "steps": columns,
        "segments": segments,
        "turns": turns,
    }


def _segments(known: Known, tables: Tables, key: Key, of_step: Sequence[str | None]) -> list[dict[str, Any]]:
    """Every segment: as it was grounded where that is known, with its effort."""
    effort = tables.effort.get(key)
    costs = {} if effort is None else {row["segment"]: row for row in effort.iter_rows(named=True)}
    listed: dict[str, dict[str, Any]] = costs
    if tables.grounded is not None and key in tables.grounded:
        listed = {row["segment"]: row for row in tables.grounded[key].iter_rows(named=True)}
    spans: dict[str, list[int]] = {}
    for i, name in enumerate(of_step):
        if name is not None:
            spans.setdefault(name, [i, i])[1] = i
    return [
        {
            "segment": name,
            "status": row.get("status"),
            "program": row.get("program"),
            "probability": row.get("probability"),
            "doubts": [doubt_in_words(code) for code in (row.get("doubts") or "").split()],
            "n_moves": costs.get(name, {}).get("n_moves"),
            "first_turn": row.get("first_turn"),
            "last_turn": row.get("last_turn"),
            "start_s": row.get("start_s"),
            "end_s": row.get("end_s"),
            "steps": spans.get(name),
            "reviews": known.reviews.get((*key, name), []),
            "effort": {
                channel: {part: costs[name][f"{channel}_{part}"] for part in EFFORT}
                for channel in known.found.channels
                if name in costs and costs[name][f"{channel}_observed"] is not None
            },
        }
        for name, row in listed.items()
    ]


def _turns(
    known: Known, tables: Tables, key: Key, segments: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """What was said, turn by turn, each with the segment it belongs to."""
    table = tables.turns.get(key)
    if table is None or tables.grounded is None:
        return []
    grounded = tables.grounded.get(key)
    of_turn: dict[int, str] = {}
    if grounded is not None:
        for name, own in grounded.select("segment", "turns").iter_rows():
            of_turn |= {int(turn): name for turn in own.split()}
    return [
        {
            "turn": row["turn"],
            "role": row["role"],
            "speaker": None if known.is_deidentified else row["speaker"],
            "start_s": row["start_s"],
            "end_s": row["end_s"],
            "text": None if known.is_deidentified else row["text"],
            "segment": of_turn.get(row["turn"]),
        }
        for row in table.iter_rows(named=True)
    ]


def shared_part(known: Known, *, chosen: Sequence[str] | None = None) -> dict[str, Any]:
    """Return what all people's parts refer to: maps, channels, where everybody lies, and their list."""
    of_channel = {channel.name: channel for channel in known.fit.channels}
    channels = []
    for name in known.found.channels:
        said = channel_words(of_channel[name])
        yes_no = name in known.found.yes_no
        channels.append({"name": name, "words": said.name, "unit": said.unit or None, "yes_no": yes_no})
    tops = known.found.counted["unexpectedness"].filter(known.found.counted["unexpectedness"].is_finite())
    return {
        "scenes": [map_scene(task) for task in known.tasks if task.has_places],
        "channels": channels,
        "parameters": _spreads(known.profile),
        "level": known.profile.level,
        "unexpectedness": {
            "p90": rounded(tops.quantile(0.9, "linear")) if len(tops) else None,
            "p99": rounded(tops.quantile(0.99, "linear")) if len(tops) else None,
            "top": rounded(float(tops.max())) if len(tops) else None,  # type: ignore[arg-type]
        },
        "label": None if known.label is None else words.column_words(known.label),
        "statuses": dict(words.GROUNDED),
        "has_words": known.behind.words is not None,
        "has_speech": known.has_speech,
        "deidentified": known.is_deidentified,
        "people": _listed(known, chosen),
    }


def _listed(known: Known, chosen: Sequence[str] | None) -> list[dict[str, Any]]:
    """What the list of people shows, sorts and filters by."""
    profile, row_of = known.profile, {name: row for row, name in enumerate(known.cohort.ids)}
    means = dict(known.found.people.select("participant", "mean_unexpectedness").iter_rows())
    rows = []
    for n, name in enumerate(row_of if chosen is None else chosen, start=1):
        row = row_of[name]
        values = dict(zip(profile.parameters, map(rounded, profile.estimate[row]), strict=True))
        about = _about(known, row)
        rows.append(
            {
                "n": n,
                "id": name,
                "label": about["label"],
                "split": about["split"],
                "flags": flags(known, row),
                "values": {**values, "mean_unexpectedness": rounded(means.get(name))},
            }
        )
    return rows


def _spreads(profile: Profile) -> list[dict[str, Any]]:
    """Where people lie in each parameter; ``n`` says of how many finite estimates the numbers are."""
    rows = []
    for k, name in enumerate(profile.parameters):
        values = profile.estimate[:, k]
        finite = values[np.isfinite(values)]
        low, p10, middle, p90, high = (
            np.quantile(finite, (0, 0.1, 0.5, 0.9, 1)) if len(finite) else np.full(5, np.nan)
        )
        if len(finite) < FEWEST_FOR_SHARES:
            p10 = middle = p90 = np.nan
        rows.append(
            {
                "parameter": name,
                "words": parameter_words(name),
                "unit": None,
                "log": name == SENSITIVITY,
                "n": len(finite),
                "n_infinite": int(np.isinf(values).sum()),
                "p10": rounded(p10),
                "median": rounded(middle),
                "p90": rounded(p90),
                "low": rounded(low),
                "high": rounded(high),
            }
        )
    return rows


def people_parts(
    known: Known, *, chosen: Sequence[str] | None = None, on_progress: Progress | None = None
) -> Iterator[dict[str, Any]]:
    """Give each person's part, in the order of the cohort or of those chosen."""
    tables = Tables.of(known)
    row_of = {name: row for row, name in enumerate(known.cohort.ids)}
    places, rests = places_among(known.profile), _effort_rests_on(known)
    wanted = list(row_of) if chosen is None else list(chosen)
    for i, name in enumerate(wanted):
        if on_progress and i % 20 == 0:
            on_progress("people", i, len(wanted))
        row, about = row_of[name], _about(known, row_of[name])
        about["facts"] += [["segments behind effort", rests[name]]] if name in rests else []
        yield {
            "id": name,
            **about,
            "profile": _profile(known, row, places),
            "episodes": [episode_part(known, tables, e, i) for i, e in enumerate(tables.episodes_of(row))],
        }
    if on_progress:
        on_progress("people", len(wanted), len(wanted))


def _effort_rests_on(known: Known) -> dict[str, str]:
    """How many segments are behind each person's effort, how many await review, and who made their moves."""
    if known.behind.words is None:
        return {}
    columns = pl.len(), pl.sum("awaits_review", "n_moves", "n_inferred")
    found = segment_uses(known.cohort).filter("in_effort").group_by("participant").agg(*columns)
    return {
        name: f"{n:,}, of which {waiting:,} {'awaits' if waiting == 1 else 'await'} review"
        + (f"; {percent_text(filled_in / moves)} of their moves filled in by the planner" if moves else "")
        for name, n, waiting, moves, filled_in in found.iter_rows()
    }


def _about(known: Known, row: int) -> dict[str, Any]:
    """Label, split and what else is known of a person."""
    cells = known.cohort.participants.row(row, named=True)
    cells.pop("participant")
    cells.pop(EXCLUDED, None)
    label = None if known.label is None else cells.pop(known.label, None)
    split = cells.pop("split", None)
    facts = [] if known.is_deidentified else [[words.column_words(k), words.raw(v)] for k, v in cells.items()]
    return {
        "label": None if label is None else str(label),
        "split": None if split is None else str(split),
        "facts": [fact for fact in facts if fact[1] is not None],
    }


def places_among(profile: Profile) -> NDArray[np.float64]:
    """Return the share of the others who lie below each person, in per cent; NaN where there is no estimate.

    Nobody has a place in a parameter in which people may be indistinguishable: where its estimates may
    account for next to none of the differences among them.
    """
    found = np.full(profile.estimate.shape, np.nan)
    same = profile.reliability[:, 1] < TOLD_APART
    for k in range(profile.estimate.shape[1]):
        is_known = ~np.isnan(profile.estimate[:, k])
        if is_known.sum() >= FEWEST_FOR_SHARES and not same[k]:
            below = rankdata(profile.estimate[is_known, k]) - 1  # ties count half
            found[is_known, k] = 100 * below / (is_known.sum() - 1)
    return found


def _profile(known: Known, row: int, places: NDArray[np.float64]) -> list[dict[str, Any]]:
    found, profile = [], known.profile
    in_doubt = known.cohort.ids[row] in known.gaps.doubted
    for k, name in enumerate(profile.parameters):
        status = STATUSES[int(profile.status[row, k])]
        said = words.against(profile, row, k, known.why_not(row, k) if not profile.n[row, k] else "")
        if k and in_doubt and profile.n[row, k] and status != "moves_in_doubt":
            said = " ".join(filter(None, (said, words.IN_DOUBT)))
        found.append(
            {
                "parameter": name,
                "words": parameter_words(name),
                "estimate": rounded(profile.estimate[row, k]),
                "low": rounded(profile.low[row, k]),
                "high": rounded(profile.high[row, k]),
                "status": status,
                "n": int(profile.n[row, k]),
                "rests_on": words.rests_on(name, int(profile.n[row, k])),
                "percentile": rounded(places[row, k]),
                "said": said,
            }
        )
    return found


def flags(known: Known, row: int) -> list[str]:
    """Return what is to be said against a person's estimates, in a few words each."""
    profile, found = known.profile, []
    for k, name in enumerate(profile.parameters):
        status, n = STATUSES[int(profile.status[row, k])], int(profile.n[row, k])
        found.append((name, flag_text(name, status, n, "" if n else known.why_not(row, k))))
    return [f"{parameter_words(name)}: {said}" for name, said in found if said]
