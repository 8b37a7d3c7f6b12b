"""One dialog from words to moves: cut it, ground each segment where the one before ended, and replay.

The position is carried from segment to segment. After a segment that needs review or was rejected the
position is in doubt, and so are the moves that follow, until the participant names a place and the figure is
there, or somebody has reviewed moves that start there: from then on they count again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from fidm.errors import GroundingError
from fidm.grounding.base import Context, Grounder, Proposal, Segment
from fidm.grounding.route.program import Program
from fidm.grounding.route.replay import Replay, Terrain, replay
from fidm.grounding.rules.language import Vocabulary, language_of, load_language
from fidm.grounding.segment import Counting, Effort, Segmenter, Segmenting, cut_dialog, measure
from fidm.io.dialogs import shows_pauses
from fidm.talk import Transcript

MOVING = ("MOVE", "TURN", "ALONG", "BACK")
"""What says where to go, and completes nothing."""

Status = Literal["confident", "needs_review", "no_route", "reviewed", "rejected"]
"""Whether a segment can be used, should be looked at, or says nothing about the way; and once somebody has
looked at it, whether it was read by hand or cannot be used."""


@dataclass(frozen=True, slots=True)
class Weighing:
    """How much moves count in the action likelihood, apart from being stated or inferred.

    Parameters
    ----------
    doubtful : float
        The weight of moves in segments that need review, and of those after them until it is certain again
        where the person is and what is completed. 0 leaves them out until somebody has looked.
    keep_talk : bool
        Whether runs of talk that say nothing about the way, for all that can be read, are segments, with 0
        moves, in the effort channels.
    """

    doubtful: float = 0.0
    keep_talk: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.doubtful <= 1:
            raise GroundingError(f"doubtful is {self.doubtful}; a weight is between 0 and 1.")


@dataclass(frozen=True, slots=True, eq=False)
class Settings:
    """Everything between words and moves that changes a number.

    Parameters
    ----------
    counting : Counting
        What counts as a character, a turn and a pause.
    segmenting : Segmenting
        What ends a segment.
    weighing : Weighing
        What moves in doubt count.
    language : str
        The language of all dialogs, or the path of a language file; empty to take each file's own, or where
        it has none the one its script suggests.
    context_turns : int
        How many turns before a segment a grounder may see.
    """

    counting: Counting = field(default_factory=Counting)
    segmenting: Segmenting = field(default_factory=Segmenting)
    weighing: Weighing = field(default_factory=Weighing)
    language: str = ""
    context_turns: int = 6


@dataclass(frozen=True, slots=True, eq=False)
class GroundedSegment:
    """A segment, what it means and what it cost."""

    segment: Segment  # the talk
    proposal: Proposal  # what the grounder made of it
    effort: Effort  # what it cost
    status: Status  # whether it can be used as it is
    doubts: tuple[str, ...]  # why it should be looked at


@dataclass(frozen=True, slots=True, eq=False)
class GroundedDialog:
    """A dialog whose segments have been read."""

    transcript: Transcript  # the dialog
    segments: tuple[GroundedSegment, ...]  # its segments, in order
    told: frozenset[str]  # the phases that are opened in words
    language: str  # the language it was read in
    kinds: tuple[str, ...] = ()  # what each turn of the assessor does

    def without_pauses(self) -> GroundedDialog:
        """Return the same dialog with unknown pauses."""
        unknown = [replace(one, effort=replace(one.effort, pause_s=None)) for one in self.segments]
        return replace(self, segments=tuple(unknown))


@dataclass(slots=True)
class Path:
    """The moves of a dialog, one entry per action, for a choice of readings."""

    # Each action and the state it was taken in.
    states: list[int] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    inferred: list[bool] = field(default_factory=list)  # whether the planner filled it in
    weight: list[float] = field(default_factory=list)  # how much it counts
    # The segment it belongs to, counted among the segments that are kept; -1 for others.
    segment: list[int] = field(default_factory=list)
    # The segment's place in the dialog and the instruction within its program.
    source: list[tuple[int, int]] = field(default_factory=list)
    end: int = 0  # the state afterwards
    n_moves: list[int] = field(default_factory=list)  # movements per kept segment
    kept: list[int] = field(default_factory=list)  # the places in the dialog of the segments that are kept


class Reader:
    """A task's map and the vocabularies to read talk about it, made once and used for every dialog."""

    def __init__(self, terrain: Terrain, settings: Settings, segmenter: Segmenter = cut_dialog) -> None:
        self.terrain, self.settings, self.segmenter = terrain, settings, segmenter
        self._vocabularies: dict[str, Vocabulary] = {}

    def language_of(self, transcript: Transcript) -> str:
        """Return the language to read a dialog in: the setting, the file's own, or the one of its script."""
        return language_of(transcript, self.settings.language)

    def vocabulary(self, language: str) -> Vocabulary:
        """Return the words of a language for this task."""
        if language not in self._vocabularies:
            self._vocabularies[language] = Vocabulary(load_language(language), self.terrain.spec)
        return self._vocabularies[language]


def ground_dialog(transcript: Transcript, grounder: Grounder, reader: Reader) -> GroundedDialog:
    """Read every segment of a dialog, each where the one before left the figure."""
    settings, terrain = reader.settings, reader.terrain
    language = reader.language_of(transcript)
    vocabulary = reader.vocabulary(language)
    cut = reader.segmenter(transcript, vocabulary, terrain.spec, settings.segmenting)
    position = terrain.start()
    found: list[GroundedSegment] = []
    for segment in cut.segments:
        for phase in segment.opened:
            position = terrain.tell(position, phase, cut.told)
        first = segment.turns[0]
        before = transcript.turns[max(0, first - settings.context_turns) : first]
        context = Context(
            terrain, position, language, cut.told, tuple((turn.role, turn.text) for turn in before)
        )
        proposal = grounder.ground(segment, context)
        done = replay(proposal.program, terrain, position, told=cut.told)
        position = done.end
        effort = measure(transcript, segment.dialog, settings.counting, vocabulary.language.fillers)
        # a grounder cannot argue the map away
        doubts = tuple(dict.fromkeys((*proposal.doubts, *done.doubts)))
        status: Status = (
            "needs_review" if doubts else "no_route" if proposal.program[0].op == "NONE" else "confident"
        )
        found.append(GroundedSegment(segment, proposal, effort, status, doubts))
    dialog = GroundedDialog(transcript, tuple(found), cut.told, language, cut.kinds)
    if not shows_pauses(transcript.format) and not any(one.effort.pause_s for one in found):
        return dialog.without_pauses()
    return dialog


def follow_path(
    dialog: GroundedDialog,
    terrain: Terrain,
    weighing: Weighing,
    *,
    chosen: Mapping[int, Program] | Sequence[Program] | None = None,
) -> Path:
    """Replay a dialog from the start and list its moves.

    ``chosen`` has the program of each segment instead of the most probable one; doubt is then in the choice,
    and every move counts but those of rejected segments, and after them until the state is certain again.
    """
    path, moves = Path(), set(terrain.move_code)
    walks = _walk(dialog, terrain, chosen)
    for i, (one, (program, done)) in enumerate(zip(dialog.segments, walks, strict=True)):
        kept = -1
        is_about_the_way = program[0].op != "NONE" and one.status != "needs_review"
        if one.status != "rejected" and (weighing.keep_talk or len(done) or is_about_the_way):
            kept = len(path.kept)
            path.kept.append(i)
            path.n_moves.append(sum(1 for action in done.actions if action in moves))
        path.source += [(i, instruction) for instruction in done.instruction]
        path.states += done.states
        path.actions += done.actions
        path.inferred += done.inferred
        path.segment += [kept] * len(done)
    statuses = [one.status for one in dialog.segments]
    weights = _weigh(dialog, walks, statuses, moves, weighing.doubtful, is_drawn=chosen is not None)
    path.weight = [weight for own in weights for weight in own]
    path.end = (walks[-1][1].end if walks else terrain.start()).state
    return path


Walk = tuple[Program, Replay]
"""What a segment is read as, and its moves."""


def _walk(
    dialog: GroundedDialog, terrain: Terrain, chosen: Mapping[int, Program] | Sequence[Program] | None = None
) -> list[Walk]:
    """Replay every segment from where the one before ended."""
    position, walks = terrain.start(), list[Walk]()
    for i, one in enumerate(dialog.segments):
        for phase in one.segment.opened:
            position = terrain.tell(position, phase, dialog.told)
        program = one.proposal.program if chosen is None else chosen[i]
        walks.append((program, replay(program, terrain, position, told=dialog.told)))
        position = walks[-1][1].end
    return walks


def _weigh(
    dialog: GroundedDialog,
    walks: Sequence[Walk],
    statuses: Sequence[Status],
    moves: Collection[int],
    doubtful: float,
    *,
    is_drawn: bool = False,
) -> list[list[float]]:
    """How much every action of every segment counts, were the segments of these statuses."""
    is_sure = knows_done = True  # where the person is, and what is completed
    found = []
    for one, status, (program, done) in zip(dialog.segments, statuses, walks, strict=True):
        if one.segment.opened:
            knows_done = True  # the assessor takes what came before for done
        if status == "reviewed" and len(done):  # somebody saw where these moves start
            is_sure = knows_done = True
        is_out = status == "rejected"
        in_doubt = is_out or (not is_drawn and status == "needs_review")
        own = []
        for action in done.actions:
            if action not in moves and not in_doubt:  # taking something fixes the place
                is_sure = True
            counts = 1.0 if is_sure and knows_done and not in_doubt else doubtful
            own.append(0.0 if is_out else counts)
        found.append(own)
        if in_doubt:
            is_sure = False
            knows_done &= not _may_complete(one)
        elif not is_sure and any(step.place or step.op == "PAY" for step in program):
            is_sure = True
    return found


class Waiting:
    """What the moves of a dialog wait for: how many would count if segments were accepted as read."""

    def __init__(self, dialog: GroundedDialog, terrain: Terrain, weighing: Weighing) -> None:
        self._dialog, self._walks = dialog, _walk(dialog, terrain)
        self._moves, self._doubtful = set(terrain.move_code), weighing.doubtful
        self.doubted = [i for i, one in enumerate(dialog.segments) if one.status == "needs_review"]

    def counted(self, accepted: Collection[int] = ()) -> list[int]:
        """Return how many stated actions of each segment count, were these segments accepted."""
        statuses: list[Status] = [
            "reviewed" if i in accepted else one.status for i, one in enumerate(self._dialog.segments)
        ]
        weights = _weigh(self._dialog, self._walks, statuses, self._moves, self._doubtful)
        return [
            sum(weight > 0 and not filled_in for weight, filled_in in zip(own, done.inferred, strict=True))
            for own, (_, done) in zip(weights, self._walks, strict=True)
        ]

    def frees(self, i: int) -> int:
        """Return how many actions of later segments would begin to count if one segment were accepted."""
        return sum(self.counted([i])[i + 1 :]) - sum(self.counted()[i + 1 :])


def _may_complete(one: GroundedSegment) -> bool:
    """Whether a segment in doubt may have completed something, or failed to.

    So it is where a reading takes something or names a place, and where nothing at all could be read.
    """
    if one.proposal.program[0].op == "NONE":
        return True
    steps = [step for reading in one.proposal.readings for step in reading.program if step.op != "NONE"]
    return any(step.op not in MOVING or step.place for step in steps)
