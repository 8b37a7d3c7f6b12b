"""What the page is told about dialogs and segments, as plain data.

Whoever has not judged a segment sees it as the grounder proposed it, from where the figure stands now; what
others decided about it is not shown. Whoever judges an audit sample sees nothing but words and the moves that
the grounder proposed, from where its own moves lead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fidm.errors import count
from fidm.grounding.base import Segment
from fidm.grounding.dialog import GroundedDialog, GroundedSegment, Settings, Waiting, Weighing
from fidm.grounding.ground import assemble
from fidm.grounding.review.edits import action_names
from fidm.grounding.review.trail import Decision
from fidm.grounding.review.verdicts import (
    BY_HAND,
    ReviewedSegment,
    doubtfulness,
    review_dialog,
    reviewed_dialog,
    segment_key,
)
from fidm.grounding.route.program import EXIT, FINISH, Program, write_program
from fidm.grounding.route.replay import HEADING_NAMES, HEADINGS, Position, Replay, Terrain, replay
from fidm.tasks.grid import MOVES

SNIPPET = 70
"""How many characters of a segment stand in the list."""

ARROWS = {"up": "↑", "down": "↓", "right": "→", "left": "←"}


class Walked:
    """A dialog as it stands after what people decided, and as it looks to somebody who does not know that.

    ``decisions`` are what people decided about it, oldest first.
    """

    def __init__(
        self, dialog: GroundedDialog, decisions: Sequence[Decision], terrain: Terrain, weighing: Weighing
    ) -> None:
        self.dialog, self.decisions, self.terrain = dialog, tuple(decisions), terrain
        self.weighing = weighing
        self._frees: dict[tuple[int, bool], int] = {}
        self.segments = review_dialog(dialog, self.decisions, terrain)
        self._bare: dict[int, ReviewedSegment] = {}
        self._problems: tuple[str, ...] | None = None
        self._proposed: tuple[ReviewedSegment, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Participant and episode."""
        return self.dialog.transcript.participant, self.dialog.transcript.episode

    @property
    def problems(self) -> tuple[str, ...]:
        """What structural checks find wrong with the dialog as it stands, in words."""
        if self._problems is None:
            now = reviewed_dialog(self.dialog, self.segments)
            found = assemble([now], self.terrain, Settings(), {}).checks["problem"]
            self._problems = tuple(found.unique(maintain_order=True))
        return self._problems

    def with_one_more(self, decision: Decision) -> tuple[ReviewedSegment, ...]:
        """Return the segments as they would be after one more decision."""
        return review_dialog(self.dialog, (*self.decisions, decision), self.terrain)

    def bare(self, i: int) -> ReviewedSegment:
        """Return a segment as if nobody had judged it, from where the figure stands now."""
        if not self.segments[i].decisions:
            return self.segments[i]
        if i not in self._bare:
            key = segment_key(self.dialog, self.dialog.segments[i])
            others = [decision for decision in self.decisions if decision.key != key]
            self._bare[i] = review_dialog(self.dialog, others, self.terrain)[i]
        return self._bare[i]

    def frees(self, i: int, shown: ReviewedSegment) -> int:
        """Return how many later moves a decision about a segment would free, as somebody sees it."""
        if shown.grounded.status != "needs_review":
            return 0
        key = (i, shown is self.segments[i])
        if key not in self._frees:
            now = [*self.segments[:i], shown, *self.segments[i + 1 :]]
            waiting = Waiting(reviewed_dialog(self.dialog, now), self.terrain, self.weighing)
            self._frees[key] = waiting.frees(i)
        return self._frees[key]

    def proposed(self, i: int) -> ReviewedSegment:
        """Return a segment as the grounder left it, from where the grounder's own moves lead."""
        if not self._proposed:
            self._proposed = review_dialog(self.dialog, (), self.terrain)
        return self._proposed[i]

    def judged_by(self, i: int, reviewer: str, *, sample: str = "") -> Decision | None:
        """Return what a reviewer decided about a segment; with a sample, what they decided in that audit."""
        if not sample:
            return next((one for one in self.segments[i].decisions if one.reviewer == reviewer), None)
        key = segment_key(self.dialog, self.dialog.segments[i])
        made = [
            one for one in self.decisions if (one.key, one.reviewer, one.sample) == (key, reviewer, sample)
        ]
        return None if not made or made[-1].kind == "withdraw" else made[-1]

    def place_of(self, segment: str) -> int | None:
        """Return a segment's place in the dialog by its number; None where there is none."""
        numbers = [str(one.proposed.segment.number) for one in self.segments]
        return numbers.index(segment) if segment in numbers else None


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks, and in which way."""

    reviewer: str  # who
    sample: str = ""  # the audit sample that is judged, blind; empty if none is
    is_settling: bool = False  # whether segments are looked at because reviewers differ

    @property
    def is_blind(self) -> bool:
        """Whether an audit sample is judged."""
        return bool(self.sample)

    def own(self, walked: Walked, i: int) -> Decision | None:
        """Return what this reviewer decided about a segment; in an audit, what they decided in it."""
        return walked.judged_by(i, self.reviewer, sample=self.sample)

    def sees_others(self, walked: Walked, i: int) -> bool:
        """Whether what others decided is shown."""
        if self.is_blind:
            return False
        differs = self.is_settling and walked.segments[i].reviewers_differ
        return differs or self.own(walked, i) is not None

    def settles(self, walked: Walked, i: int) -> bool:
        """Whether a decision would be made in sight of reviewers who differ, and so overrule them.

        So does one that takes the place of a decision by which the same person settled it before.
        """
        mine = None if self.is_blind else self.own(walked, i)
        if mine is not None and mine.settles:
            return True
        return walked.segments[i].reviewers_differ and self.sees_others(walked, i)

    def shown(self, walked: Walked, i: int) -> ReviewedSegment:
        """Return a segment as this reviewer may see it; in an audit, as the grounder left it."""
        if self.is_blind:
            return walked.proposed(i)
        return walked.segments[i] if self.sees_others(walked, i) else walked.bare(i)


def list_row(walked: Walked, i: int, viewer: Viewer) -> dict[str, Any]:
    """Return a segment as a row of the list."""
    dialog, segment = walked.dialog, walked.segments[i]
    shown = viewer.shown(walked, i)
    mine = viewer.own(walked, i)
    is_blind = viewer.is_blind
    text = " ".join(shown.grounded.segment.text.split())
    return {
        "participant": dialog.transcript.participant,
        "episode": dialog.transcript.episode,
        "segment": str(shown.grounded.segment.number),
        "status": "" if is_blind else shown.grounded.status,
        "doubts": [] if is_blind else list(shown.grounded.doubts),
        "doubtfulness": 0.0 if is_blind else doubtfulness(shown),
        "frees": 0 if is_blind else walked.frees(i, shown),
        "mine": None if mine is None else mine.kind,
        "differ": not is_blind and segment.reviewers_differ,
        "stale": not is_blind and shown.is_stale,
        "language": dialog.language,
        "said": text if len(text) <= SNIPPET else f"{text[:SNIPPET]}…",
    }


def dialog_view(walked: Walked, viewer: Viewer, audio: str | None = None) -> dict[str, Any]:
    """Return a whole dialog: its turns, each segment as it stands, and the address of its recording."""
    dialog, segments = walked.dialog, walked.segments
    owner: dict[int, str] = {}
    for one in segments:
        for turn in one.grounded.segment.dialog:
            owner[turn] = str(one.grounded.segment.number)
    turns = [
        {
            "role": turn.role,
            "speaker": turn.speaker,
            "start_s": _number(turn.start_s),
            "end_s": _number(turn.end_s),
            "text": turn.text,
            "segment": owner.get(i),
        }
        for i, turn in enumerate(dialog.transcript.turns)
    ]
    return {
        "participant": dialog.transcript.participant,
        "episode": dialog.transcript.episode,
        "language": dialog.language,
        "turns": turns,
        "audio": audio,
        "problems": [] if viewer.is_blind else list(walked.problems),
        "segments": [_segment_view(walked, i, viewer) for i in range(len(segments))],
    }


def seen_of(shown: ReviewedSegment) -> dict[str, Any]:
    """Return what identifies what a reviewer saw; a decision about anything else is refused."""
    return {
        "start": shown.start.state,
        "program": write_program(shown.program),
        "actions": list(shown.actions),
    }


def _segment_view(walked: Walked, i: int, viewer: Viewer) -> dict[str, Any]:
    dialog, terrain, segment = walked.dialog, walked.terrain, walked.segments[i]
    shown = viewer.shown(walked, i)
    grounded, is_blind = shown.grounded, viewer.is_blind
    program = grounded.proposal.program
    mine = viewer.own(walked, i)
    others = [one for one in segment.decisions if one.reviewer != viewer.reviewer]
    sees_difference = segment.reviewers_differ and viewer.sees_others(walked, i)
    known = segment.decisions if viewer.sees_others(walked, i) else ()
    is_by_hand = grounded.proposal.grounder == BY_HAND
    return {
        "segment": str(grounded.segment.number),
        "turns": list(grounded.segment.turns),
        "first": grounded.segment.dialog[0],
        "last": grounded.segment.dialog[-1],
        "facts": _facts(grounded),
        "status": "" if is_blind else grounded.status,
        "doubts": [] if is_blind else list(grounded.doubts),
        "frees": 0 if is_blind else walked.frees(i, shown),
        "issues": [] if is_blind else list(dict.fromkeys(issue.code for issue in shown.replay.issues)),
        "grounder": "" if is_blind else grounded.proposal.grounder,
        "probability": None if is_blind or is_by_hand else grounded.proposal.sureness,
        "read_by": _readers(known, shown.actions) if is_by_hand else [],
        "start": place_view(shown.start, terrain),
        "end": place_view(shown.replay.end, terrain),
        "program": write_program(program),
        "instructions": instruction_views(program, shown.replay, grounded.segment, tells=not is_blind),
        "steps": step_views(shown.replay, terrain),
        "readings": _reading_views(shown, known, dialog, terrain, is_blind=is_blind),
        "seen": seen_of(shown),
        "mine": None if mine is None else decision_view(mine),
        "others": [decision_view(one) for one in others] if viewer.sees_others(walked, i) else None,
        "differ": sees_difference,
        "overrules": [one.reviewer for one in others] if sees_difference else None,
        "stale": not is_blind and shown.is_stale,
    }


def decision_view(decision: Decision) -> dict[str, Any]:
    """Return a decision as it is shown."""
    return {
        "reviewer": decision.reviewer,
        "kind": decision.kind,
        "at": decision.at,
        "comment": decision.comment,
        "settles": decision.settles,
        "program": None if decision.new is None else decision.new.program,
        "actions": [] if decision.new is None else list(decision.new.actions),
    }


def place_view(position: Position, terrain: Terrain) -> dict[str, Any]:
    """Return where the figure is."""
    return {
        "cell": terrain.cell(position.state),
        "heading": None if position.heading is None else HEADING_NAMES[position.heading],
        "phase": terrain.phases[terrain.phase(position.state)] if len(terrain.phases) > 1 else "",
    }


def step_views(done: Replay, terrain: Terrain) -> list[dict[str, Any]]:
    """Return every action with the cells it leads from and to."""
    names = action_names(terrain, done.actions)
    states = [*done.states, done.end.state]
    moves = set(terrain.move_code)
    return [
        {
            "from": terrain.cell(states[k]),
            "to": terrain.cell(states[k + 1]),
            "move": action in moves,
            "action": names[k],
            "inferred": done.inferred[k],
            "instruction": done.instruction[k],
        }
        for k, action in enumerate(done.actions)
    ]


def instruction_views(
    program: Program, done: Replay, segment: Segment | None, *, tells: bool = True
) -> list[dict[str, Any]]:
    """Return every instruction with its words, and what the map does not give as said."""
    found = []
    for k, step in enumerate(program):
        inferred = [flag for flag, owner in zip(done.inferred, done.instruction, strict=True) if owner == k]
        found.append(
            {
                "text": str(step),
                "words": [] if segment is None or step.op == "NONE" else words_of(step.span, segment),
                "inferred": any(inferred),
                "issues": [issue.code for issue in done.issues if issue.instruction == k] if tells else [],
            }
        )
    return found


def words_of(span: tuple[int, int], segment: Segment) -> list[list[int]]:
    """Return a stretch of a segment's text as stretches of its turns: turn, from, to, in code points."""
    found = []
    ends = [*(start - 1 for start in segment.starts[1:]), len(segment.text)]
    for turn, start, end in zip(segment.turns, segment.starts, ends, strict=True):
        low, high = max(span[0], start), min(span[1], end)
        if low < high:
            found.append([turn, low - start, high - start])
    return found


def legal_views(names: Sequence[str], position: Position, terrain: Terrain) -> list[dict[str, str]]:
    """Return what can be done somewhere, with the instruction that says so."""
    found: list[dict[str, str]] = []
    spec, cell = terrain.spec, terrain.cell(position.state)
    for name in names:
        if name in MOVES:
            way = HEADING_NAMES[MOVES.index(name)]
            found.append({"label": f"{ARROWS[way]} {way}", "add": f"MOVE {way} 1", "place": ""})
        elif spec.finish and name == spec.finish.action:
            found.append({"label": name, "add": "PAY", "place": FINISH})
        elif spec.exit and name == spec.exit.action:
            found.append({"label": name, "add": "LEAVE", "place": EXIT})
        else:
            here = [place for place in terrain.places if cell in terrain.reach[place]]
            fitting = [place for place in here if terrain.buying(place) == terrain.code(name)]
            found += [
                {"label": f"{spec.verb} {spec.sections[place].label or place}", "add": f"BUY {place}",
                 "place": place}
                for place in fitting
            ]  # fmt: skip
    order = {f"MOVE {way} 1": i for i, way in enumerate(HEADINGS)}
    return sorted(found, key=lambda one: order.get(one["add"], len(order)))


def _readers(decisions: Sequence[Decision], actions: Sequence[str]) -> list[str]:
    """Who decided that it comes to these actions."""
    return [one.reviewer for one in decisions if one.new is not None and one.new.actions == tuple(actions)]


def _reading_views(
    shown: ReviewedSegment,
    decisions: Sequence[Decision],
    dialog: GroundedDialog,
    terrain: Terrain,
    *,
    is_blind: bool,
) -> list[dict[str, Any]]:
    """The readings of people that may be seen, then those of the grounder; the shown one excepted."""
    if is_blind:
        return []
    found: list[dict[str, Any]] = []
    passed = {write_program(shown.grounded.proposal.program)}
    for one in decisions:
        if one.new is not None and one.new.actions != shown.actions and one.new.program not in passed:
            passed.add(one.new.program)
            found.append(
                {
                    "program": one.new.program,
                    "by": _readers(decisions, one.new.actions),
                    "probability": None,
                    "actions": list(one.new.actions),
                    "issues": [],
                }
            )
    for reading in shown.proposed.proposal.readings:
        if write_program(reading.program) in passed:
            continue
        done = replay(reading.program, terrain, shown.start, told=dialog.told)
        found.append(
            {
                "program": write_program(reading.program),
                "by": [],
                "probability": reading.probability,
                "actions": list(action_names(terrain, done.actions)),
                "issues": list(dict.fromkeys(issue.code for issue in done.issues)),
            }
        )
    return found


def _facts(grounded: GroundedSegment) -> list[str]:
    effort = grounded.effort
    found = []
    if effort.duration_s is not None and effort.duration_s == effort.duration_s:
        found.append(f"{effort.duration_s:.1f} s")
    found.append(f"{effort.n_characters:,} characters")
    found.append(count(effort.n_turns, "turn"))
    if effort.pause_s:
        found.append(f"pauses {effort.pause_s:.1f} s")
    return found


def _number(value: float | None) -> float | None:
    return None if value is None or value != value else float(value)
