"""Who has no data, whose episodes are copies of each other, whose effort awaits review, and what counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np
import polars as pl
from polars import selectors as cs

from fidm.cohort import ANY_SCRIPT, NO_SCRIPT, PAUSES_INCLUDED, SCRIPT, Cohort
from fidm.errors import count
from fidm.model.effort import awaits_review, far_longer, inferred_moves
from fidm.types import Flags, Omission, omission

FEWEST_VALUES = 3
"""Episodes with fewer different measured values may be alike by chance."""

NO_MOVES = "no moves were read"
"""Why somebody with an episode has no data."""

SCRIPT_WORDS = {"Han": "Chinese characters", "Kana": "Japanese characters"}
"""What scripts that have no letters are called."""

MOST_NAMED = 10
"""How many people are named."""


def has_data(cohort: Cohort) -> Flags:
    """Return of whom there is any step or segment."""
    steps, segments = (
        np.diff(offsets[cohort.episode_offsets]) for offsets in (cohort.step_offsets, cohort.segment_offsets)
    )
    return np.asarray((steps > 0) | (segments > 0))


def with_data(cohort: Cohort) -> Cohort:
    """Return the people of whom there is any step or segment; everybody where there is nothing of anybody."""
    has_any = has_data(cohort)
    return cohort[np.flatnonzero(has_any)] if has_any.any() and not has_any.all() else cohort


def learners_of(cohort: Cohort, said: str) -> tuple[Cohort, str]:
    """Return those of a part who have data, and what they are called: the part, or those of it with data."""
    known = with_data(cohort)
    return known, said if len(known) == len(cohort) else f"{said} with data"


def has_copies(cohort: Cohort) -> Flags:
    """Return whether two episodes of each person are exact copies: every step, and every time measured."""
    found = np.zeros(len(cohort), dtype=np.bool_)
    measured = cohort.segments.select(cs.float()).to_numpy()
    for j in np.flatnonzero(np.diff(cohort.episode_offsets) > 1).tolist():
        seen = set()
        for e in range(cohort.episode_offsets[j], cohort.episode_offsets[j + 1]):
            steps = slice(*cohort.step_offsets[e : e + 2])
            values = measured[slice(*cohort.segment_offsets[e : e + 2])]
            if len(np.unique(values[np.isfinite(values)])) < FEWEST_VALUES:
                continue
            key = (cohort.state[steps].tobytes(), cohort.action[steps].tobytes(), values.tobytes())
            found[j] |= key in seen
            seen.add(key)
    return found


def only_in_doubt(cohort: Cohort) -> Flags:
    """Return whether each person has segments, and all of them await review."""
    counts = np.diff(cohort.segment_offsets[cohort.episode_offsets])
    owner = np.repeat(np.arange(len(cohort)), counts)
    waiting = np.bincount(owner[awaits_review(cohort)], minlength=len(cohort))
    return np.asarray((counts > 0) & (waiting == counts))


def shows_no_pauses(cohort: Cohort) -> Flags:
    """Return whose segments have durations but no pauses, not even none: their files cannot show any."""
    if not {"duration_s", "pause_s"} <= set(cohort.segments.columns):
        return np.zeros(len(cohort), dtype=np.bool_)
    owner = np.repeat(np.arange(len(cohort)), np.diff(cohort.segment_offsets[cohort.episode_offsets]))
    timed, paused = (
        np.bincount(owner[cohort.segments[name].is_not_null().to_numpy()], minlength=len(cohort)) > 0
        for name in ("duration_s", "pause_s")
    )
    return np.asarray(timed & ~paused)


def scripts_used(cohort: Cohort, columns: Collection[str] = ()) -> tuple[tuple[str, str, bool], ...]:
    """Return who speaks in which script, and whether its characters are kept.

    Empty where all speak in one, or channels observe these columns, those of all scripts among them.
    """
    if ANY_SCRIPT in columns or not {SCRIPT, ANY_SCRIPT, "n_characters"} <= set(cohort.segments.columns):
        return ()
    known = cohort.segment_table().filter(pl.col(ANY_SCRIPT).is_not_null(), pl.col(SCRIPT) != NO_SCRIPT)
    used = known.select(SCRIPT, "participant", kept=pl.col("n_characters").is_not_null())
    return tuple(used.unique(maintain_order=True).iter_rows())


def named(people: Sequence[str]) -> str:
    """Return the first of these people by their names, and how many more there are."""
    more = f" and {len(people) - MOST_NAMED:,} more" if len(people) > MOST_NAMED else ""
    return ", ".join(people[:MOST_NAMED]) + more


@dataclass(frozen=True, slots=True)
class Gaps:
    """What a reader must know of people who lack data."""

    absent: tuple[str, ...] = ()  # people without an episode
    unread: tuple[str, ...] = ()  # people with an episode of which there is no step and no segment
    copied: tuple[str, ...] = ()  # people with episodes that are exact copies of each other
    doubted: tuple[str, ...] = ()  # people whose effort rests only on segments that await review
    pauseless: tuple[str, ...] = ()  # people whose files cannot show pauses
    n_paused: int = 0  # how many people's files can
    # People whose every segment has far more moves than any segment of the others.
    longer: tuple[str, ...] = ()
    # Whether durations include pauses all the same, so that they can be compared.
    pauses_included: bool = False
    # Where dialogs are in several scripts: a script, who speaks in it, and whether its characters are kept.
    scripts: tuple[tuple[str, str, bool], ...] = ()

    @classmethod
    def of(cls, cohort: Cohort, *, columns: Collection[str] = ()) -> Gaps:
        """Find them in a cohort, of whose segments channels observe these columns."""
        absent, pauseless = np.diff(cohort.episode_offsets) == 0, shows_no_pauses(cohort)
        known, (longer, _) = has_data(cohort), far_longer(cohort)
        of_each = (
            absent,
            ~absent & ~known,
            has_copies(cohort),
            only_in_doubt(cohort) & ~longer,
            pauseless,
            longer,
        )
        n_paused = int((known & ~pauseless).sum()) if "pause_s" in cohort.segments.columns else 0
        who = [tuple(cohort.ids.filter(pl.Series(flags)).to_list()) for flags in of_each]
        included = PAUSES_INCLUDED in cohort.segments.columns
        scripts = scripts_used(cohort, columns)
        return cls(who[0], who[1], who[2], who[3], who[4], n_paused, who[5], included, scripts)

    def __add__(self, other: Gaps) -> Gaps:
        both = {one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)}
        both["pauses_included"] = self.pauses_included or other.pauses_included
        return Gaps(**both)

    def say(self, what: str) -> tuple[str, ...]:
        """Return a sentence for each kind, which names the people.

        ``what`` is what the absent have none of: a dialog, an episode.

        Examples
        --------
        >>> Gaps(absent=("D06",)).say("dialog")
        ('1 participant has no dialog: D06',)
        """
        said = []
        if self.absent:
            said.append(f"{_have(self.absent)} no {what}: {named(self.absent)}")
        if self.unread:
            now = "; look at them in fidm review" if what == "dialog" else ""
            who = count(len(self.unread), "participant")
            said.append(f"{NO_MOVES} in {what}s of {who}{now}: {named(self.unread)}")
        if self.copied:
            said.append(
                f"{_have(self.copied)} episodes that are exact copies of each other: {named(self.copied)}. "
                "A copy counts once more, so intervals are too narrow: delete the copied files and run fidm "
                "again"
            )
        if self.doubted:
            who = count(len(self.doubted), "participant")
            said.append(
                f"the effort of {who} rests only on segments that await review: {named(self.doubted)}"
            )
        if self.longer:
            said.append(
                f"every segment of {named(self.longer)} has far more moves than any segment of the others: "
                "nothing is known of effort at that length, so theirs is not estimated, and nothing is "
                "learned from it. Look at them in fidm review"
            )
        if self.pauseless:
            others = ""
            if self.n_paused and self.pauses_included:
                others = ". To be comparable, the durations of all others include pauses, too"
            elif self.n_paused:
                others = "; the others' leave pauses out, so the two cannot be compared in duration"
            said.append(
                f"the files of {count(len(self.pauseless), 'participant')} cannot show pauses, so these are "
                f"unknown and part of the durations: {named(self.pauseless)}{others}"
            )
        if not all(kept for _, _, kept in self.scripts):
            said.append(_say_scripts(self.scripts))
        return tuple(said)


def _say_scripts(scripts: Sequence[tuple[str, str, bool]]) -> str:
    """Whose characters are left out, in which script they are, and what to do."""
    kept = {who: script for script, who, is_kept in scripts if is_kept}
    left_out: dict[str, list[str]] = {}
    for script, who, is_kept in scripts:
        if not is_kept:
            left_out.setdefault(script, []).append(f"{who} (in part)" if who in kept else who)
    gone = {who for _, who, is_kept in scripts if not is_kept}
    parts = [(f"those of {named(people)}", script) for script, people in left_out.items()]
    others = len(kept.keys() - gone)
    parts += [(f"and those of the other {others:,}", next(iter(kept.values())))] if others else []
    told = [
        f"{who}{'' if i else ' are'} in {SCRIPT_WORDS.get(script, f'{script} letters')}"
        for i, (who, script) in enumerate(parts)
    ]
    return (
        f"character counts of {count(len(gone), 'participant')} are left out: {', '.join(told)}, which "
        f"cannot be compared. Fit the languages apart, or use the column {ANY_SCRIPT} with the design column "
        f"{SCRIPT}"
    )


def _have(people: Sequence[str]) -> str:
    return f"{count(len(people), 'participant')} {'has' if len(people) == 1 else 'have'}"


def segment_uses(cohort: Cohort, *, inferred: float = 0.0) -> pl.DataFrame:
    """Return a row per segment in which moves were read, with what it counts in.

    The columns are ``participant``, ``awaits_review``, ``in_effort`` (not where the person's are far longer
    than all others), ``in_choices`` (whether any of its steps can count in action sensitivity, given how much
    ``inferred`` ones do), ``n_moves`` and ``n_inferred`` (those of the moves that a planner filled in).
    """
    n, keys = cohort.n_segments, cohort.episode_keys()["participant"].cast(pl.String)
    of_segment, of_step = (
        np.repeat(np.arange(cohort.n_episodes), np.diff(offsets))
        for offsets in (cohort.segment_offsets, cohort.step_offsets)
    )
    own = np.full(cohort.n_steps, -1) if cohort.segment is None else cohort.segment
    filled_in = np.zeros(cohort.n_steps, np.bool_) if cohort.inferred is None else cohort.inferred
    weight = np.where(filled_in, inferred, 1.0) * (1.0 if cohort.weight is None else cohort.weight)
    row = own + cohort.segment_offsets[of_step]
    can_count = (own >= 0) & (weight > 0) & (cohort.action >= 0)
    return pl.DataFrame(
        {
            "participant": keys.gather(of_segment),
            "awaits_review": awaits_review(cohort),
            "in_effort": ~far_longer(cohort)[0][cohort.episode_owner()[of_segment]],
            "in_choices": np.bincount(row[can_count], minlength=n) > 0,
            "n_moves": cohort.segments["n_moves"],
            "n_inferred": inferred_moves(cohort),
        }
    )


def forecast(cohort: Cohort, *, inferred: float = 0.0) -> dict[str, int]:
    """Return how many actions will count in action sensitivity, and why the others will not.

    ``counted``; ``in_doubt``: in segments that await review; ``after_doubt``: after such a segment, or after
    one that was rejected, until a named place says where the person is; ``inferred``: filled in by the
    planner, where those weigh nothing. Each action is counted once, by the first reason.
    """
    n = cohort.n_steps
    of_step = np.repeat(np.arange(cohort.n_episodes), np.diff(cohort.step_offsets))
    own = np.full(n, -1) if cohort.segment is None else cohort.segment
    waits = np.append(awaits_review(cohort), False)
    row = np.where(own >= 0, own + cohort.segment_offsets[of_step], cohort.n_segments)
    is_out = np.zeros(n, np.bool_) if cohort.weight is None else cohort.weight == 0
    filled_in = np.zeros(n, np.bool_) if cohort.inferred is None else cohort.inferred
    in_doubt, after = is_out & waits[row], is_out & ~waits[row]
    planned = ~is_out & filled_in & (inferred == 0)
    parts = {"in_doubt": in_doubt, "after_doubt": after, "inferred": planned}
    lost = {name: int(part.sum()) for name, part in parts.items()}
    return {"actions": n, "counted": n - sum(lost.values()), **lost}


FORECAST = {
    "in_doubt": "in segments that need review",
    "after_doubt": "after such a segment, until a named place",
    "inferred": "inferred by the planner",
}
"""Why actions do not count, in words."""


def omitted(
    cohort: Cohort, status: pl.Series, gaps: Gaps, excluded: pl.DataFrame, *, inferred: float = 0.0
) -> list[Omission]:
    """Return which participants, segments and actions are left out of estimates, and why.

    ``status`` is that of every segment of the dialogs, empty where there are none; ``excluded`` has the
    columns ``participant`` and ``reason``.
    """
    found: list[Omission] = []
    for (reason,), people in excluded.group_by("reason", maintain_order=True):
        found += omission("participant", f"excluded: {reason}", people["participant"].to_list())
    found += omission("participant", "no dialog or episode", gaps.absent)
    found += omission("participant", NO_MOVES, gaps.unread)
    uses, choices = segment_uses(cohort, inferred=inferred), "action sensitivity"
    waiting = int((status == "needs_review").sum()) - int((uses["awaits_review"] & uses["in_choices"]).sum())
    found += omission("segment", "they need review", (), n=max(0, waiting), of=choices)
    for name, why in (("no_route", "they say nothing about the way"), ("rejected", "rejected by reviewers")):
        found += omission("segment", why, (), n=int((status == name).sum()))
    counted = forecast(cohort, inferred=inferred)
    for key, why in FORECAST.items():
        found += omission("action", why, (), n=counted[key], of=choices)
    return found


def say_one_speaker(n: int) -> str:
    """Return what dialogs of one speaker alone mean: whose words they may hold.

    Examples
    --------
    >>> say_one_speaker(1)[:45]
    '1 dialog has one speaker alone: if the assess'
    """
    return (
        f"{count(n, 'dialog has', 'dialogs have')} one speaker alone: if the assessor's words are in "
        "the same turns, they count as the participant's"
    )


def say_forecast(found: Mapping[str, int]) -> str:
    """Return a forecast in words.

    Examples
    --------
    >>> say_forecast({"actions": 10, "counted": 7, "in_doubt": 2, "after_doubt": 0, "inferred": 1})
    '70% of 10 actions will count for η; not 20% in segments that need review, 10% inferred by the planner'
    """
    of = max(1, found["actions"])
    said = f"{found['counted'] / of:.0%} of {count(found['actions'], 'action')} will count for η"
    lost = [f"{found[key] / of:.0%} {words}" for key, words in FORECAST.items() if found[key]]
    return f"{said}; not {', '.join(lost)}" if lost else said


def say_counted(uses: pl.DataFrame, status: pl.Series) -> str:
    """Return how many segments of dialogs count, and in what; empty where all count in everything.

    ``uses`` is what :func:`segment_uses` gave, ``status`` that of every segment, those that do not count
    included.

    Examples
    --------
    >>> uses = pl.DataFrame(
    ...     {"awaits_review": [True, False], "in_effort": [True, True], "in_choices": [False, True]}
    ... )
    >>> say_counted(uses, pl.Series(["needs_review", "confident", "no_route"])).split("; ")[0]
    '2 of 3 segments count in effort (1 of these awaits review) and 1 can count in action sensitivity'
    """
    n, of = int(uses["in_effort"].sum()), len(status)
    waiting = int((uses["awaits_review"] & uses["in_effort"]).sum())
    in_choices, rejected = int(uses["in_choices"].sum()), int((status == "rejected").sum())
    if in_choices == n == of:
        return ""
    waits = f" ({waiting:,} of these {'awaits' if waiting == 1 else 'await'} review)" if waiting else ""
    said = f"{n:,} of {count(of, 'segment')} count in effort{waits} and {in_choices:,} can count in action "
    said += "sensitivity"
    unread = of - uses.height - rejected
    said += f"; in {unread:,} {NO_MOVES}" if unread else ""
    return said + (f"; {rejected:,} {'was' if rejected == 1 else 'were'} rejected" if rejected else "")
