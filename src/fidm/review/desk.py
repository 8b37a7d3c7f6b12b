"""A study on the reviewer's desk: proposals and decisions in memory, what the page is told, what it may do.

What follows from decisions is worked out in :mod:`fidm.grounding.review.verdicts`; here it is kept in memory,
brought up to date when somebody else adds to the trail, and turned into what the page shows.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path, PureWindowsPath
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from fidm.errors import GroundingError
from fidm.files import hash_file
from fidm.grounding.review.apply import read_proposed
from fidm.grounding.review.audit import agreements, audit_of, draw_sample
from fidm.grounding.review.edits import MOST_LETTERS, legal_actions, parse_edit
from fidm.grounding.review.trail import MOST_COMMENT, Decision, Kind, Sample, Trail, clean_name
from fidm.grounding.review.verdicts import MEANINGS, ReviewedSegment, by_dialog, changed_after, decide
from fidm.grounding.route.program import write_program
from fidm.grounding.store import FOLDER, PROPOSALS
from fidm.io.talk import Transcript
from fidm.pages import map_scene
from fidm.record import plain
from fidm.review.views import (
    Viewer,
    Walked,
    dialog_view,
    instruction_views,
    legal_views,
    list_row,
    place_view,
    seen_of,
    step_views,
)
from fidm.tasks.model import TaskModel
from fidm.types import Progress

Key = tuple[str, str]

AUDIO = "audio"
"""The folder of a study in which recordings are found by the name of a dialog's file or participant."""

SOUNDS: Mapping[str, str] = {
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".m4a": "audio/mp4",
    ".ogg": "audio/ogg",
    ".opus": "audio/ogg",
    ".flac": "audio/flac",
    ".webm": "audio/webm",
}
"""The kinds of recordings that are played, by suffix; of two with the same name, the first here counts."""


class Seen(BaseModel):
    """What the reviewer had before them."""

    model_config = ConfigDict(extra="forbid")
    start: int
    program: str = Field(max_length=4 * MOST_LETTERS)
    actions: list[str] = Field(max_length=10_000)


class About(BaseModel):
    """Which segment a request is about, and how it was looked at."""

    model_config = ConfigDict(extra="forbid")
    participant: str = Field(max_length=1_000)
    episode: str = Field(max_length=1_000)
    segment: str = Field(max_length=20)
    sample: str = Field("", max_length=100)
    settling: bool = False
    seen: Seen
    text: str = Field("", max_length=MOST_LETTERS)


class Judged(About):
    """A decision as the page sends it."""

    kind: Kind
    comment: str = Field("", max_length=4 * MOST_COMMENT)


class Drawing(BaseModel):
    """Dialogs to be drawn for an audit."""

    model_config = ConfigDict(extra="forbid")
    n: int = Field(ge=1, le=100_000)
    seed: int = Field(ge=0, le=2**31 - 1)


class MissingError(GroundingError):
    """There is no such dialog, segment or sample."""


class ChangedError(GroundingError):
    """What the reviewer saw is not what is there now."""


class Desk:
    """A study that is being reviewed; several people may do so at once.

    ``task`` is by default the one that study.toml names; ``reviewer`` is who reviews unless the page says
    otherwise.
    """

    def __init__(
        self,
        study: str | Path,
        *,
        task: TaskModel | None = None,
        reviewer: str = "",
        on_progress: Progress | None = None,
    ) -> None:
        say = on_progress or (lambda doing, done, of: None)
        say("reading", 0, 1)
        self.study, self.reviewer = Path(study), clean_name(reviewer)
        self.grounded = read_proposed(study, task)
        self.terrain, self._weighing = self.grounded.terrain, self.grounded.settings.weighing
        self.scene = map_scene(self.terrain.task)
        self.trail = Trail(study)
        self.sample = ""
        self._guard = threading.RLock()
        self._proof = self._proposed_file()
        self._n_known = len(self.trail.entries)
        known = by_dialog(self.trail.decisions)
        self._walked: dict[Key, Walked] = {}
        for done, dialog in enumerate(self.grounded.dialogs):
            say("looking", done, len(self.grounded.dialogs))
            key = (dialog.transcript.participant, dialog.transcript.episode)
            self._walked[key] = Walked(dialog, known.get(key, ()), self.terrain, self._weighing)
        found = find_recordings(self.study, [dialog.transcript for dialog in self.grounded.dialogs])
        self._tickets = {key: secrets.token_urlsafe(32) for key in found}
        self.recordings: Mapping[str, Path] = {self._tickets[key]: path for key, path in found.items()}

    def recording(self, ticket: str) -> tuple[Path, str]:
        """Return the file that a ticket stands for and its media type, if it is still there and no link."""
        path = self.recordings.get(ticket)
        if path is None or not _is_inside(path, self.study):
            raise MissingError("There is no such recording.")
        return path, SOUNDS[path.suffix.lower()]

    @property
    def n_segments(self) -> int:
        """How many segments there are."""
        return sum(len(walked.segments) for walked in self._walked.values())

    def start(self) -> dict[str, Any]:
        """Return what the page needs before anything else."""
        with self._guard:
            self._catch_up()
            return {
                "study": self.study.resolve().name,
                "scene": self.scene,
                "reviewer": self.reviewer,
                "meanings": dict(MEANINGS),
                "reviewers": self._reviewers(),
                "samples": self._samples(),
                "sample": self.sample,
            }

    def listing(self, reviewer: str, *, sample: str = "", head: str = "") -> dict[str, Any]:
        """Return the list of segments; nothing but that it is the same if nobody added to the trail since."""
        with self._guard:
            self._catch_up()
            if head and head == self.trail.head:
                return {"head": head, "unchanged": True}
            viewer = Viewer(reviewer, sample)
            rows = [
                list_row(walked, i, viewer)
                for walked in self._within(sample)
                for i in range(len(walked.segments))
            ]
            return {
                "head": self.trail.head,
                "rows": rows,
                "header": self._header(viewer, sample),
                "reviewers": self._reviewers(),
                "samples": self._samples(),
            }

    def dialog(
        self, reviewer: str, participant: str, episode: str, *, sample: str = "", settling: bool = False
    ) -> dict[str, Any]:
        """Return a dialog as a reviewer may see it."""
        with self._guard:
            self._catch_up()
            viewer = Viewer(reviewer, sample, settling)
            return self._view(self._find(participant, episode), viewer)

    def preview(self, reviewer: str, about: About) -> dict[str, Any]:
        """Return what an edit would come to, and what it would change in the rest of the dialog."""
        with self._guard:
            self._catch_up()
            walked, i, viewer = self._about(reviewer, about)
            shown = viewer.shown(walked, i)
            told = walked.dialog.told
            try:
                edit = parse_edit(about.text.strip() or "NONE", self.terrain, shown.start, told=told)
            except GroundingError as error:
                return {"ok": False, "error": str(error)}
            program, done = edit
            made = decide(
                walked.dialog,
                shown,
                self.terrain,
                reviewer=reviewer or "?",
                kind="edit",
                edit=edit,
                settles=viewer.settles(walked, i),
            )
            after = walked.with_one_more(made)
            names = legal_actions(self.terrain, done.end, told=told)
            return {
                "ok": True,
                "program": write_program(program),
                "same": write_program(program) == write_program(shown.program),
                "instructions": instruction_views(program, done, None),
                "steps": step_views(done, self.terrain),
                "start": place_view(shown.start, self.terrain),
                "end": place_view(done.end, self.terrain),
                "legal": legal_views(names, done.end, self.terrain),
                "changes": None if viewer.is_blind else _changes(walked.segments, after, i),
            }

    def judge(self, reviewer: str, judged: Judged) -> dict[str, Any]:
        """Write a decision down; when this returns it is on the disk."""
        if not clean_name(reviewer):
            raise GroundingError("Say who is reviewing first.")
        with self._guard:
            self._catch_up()
            self._same_grounding()
            made, walked, i = self._decision(reviewer, judged)
            before = walked.segments
            self.trail.append(made, check=lambda: self._still(reviewer, judged))
            self._catch_up()
            walked = self._walked[walked.key]
            return {
                **self.present(reviewer, judged),
                "changes": None if judged.sample else _changes(before, walked.segments, i),
            }

    def present(self, reviewer: str, about: About) -> dict[str, Any]:
        """Return a dialog, its rows of the list and the header as they are now."""
        with self._guard:
            viewer = Viewer(reviewer, about.sample, about.settling)
            walked = self._find(about.participant, about.episode)
            return {
                "head": self.trail.head,
                "dialog": self._view(walked, viewer),
                "rows": [list_row(walked, i, viewer) for i in range(len(walked.segments))],
                "header": self._header(viewer, about.sample),
                "changes": [],
            }

    def draw(self, reviewer: str, n: int, seed: int) -> dict[str, Any]:
        """Draw dialogs for an audit, or find those that were drawn so before."""
        with self._guard:
            self._same_grounding()
            self._catch_up()
            sample = draw_sample(self.study, n, seed, reviewer=reviewer)
            drawn = [(known.name, known.dialogs) for known in self.trail.samples]
            if (sample.name, sample.dialogs) not in drawn:
                self.trail.append(sample)
                self._catch_up()
            return {"name": sample.name, "n_dialogs": len(sample.dialogs), "seed": sample.seed}

    # What is below is called with the guard held.

    def _view(self, walked: Walked, viewer: Viewer) -> dict[str, Any]:
        """A dialog as a reviewer may see it, with the ticket for its recording if there is one."""
        return dialog_view(walked, viewer, self._tickets.get(walked.key))

    def _catch_up(self) -> None:
        """Read what others have added to the trail, and take it in."""
        self.trail.refresh()
        self._take_in()

    def _take_in(self) -> None:
        """Walk the dialogs again about which something was decided."""
        entries = self.trail.entries
        new = [entry for entry in entries[self._n_known :] if isinstance(entry, Decision)]
        self._n_known = len(entries)
        for key, decisions in by_dialog(new).items():
            walked = self._walked.get(key)
            if walked is not None:
                made = (*walked.decisions, *decisions)
                self._walked[key] = Walked(walked.dialog, made, self.terrain, self._weighing)

    def _same_grounding(self) -> None:
        """Raise if the study was grounded again since it was read."""
        if self._proposed_file() != self._proof:
            raise GroundingError(
                "The study was grounded again meanwhile. Stop fidm review and start it again; "
                "decisions made so far are kept."
            )

    def _proposed_file(self) -> str:
        """The grounder's table, whichever file holds it, to see whether it is still the same."""
        folder = self.study / FOLDER
        path = folder / PROPOSALS
        try:
            return hash_file(path if path.exists() else folder / "segments.parquet")
        except OSError as error:
            raise GroundingError(f"cannot be read: {error.strerror}.", source=str(folder)) from None

    def _find(self, participant: str, episode: str) -> Walked:
        found = self._walked.get((participant, episode))
        if found is None:
            raise MissingError("There is no such dialog.")
        return found

    def _about(self, reviewer: str, about: About) -> tuple[Walked, int, Viewer]:
        """The segment a request is about; raises if the reviewer has seen something else."""
        walked = self._find(about.participant, about.episode)
        i = walked.place_of(about.segment)
        if i is None:
            raise MissingError("There is no such segment.")
        if about.sample and walked.key not in self._sample(about.sample).dialogs:
            raise MissingError("This dialog is not in the audit sample.")
        viewer = Viewer(reviewer, about.sample, about.settling)
        if seen_of(viewer.shown(walked, i)) != about.seen.model_dump():
            raise ChangedError("It has changed meanwhile.")
        return walked, i, viewer

    def _still(self, reviewer: str, about: About) -> None:
        """Raise if what was decided on has changed while the decision was under way; the trail is held."""
        self._take_in()
        self._about(reviewer, about)

    def _decision(self, reviewer: str, judged: Judged) -> tuple[Decision, Walked, int]:
        walked, i, viewer = self._about(reviewer, judged)
        shown, edit = viewer.shown(walked, i), None
        if judged.kind == "withdraw" and viewer.own(walked, i) is None:
            raise GroundingError("There is nothing of yours to withdraw here.")
        if judged.kind == "edit":
            text = judged.text.strip() or "NONE"
            edit = parse_edit(text, self.terrain, shown.start, told=walked.dialog.told)
            if write_program(edit[0]) == write_program(shown.program):
                raise GroundingError("That is the reading as it stands. Accept it instead.")
        made = decide(
            walked.dialog,
            shown,
            self.terrain,
            reviewer=reviewer,
            kind=judged.kind,
            edit=edit,
            comment=judged.comment,
            settles=judged.kind != "withdraw" and viewer.settles(walked, i),
            sample=judged.sample,
        )
        return made, walked, i

    def _within(self, sample: str) -> Iterable[Walked]:
        """The dialogs of an audit sample; all of them without one."""
        if not sample:
            return self._walked.values()
        drawn = self._sample(sample).dialogs
        return [self._walked[key] for key in drawn if key in self._walked]

    def _sample(self, name: str) -> Sample:
        found = [sample for sample in self.trail.samples if sample.name == name]
        if not found:
            raise MissingError("There is no such audit sample.")
        return found[-1]

    def _samples(self) -> list[dict[str, Any]]:
        known = {sample.name: sample for sample in self.trail.samples}
        return [
            {"name": name, "seed": sample.seed, "n_dialogs": len(sample.dialogs)}
            for name, sample in known.items()
        ]

    def _reviewers(self) -> list[str]:
        """Who has decided something in this study, so that nobody goes by two names."""
        return sorted({decision.reviewer for decision in self.trail.decisions})

    def _header(self, viewer: Viewer, sample: str) -> dict[str, Any]:
        """How far the reviewer is, how far reviewers agree, and what the audit says."""
        judged = [
            viewer.own(walked, i) is not None
            for walked in self._within(sample)
            for i in range(len(walked.segments))
        ]
        decisions = self.trail.decisions
        audit = None
        if sample:
            score = audit_of(self._sample(sample), self.grounded, decisions, reviewer=viewer.reviewer)
            audit = {
                "n_dialogs": score.n_dialogs,
                "n_consistent": score.n_consistent,
                "low": score.dialogs[0],
                "high": score.dialogs[1],
                "n_left": score.n_left,
            }
        return {
            "n": len(judged),
            "n_mine": sum(judged),
            "agreements": [plain(asdict(one)) for one in agreements(decisions)],
            "audit": plain(audit),
        }


def _changes(
    before: tuple[ReviewedSegment, ...], after: tuple[ReviewedSegment, ...], own: int
) -> list[dict[str, Any]]:
    """What becomes of the other segments."""
    number = before[own].proposed.segment.number
    return [
        asdict(one) | {"segment": str(one.segment)}
        for one in changed_after(before, after)
        if one.segment != number
    ]


def find_recordings(study: Path, transcripts: Iterable[Transcript]) -> dict[Key, Path]:
    """Return the recording of each dialog that has one.

    It is the file that the dialog names, wherever it lies in the study; otherwise one in the folder ``audio``
    with the name of the dialog's file, or of the participant if there is no other dialog of theirs. Names are
    compared with those of files that are there and never become a path, links are passed over, and where
    several files have the name none is taken.
    """
    named: dict[str, list[Path]] = {}
    beside: dict[str, list[Path]] = {}
    for folder, _, files in os.walk(study):  # which follows no links
        for path in (Path(folder) / file for file in sorted(files)):
            if path.suffix.lower() in SOUNDS and _is_inside(path, study):
                for name in {path.name, path.stem}:
                    named.setdefault(name, []).append(path)
                if path.parent == study / AUDIO:
                    beside.setdefault(path.stem, []).append(path)
    items = list(transcripts)
    people = [item.participant for item in items]
    order = list(SOUNDS)
    found: dict[Key, Path] = {}
    for item in items:
        said = PureWindowsPath(item.media)
        own = named.get(said.name, []) if item.media else []
        if len(own) > 1:  # visit1.wav of several people: folders tell them apart
            own = [one for one in own if one.parts[-len(said.parts) :] == said.parts]
        taken = own if len(own) == 1 else beside.get(Path(item.source).stem, []) if item.source else []
        if not taken and people.count(item.participant) == 1:
            taken = beside.get(item.participant, [])
        if taken:
            found[item.participant, item.episode] = min(
                taken, key=lambda one: order.index(one.suffix.lower())
            )
    return found


def _is_inside(path: Path, study: Path) -> bool:
    """Whether it is a file of the study itself: no link, and not reached by one."""
    try:
        return path.is_file() and path.resolve() == study.resolve() / path.relative_to(study)
    except OSError:
        return False
