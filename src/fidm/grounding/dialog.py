"""One dialog from words to moves: cut it, ground each segment where the one before ended, and replay.

The position is carried from segment to segment. After a segment that needs review or was rejected it is in
doubt where the figure is, and with it the moves that follow: they count once it is known again, with the
probability :attr:`Weighing.sure`, given everything that is said in the dialog; see
:mod:`fidm.grounding.whereabouts`. What comes later can also lift the doubt about a segment, or tell that
another of its readings was meant.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from fidm.errors import GroundingError
from fidm.grounding.base import Context, Grounder, Proposal, Reading, Segment
from fidm.grounding.route.program import Program
from fidm.grounding.route.replay import DOUBTFUL, Position, Replay, Terrain, replay
from fidm.grounding.rules.language import Vocabulary, language_of, vocabulary_of
from fidm.grounding.segment import Counting, Effort, Segmenter, Segmenting, cut_dialog, measure
from fidm.grounding.whereabouts import ANYWHERE, KNOWN, Heard, Memory, Whereabouts, spot_of
from fidm.io.dialogs import shows_pauses
from fidm.io.talk import Transcript

CONFIRMED = "confirmed"
"""Noted beside the doubts about a segment that what comes later has lifted."""

OTHER_READING = "other_reading"
"""The doubt about a segment of which another reading is followed, since what comes later fits that."""

CONTRARY = frozenset({"blocked", "not_in_line", "not_there", "not_in_reach", "contradicted"})
"""Doubts that another frame of left and right may explain."""

CLEARLY = 4.0
"""By how much the logarithm of the probability must rise for another frame to be taken."""

CONTRADICTED = "contradicted"
"""The doubt about a segment after which the assessor names a place where the figure is not."""

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
    sure : float
        How probable it must be, given the whole dialog, that the figure is where a move starts, for the move
        to count. A doubt is lifted where the probability that a segment was read right is halfway from this
        to certainty.
    """

    doubtful: float = 0.0
    keep_talk: bool = False
    sure: float = KNOWN

    def __post_init__(self) -> None:
        if not 0 <= self.doubtful <= 1:
            raise GroundingError(f"doubtful is {self.doubtful}; a weight is between 0 and 1.")
        if not 0.5 < self.sure <= 1:
            raise GroundingError(f"sure is {self.sure}; it is a probability above 0.5, and at most 1.")


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
    frame: str = ""  # whose left and right, where the dialog tells that it is not the usual frame
    memory: Memory = field(default_factory=Memory, repr=False)  # replays that were made already
    # Where the figure may stand, as far as that was asked already.
    places: Whereabouts | None = field(default=None, repr=False)

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
        self._memories: dict[frozenset[str], Memory] = {}

    def language_of(self, transcript: Transcript) -> str:
        """Return the language to read a dialog in: the setting, the file's own, or the one of its script."""
        return language_of(transcript, self.settings.language)

    def vocabulary(self, language: str) -> Vocabulary:
        """Return the words of a language for this task."""
        if language not in self._vocabularies:
            self._vocabularies[language] = vocabulary_of(language, self.terrain.spec)
        return self._vocabularies[language]

    def memory(self, told: frozenset[str]) -> Memory:
        """Return the replays that were made in dialogs in which the same phases are told of."""
        return self._memories.setdefault(told, Memory())


def ground_dialog(transcript: Transcript, grounder: Grounder, reader: Reader) -> GroundedDialog:
    """Read every segment of a dialog, each where the one before left the figure.

    Where what is said cannot be walked, a grounder that knows other frames of left and right reads it in
    these too; the frame in which it can be walked is taken, if that is :data:`CLEARLY` more probable.
    """
    usual = _ground(transcript, grounder, reader)
    frames: Mapping[str, Grounder] = getattr(grounder, "frames", dict)()
    contrary = sum(not CONTRARY.isdisjoint(one.doubts) for one in usual.segments)
    if not frames or contrary < 2:
        return usual
    best, most = usual, _log_evidence(usual, reader.terrain) + CLEARLY
    for name, other in frames.items():
        found = replace(_ground(transcript, other, reader), frame=name)
        evidence = _log_evidence(found, reader.terrain)
        if evidence > most:
            best, most = found, evidence
    return best


def _log_evidence(dialog: GroundedDialog, terrain: Terrain) -> float:
    """How probable it is that what was said can be walked, as it was read."""
    statuses = [one.status for one in dialog.segments]
    return _places(dialog, _walk(dialog, terrain), statuses, terrain).log_evidence


def _ground(transcript: Transcript, grounder: Grounder, reader: Reader) -> GroundedDialog:
    """Read every segment of a dialog in one frame."""
    settings, terrain = reader.settings, reader.terrain
    language = reader.language_of(transcript)
    vocabulary = reader.vocabulary(language)
    cut = reader.segmenter(transcript, vocabulary, terrain.spec, settings.segmenting)
    position = terrain.start()
    places: Whereabouts | None = None  # made with the first doubt
    starts, memory = list[Position](), reader.memory(cut.told)
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
        starts.append(position)
        effort = measure(transcript, segment.dialog, settings.counting, vocabulary.language.fillers)
        found.append(_grounded(segment, proposal, effort, done, terrain))
        position, doubts = done.end, found[-1].doubts
        if places is not None:
            places.hear(_heard(found[-1]), starts[-1])
        elif doubts:
            places = Whereabouts(terrain, cut.told, memory)
            for one, place in zip(found, starts, strict=True):
                places.hear(_heard(one), place)
        if doubts and places is not None and places.best() not in (ANYWHERE, spot_of(position)):
            found, position = _followed(found, places, terrain, cut.told)
    dialog = GroundedDialog(
        transcript, tuple(found), cut.told, language, cut.kinds, memory=memory, places=places
    )
    dialog = _confirmed(dialog, terrain, settings.weighing)
    if not shows_pauses(transcript.format) and not any(one.effort.pause_s for one in found):
        return dialog.without_pauses()
    return dialog


def status_of(doubts: Sequence[str], program: Program) -> Status:
    """Return the status of a segment that nobody has looked at."""
    if doubts and CONFIRMED not in doubts:
        return "needs_review"
    return "no_route" if program[0].op == "NONE" else "confident"


def _grounded(
    segment: Segment, proposal: Proposal, effort: Effort, done: Replay, terrain: Terrain
) -> GroundedSegment:
    """A segment with all doubts about it: a grounder cannot argue the map away, nor the assessor."""
    here = (terrain.cell(done.end.state),)
    against = () if all(terrain.is_near(here, place) for place in segment.reached) else (CONTRADICTED,)
    doubts = tuple(dict.fromkeys((*proposal.doubts, *done.doubts, *against)))
    return GroundedSegment(segment, proposal, effort, status_of(doubts, proposal.program), doubts)


def _heard(one: GroundedSegment, status: Status | None = None, chosen: Program | None = None) -> Heard:
    """A segment as what is known of where the figure is depends on it."""
    status = status or one.status
    if chosen is not None:
        return Heard(one.segment, (Reading(chosen),), is_lost=status == "rejected")
    own = [doubt for doubt in one.doubts if doubt not in DOUBTFUL and doubt != CONTRADICTED]
    is_certain = status == "reviewed"
    is_doubted = bool(own) and not is_certain
    readings = replace(one.proposal, doubts=tuple(own)).trusted()
    return Heard(one.segment, readings, is_doubted, is_certain, status == "rejected")


def _followed(
    found: Sequence[GroundedSegment], places: Whereabouts, terrain: Terrain, told: frozenset[str]
) -> tuple[list[GroundedSegment], Position]:
    """Segments with the readings that lead along the most probable way first, and where that ends."""
    position, made = terrain.start(), list[GroundedSegment]()
    for one, reading in zip(found, places.follow(), strict=True):
        for phase in one.segment.opened:
            position = terrain.tell(position, phase, told)
        proposal = one.proposal
        if reading:
            readings = list(proposal.readings)
            readings.insert(0, readings.pop(reading))
            own = [doubt for doubt in proposal.doubts if doubt not in (*DOUBTFUL, OTHER_READING)]
            proposal = replace(proposal, readings=tuple(readings), doubts=(*own, OTHER_READING))
        done = replay(proposal.program, terrain, position, told=told)
        made.append(_grounded(one.segment, proposal, one.effort, done, terrain))
        position = done.end
    return made, position


def _confirmed(dialog: GroundedDialog, terrain: Terrain, weighing: Weighing) -> GroundedDialog:
    """Lift the doubts about segments that the whole dialog shows to be read right."""
    statuses = [one.status for one in dialog.segments]
    if "needs_review" not in statuses:
        return dialog
    walks = _walk(dialog, terrain)
    places = _places(dialog, walks, statuses, terrain)
    settled = places.settle([done for _, _, done in walks])
    found = []
    for one, (_, program, done), said in zip(dialog.segments, walks, settled, strict=True):
        is_shown = said.is_supported and said.right >= (1.0 + weighing.sure) / 2 and not done.doubts
        if one.status == "needs_review" and is_shown:
            doubts = (*one.doubts, CONFIRMED)
            one = replace(one, doubts=doubts, status=status_of(doubts, program))
        found.append(one)
    return replace(dialog, segments=tuple(found), places=places)


def _places(
    dialog: GroundedDialog,
    walks: Sequence[Walk],
    statuses: Sequence[Status],
    terrain: Terrain,
    *,
    is_drawn: bool = False,
) -> Whereabouts:
    """Where the figure may stand throughout a dialog, were its segments of these statuses."""
    known = dialog.places or Whereabouts(terrain, dialog.told, dialog.memory)
    return known.again(
        (_heard(one, status, program if is_drawn else None), start)
        for one, (start, program, _), status in zip(dialog.segments, walks, statuses, strict=True)
    )


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
    for i, (one, (_, program, done)) in enumerate(zip(dialog.segments, walks, strict=True)):
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
    weights = _weigh(dialog, walks, statuses, terrain, weighing, is_drawn=chosen is not None)
    path.weight = [weight for own in weights for weight in own]
    path.end = (walks[-1][-1].end if walks else terrain.start()).state
    return path


Walk = tuple[Position, Program, Replay]
"""Where a segment is replayed from, what it is read as, and its moves."""


def _walk(
    dialog: GroundedDialog, terrain: Terrain, chosen: Mapping[int, Program] | Sequence[Program] | None = None
) -> list[Walk]:
    """Replay every segment from where the one before ended."""
    position, walks = terrain.start(), list[Walk]()
    for i, one in enumerate(dialog.segments):
        for phase in one.segment.opened:
            position = terrain.tell(position, phase, dialog.told)
        program = one.proposal.program if chosen is None else chosen[i]
        walks.append((position, program, replay(program, terrain, position, told=dialog.told)))
        position = walks[-1][-1].end
    return walks


def _weigh(
    dialog: GroundedDialog,
    walks: Sequence[Walk],
    statuses: Sequence[Status],
    terrain: Terrain,
    weighing: Weighing,
    *,
    is_drawn: bool = False,
) -> list[list[float]]:
    """How much every action of every segment counts, were the segments of these statuses."""
    in_doubt = [status == "rejected" or (status == "needs_review" and not is_drawn) for status in statuses]
    if not any(in_doubt):
        return [[1.0] * len(done) for _, _, done in walks]
    places = _places(dialog, walks, statuses, terrain, is_drawn=is_drawn)
    found = []
    for status, is_doubted, said in zip(
        statuses, in_doubt, places.settle([done for _, _, done in walks]), strict=True
    ):
        otherwise = 0.0 if status == "rejected" else weighing.doubtful
        found.append([1.0 if p >= weighing.sure and not is_doubted else otherwise for p in said.known])
    return found


class Waiting:
    """What the moves of a dialog wait for: how many would count if segments were accepted as read."""

    def __init__(self, dialog: GroundedDialog, terrain: Terrain, weighing: Weighing) -> None:
        self._dialog, self._walks, self._terrain = dialog, _walk(dialog, terrain), terrain
        self._weighing = weighing
        self.doubted = [i for i, one in enumerate(dialog.segments) if one.status == "needs_review"]

    def counted(self, accepted: Collection[int] = ()) -> list[int]:
        """Return how many stated actions of each segment count, were these segments accepted."""
        statuses: list[Status] = [
            "reviewed" if i in accepted else one.status for i, one in enumerate(self._dialog.segments)
        ]
        weights = _weigh(self._dialog, self._walks, statuses, self._terrain, self._weighing)
        return [
            sum(weight > 0 and not filled_in for weight, filled_in in zip(own, done.inferred, strict=True))
            for own, (_, _, done) in zip(weights, self._walks, strict=True)
        ]

    def frees(self, i: int) -> int:
        """Return how many actions of later segments would begin to count if one segment were accepted."""
        return sum(self.counted([i])[i + 1 :]) - sum(self.counted()[i + 1 :])
