"""What lies in a folder of dialogs, and how a study is made of it: files, speakers, task and participants.

:func:`look_at` reads everything and writes nothing. It finds out who is who, which task the words are about
and which row of a table belongs to which dialog, as far as that is clear; what is not, is a question.
:meth:`Intake.write` writes ``study.toml``, ``grounding.toml`` and, where roles differ from file to file,
``roles.csv``. Files that are there already are respected and never overwritten.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl

from fidm.errors import DataError, Problem, count, few, listed
from fidm.files import whole_file
from fidm.grounding.people import Roster, Sheet, find_people, parts_of, sheets_in
from fidm.grounding.rules.language import (
    FAR_BETTER,
    FITS,
    called,
    is_cantonese,
    is_mandarin,
    language_of,
    task_fit,
)
from fidm.grounding.rules.romanised import ROMANISED
from fidm.grounding.settings import FILE, GroundingFile, read_settings
from fidm.grounding.speakers import DialogFile, WayWords, dialog_file, split_words, told
from fidm.io.dialogs import formats, name_pattern, read
from fidm.io.formats.base import (
    RECORDINGS,
    BrokenError,
    Flaw,
    Format,
    Options,
    RawFile,
    files_below,
    read_file,
)
from fidm.io.formats.checks import KNOWN, NO_TIMES, Roles, who_is
from fidm.io.formats.table import NO_COLUMN
from fidm.io.formats.whisper import NO_DIALOG
from fidm.io.sheets import SHEETS
from fidm.io.study import TABLES, read_manifest
from fidm.io.talk import Role, Transcript, Transcripts, Turn
from fidm.languages import WORDS, languages_with
from fidm.tasks.spec import builtin_tasks, read_task
from fidm.types import Progress

TALKS, STUDY, ROLES_FILE = "talks", "study", "roles.csv"


@dataclass(frozen=True)
class Intake:
    """What was found in a folder, and the study that would be made of it."""

    folder: Path
    study: Path
    talks: Path  # the folder of the dialogs
    names: str  # what files are called
    chosen: GroundingFile  # what grounding.toml says already
    skip: tuple[str, ...]  # files among the dialogs that are none, from the folder of the dialogs
    copies: Mapping[str, str]  # of these, the ones that hold the same talk as another file, and which
    files: tuple[DialogFile, ...]
    unread: tuple[Path, ...]  # files of no known format
    fits: Mapping[str, float]  # how well the words fit each task
    task: str  # empty where it is not clear
    dialogs: Transcripts = field(repr=False)  # as they will be read, with what is wrong in them
    people: Roster | None = None
    tables: tuple[Path, ...] = ()  # tables in which nobody of the dialogs was found
    broken: Mapping[Path, str] = field(default_factory=dict)  # why tables cannot be read

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The participants of all dialogs, as far as these can be read."""
        told = self.dialogs.problems.filter(pl.col("participant") != "")["participant"]
        return tuple(dict.fromkeys([*(one.participant for one in self.dialogs), *told]))

    def questions(self) -> list[str]:
        """Return what only the user can say, each with what to do; empty where the study is ready."""
        found = []
        single = [file.name for file in self.files if file.is_undiarised and file.is_unclear]
        if single:
            found.append(
                f"{count(len(single), 'file')} not told apart by speaker: {few(single)}. A recogniser with "
                "diarisation, such as WhisperX, tells them apart. If only the participant speaks, say so in "
                f"{self.study / ROLES_FILE}."
            )
        latin = [one.name for one in self.files if one.language.endswith(ROMANISED)]
        if latin:
            found.append(
                f"{count(len(latin), 'file')} in romanised Chinese (such as Jyutping, Yale or pinyin), which "
                f"cannot be read: {few(latin)}. Where there is a tier of characters, make that one the "
                f"participant and the romanised one other in {self.study / self.roles_place()}; else put "
                "them into characters first."
            )
        off = [file for file in self.files if file.is_off_task and file.name not in latin]
        if off:
            said = few(file.name for file in off)
            found.append(
                f"{count(len(off), 'file')} in which the participant hardly speaks of the way: {said}. If "
                f"that is another task, name them in skip in {self.study / FILE}."
            )
        unclear = [file.name for file in self.files if file.is_unclear and not file.is_undiarised]
        if unclear:
            found.append(
                f"Who is the participant is not clear in {count(len(unclear), 'file')}: {few(unclear)}. "
                f"Fill in the empty roles in {self.study / ROLES_FILE}."
            )
        readable = languages_with(WORDS)
        odd = [one for one in self.files if one.language not in readable and not Path(one.language).is_file()]
        odd = [one for one in odd if one.name not in latin]
        if odd:
            said = few(dict.fromkeys(one.language for one in odd))
            found.append(
                f"{count(len(odd), 'file')} in a language that cannot be read ({said}): "
                f"{few(one.name for one in odd)}. Say what is meant in {self.study / FILE}: [languages], or "
                "language."
            )
        if not self.task:
            fits = ", ".join(f"{name} {fit:.2f}" for name, fit in self.fits.items() if fit)
            known = f"Their words fit: {fits}" if fits else "Their words name no places of a built-in task"
            found.append(f"Which task the dialogs are about is not clear. {known}. Say it: --task NAME.")
        if self.bad.height:
            names = self.bad["table"].unique(maintain_order=True)
            left_out = count(len(names), "file")
            found.append(
                f"{left_out} cannot be used: {few(names)}. Repair what is wrong, or leave them out: "
                f"fidm run {self.study} --skip-bad"
            )
        return found

    def warnings(self) -> list[str]:
        """Return what was assumed, and should be looked at."""
        found = []
        guessed = [file.name for file in self.files if file.is_guessed and not file.is_unclear]
        if guessed:
            found.append(
                f"Roles were found by who speaks of the way in {count(len(guessed), 'file')}: {few(guessed)}."
                f" Check {self.roles_place()}."
            )
        found += [
            f"Dialogs whose language is said to be {said} are taken for {meant}. Check [languages] in {FILE}."
            for said, meant in self.chosen.languages.items()
        ]
        untimed = sum(not turn.is_timed for one in self.dialogs for turn in one)
        if untimed:
            found.append(
                f"{count(untimed, 'turn')} without times: they are read, but their segments have no duration "
                "and no pauses."
            )
        several = sum(n > 1 for n in Counter(one.participant for one in self.dialogs).values())
        if several and self.names != "file":
            found.append(
                f"{count(several, 'participant has', 'participants have')} several dialogs, by the names of "
                "files. Each is an episode of its own, from the start of the map; parts of one dialog must "
                "be joined into one file."
            )
        if self.people is not None and self.people.pairs:
            found.append(
                "Ids that differ were taken as one person's. Check [participants.ids] in study.toml."
            )
        if self.people is not None and self.people.left_out:
            where = listed(
                f"{name} is {listed(map(repr, v))}" for name, v in self.people.table.excluded.items()
            )
            found.append(
                f"{count(len(self.people.left_out), 'row')} taken for people who take no part, "
                f"since {where}: {few(self.people.left_out)}. Check [participants.excluded] in study.toml."
            )
        found += [f"{path.name} {why}" for path, why in self.broken.items()]
        for path in self.tables:
            found.append(f"{path.name} was not used: no column of it names the participants of the dialogs.")
        unread = [path for path in self.unread if self.people is None or path != self.people.path]
        if unread:
            kinds = ", ".join(sorted({path.suffix or "no suffix" for path in unread}))
            found.append(f"{count(len(unread), 'file')} not read: no known format has {kinds}.")
        used = None if self.people is None else self.people.path.name
        if self.copies:
            same = few(f"{name} = {kept}" for name, kept in self.copies.items())
            found.append(f"{count(len(self.copies), 'file')} not used, as others hold the same talk: {same}.")
        others = [name for name in self.skip if name not in self.copies and Path(name).name != used]
        if others:
            found.append(f"{count(len(others), 'file')} taken for no dialog: {few(others)}.")
        return found

    def roles_place(self) -> str:
        """Return where roles are written: one mapping where it holds in every file, else a table."""
        return FILE if self.shared_roles() is not None else ROLES_FILE

    def shared_roles(self) -> dict[str, Role] | None:
        """Return the roles that must be said, by speaker; None where they differ between files."""
        found: dict[str, Role] = {}
        for file in self.files:
            if file.is_unclear:
                return None
            for one in file.speakers if file.is_guessed else ():
                if one.role is None or found.setdefault(one.name, one.role) != one.role:
                    return None
        taken = {name.casefold() for name in found}
        sure = [one for file in self.files if not file.is_guessed for one in file.speakers]
        differ = any(one.name.casefold() in taken and found.get(one.name) != one.role for one in sure)
        return None if differ else found

    def roles(self) -> Roles:
        """Return who is who, as it will be written."""
        shared = self.shared_roles()
        if shared is not None:
            return Roles({name.casefold(): role for name, role in shared.items()})
        by_file = {
            file.name: {one.name.casefold(): one.role for one in file.speakers if one.role is not None}
            for file in self.files
            if file.is_guessed or file.is_unclear
        }
        return Roles(by_file=by_file)

    def without(self, names: Iterable[str]) -> Intake:
        """Return the same without some files, which will be skipped."""
        gone = set(names)
        files = tuple(one for one in self.files if one.name not in gone)
        return _read(replace(self, files=files, skip=tuple(sorted({*self.skip, *gone}))))

    def answered(self, participants: Mapping[str, str]) -> Intake:
        """Return the same with the participants of files said by the user; everybody else is an assessor."""
        files = tuple(
            replace(one, speakers=tuple(told(one.speakers, participants[one.name])))
            if one.name in participants
            else one
            for one in self.files
        )
        return _read(replace(self, files=files))

    @property
    def bad(self) -> pl.DataFrame:
        """What is wrong in files in which it is clear who is who."""
        unclear = [file.name for file in self.files if file.is_unclear]
        return self.dialogs.problems.filter(~pl.col("table").is_in(unclear))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        people = None if self.people is None else {**asdict(self.people), "path": str(self.people.path)}
        return {
            "folder": str(self.folder),
            "study": str(self.study),
            "talks": str(self.talks),
            "names": self.names,
            "formats": dict(Counter(file.format for file in self.files)),
            "languages": dict(Counter(file.language for file in self.files)),
            "files": [{**asdict(file), "path": str(file.path)} for file in self.files],
            "skip": list(self.skip),
            "fits": dict(self.fits),
            "task": self.task,
            "participants": people,
            "problems": self.bad.to_dicts(),
            "questions": self.questions(),
            "warnings": self.warnings(),
        }

    # ------------------------------------------------------------------ writing

    def write(self) -> list[Path]:
        """Write what makes the folder a study; return the files that were written."""
        self.study.mkdir(parents=True, exist_ok=True)
        texts = {"study.toml": self._study_toml(), FILE: self._grounding_toml()}
        if self.roles_place() == ROLES_FILE:
            texts[ROLES_FILE] = self._roles_csv()
        written = []
        for name, text in texts.items():
            path = self.study / name
            if not path.exists():
                with whole_file(path) as part:
                    part.write_text(text, "utf-8")
                written.append(path)
        return written

    def _study_toml(self) -> str:
        fits = ", ".join(f"{name} {fit:.2f}" for name, fit in self.fits.items())
        lines = [
            "# What the study is about and who took part, as fidm start found it.",
            "# Every line may be changed: fidm start does not overwrite this file.",
            "schema = 1",
            "",
            f"# The task. Share of unusual words that name its places: {fits}.",
            f"tasks = [{_quoted(self.task)}]" if self.task else 'tasks = []  # such as ["grocery"]',
        ]
        if self.people is None:
            lines += [
                "",
                "# A table of participants (CSV, Excel, OpenDocument) stays where and as it is:",
                "# [participants]",
                '# file = "participants.xlsx"',
                '# id = "ID"  # the column with their names, as the dialogs have them',
            ]
            return "\n".join(lines) + "\n"
        table = self.people.table
        lines += ["", "# Who took part. The table stays where and as it is.", "[participants]"]
        lines += [f"file = {_quoted(table.file)}", f"id = {_quoted(table.id)}"]
        lines += [f"sheet = {_quoted(table.sheet)}"] if table.sheet else []
        if table.excluded:
            lines += [
                "",
                "# Whoever has one of these values takes no part. Please check.",
                "[participants.excluded]",
            ]
            lines += [
                f"{_quoted(name)} = [{', '.join(map(_quoted, v))}]" for name, v in table.excluded.items()
            ]
        if self.people.pairs:
            lines += ["", "# Ids of the table = names of the dialogs, where they differ. Please check them."]
            lines += ["[participants.ids]"]
            lines += [f"{_quoted(row)} = {_quoted(dialog)}" for row, dialog in self.people.pairs.items()]
        return "\n".join(lines) + "\n"

    def _grounding_toml(self) -> str:
        where = os.path.relpath(self.talks, self.study).replace(os.sep, "/")
        spoken = ", ".join(f"{code} ({n:,})" for code, n in Counter(f.language for f in self.files).items())
        lines = [
            "# How the dialogs are read, as fidm start found it.",
            "# Every line may be changed: fidm start does not overwrite this file.",
            f"talks = {_quoted(where)}",
            f'names = {_quoted(self.names)}  # "file": P001.cha; "folder": P001/visit1.cha',
            f'# language = "en"  # if it is not what the files say; found: {spoken}',
        ]
        if self.chosen.untimed == "keep":
            lines += ['untimed = "keep"  # turns without times are read, without duration and pauses']
        if self.skip:
            lines += ["", "# Files among the dialogs that are none."]
            lines += ["skip = [", *(f"    {_quoted(name)}," for name in self.skip), "]"]
        shared = self.shared_roles()
        if shared is None:
            lines += ["", "# Who is who, file by file: the columns file, speaker and role."]
            lines += [f'roles = "{ROLES_FILE}"']
        elif shared:
            lines += ["", "# Who is who: participant, assessor or other. Please check.", "[speakers]"]
            lines += [f"{_quoted(name)} = {_quoted(role)}" for name, role in shared.items()]
        if self.chosen.languages:
            lines += ["", "# What it means when a file says its language is …", "[languages]"]
            lines += [f"{_quoted(said)} = {_quoted(meant)}" for said, meant in self.chosen.languages.items()]
        return "\n".join(lines) + "\n"

    def _roles_csv(self) -> str:
        rows = [
            (file.name, one.name, one.role or "", one.turns, one.way_words)
            for file in self.files
            if file.is_guessed or file.is_unclear
            for one in file.speakers
        ]
        columns = ["file", "speaker", "role", "turns", "words_of_the_way"]
        return pl.DataFrame(rows, schema=columns, orient="row").write_csv()


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


# ---------------------------------------------------------------------- looking


def look_at(
    folder: str | Path,
    *,
    study: Path | None = None,
    task: str | None = None,
    on_progress: Progress | None = None,
) -> Intake:
    """Look at what lies in a folder, and find out how a study is made of it. Nothing is written.

    Parameters
    ----------
    folder : path
        Where dialogs are, however deep, and perhaps a table of participants.
    study : path, optional
        Where the study shall be; by default the folder itself where its dialogs have a folder of their own,
        else the folder ``study`` in it.
    task : str, optional
        The built-in task or task file that the dialogs are about; by default found by their words.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.
    """
    place = Path(folder)
    if not place.is_dir():
        raise DataError("is not a folder.", source=str(place))
    home = study if study is not None else _home(place)
    chosen = read_settings(home) if home is not None else GroundingFile()
    kinds = {suffix: one for one in formats() for suffix in one.suffixes}
    known = home / chosen.talks if home is not None and (home / FILE).is_file() else None
    below = list(files_below(place))
    sure = known or (place / TALKS if (place / TALKS).is_dir() else None)
    sure = None if sure is None else Path(os.path.normpath(sure))
    among = (
        [one for one in files_below(sure) if one.relative_to(sure).as_posix() not in chosen.skip]
        if sure
        else below
    )
    found, skip = _sorted_out(among, kinds, chosen, on_progress=on_progress)
    copies = _copies(found, kinds)
    found = {path: raw for path, raw in found.items() if path not in copies}
    if not found:
        raise _no_dialogs(place, below, skip, kinds)
    talks = sure or Path(os.path.commonpath([path.parent for path in found]))
    home = home or (place if talks != place else place / STUDY)
    named = list(read_manifest(home).tasks)
    spoken = {path: _talk(path, raw, chosen) for path, raw in found.items()}
    meant = _meant_languages(spoken.values())
    chosen = chosen.model_copy(update={"languages": {**chosen.languages, **meant}})
    spoken = {
        path: replace(talk, language=meant.get(talk.language, talk.language)) for path, talk in spoken.items()
    }
    spoken = {path: replace(talk, language=language_of(talk)) for path, talk in spoken.items()}
    tasks = list(dict.fromkeys([*([task] if task else named), *builtin_tasks()]))
    fits = task_fit(list(spoken.values()), tasks)
    best = task or (named[0] if len(named) == 1 else _clear(fits, len(spoken)))
    words = WayWords(best or max(fits, key=lambda name: fits[name]))
    given = chosen.who_is_who(home)
    files = tuple(
        dialog_file(path, raw, kinds[path.suffix.casefold()], spoken[path], given, words, talks)
        for path, raw in found.items()
    )
    tables = dict.fromkeys([*below, *_given(home)])
    sheets, broken = sheets_in(path for path in tables if path not in found and path not in copies)
    own = [path.relative_to(talks).as_posix() for path in (*skip, *copies) if talks in path.parents]
    made = Intake(
        folder=place,
        study=home,
        talks=talks,
        names=_called(list(found), sheets) if known is None else chosen.names,
        chosen=chosen,
        skip=tuple(sorted({*chosen.skip, *own})),
        copies={path.relative_to(talks).as_posix(): kept.name for path, kept in copies.items()},
        files=files,
        unread=tuple(
            path
            for path in (files_below(talks) if talks != place else below)
            if path.suffix.casefold() not in (*kinds, *SHEETS, *RECORDINGS, ".toml", ".md")
        ),
        fits=fits,
        task=best,
        broken=broken,
        dialogs=Transcripts((), pl.DataFrame()),
    )
    made = _read(made)
    people, unused = find_people(made.ids, made.study, sheets)
    return replace(made, people=people, tables=unused)


def _read(made: Intake) -> Intake:
    """The same with the dialogs read as they will be; turns without times are kept where there are some."""
    dialogs = read(
        made.talks,
        names=made.names,
        roles=made.roles(),
        columns=made.chosen.columns or None,
        skip=made.skip,
        untimed=made.chosen.untimed,
        strict=False,
    )
    if made.chosen.untimed == "problem" and (dialogs.problems["problem"] == NO_TIMES).any():
        return _read(replace(made, chosen=made.chosen.model_copy(update={"untimed": "keep"})))
    return replace(made, dialogs=made.chosen.in_languages(dialogs))


def _given(home: Path) -> list[Path]:
    """The files of a study that its user put there, as far as one can tell."""
    if not home.is_dir():
        return []
    made = {*TABLES, Path(ROLES_FILE).stem, "profile"}
    return [path for path in home.iterdir() if path.is_file() and path.stem not in made]


def _copies(found: Mapping[Path, RawFile], kinds: Mapping[str, Format]) -> dict[Path, Path]:
    """Files that hold the same talk as another one, which tells more of it, by what tools write side by side.

    Of a recording, a recogniser writes JSON, subtitles and tables with the same name; backups of a file have
    another name, and most of the same turns.
    """

    def worth(path: Path) -> tuple[float, ...]:
        turns = found[path].turns
        speakers = len({turn.speaker for turn in turns})
        has_words = any(turn.words for turn in turns)
        kept = len(kinds[path.suffix.casefold()].keeps)
        return -min(speakers, 2), -has_words, -kept, -len(turns), len(path.name)

    alike: dict[object, list[Path]] = {}
    for path, raw in found.items():
        alike.setdefault((path.parent, path.name.split(".")[0].casefold()), []).append(path)
        for turn in raw.turns:
            if len(turn.text) >= TELLING and turn.start_s > 0:
                alike.setdefault((turn.start_s, turn.text), []).append(path)
    copies: dict[Path, Path] = {}
    for group in dict.fromkeys(tuple(sorted(set(paths), key=worth)) for paths in alike.values()):
        for path in group[1:]:
            if path not in copies and _same_words(found[group[0]], found[path]):
                copies[path] = group[0]
    return {path: copies.get(kept, kept) for path, kept in copies.items()}


TELLING = 12
"""Two files in which somebody says so many characters at the same moment may hold the same talk."""


def _same_words(one: RawFile, other: RawFile) -> bool:
    """Whether two files say the same, but for a few words."""
    first, second = (_pairs_of_words(raw) for raw in (one, other))
    return first.total() > 0 and (first & second).total() >= SAME * (first | second).total()


SAME = 0.8
"""Files that share so many of their pairs of neighbouring words hold the same talk."""


def _pairs_of_words(raw: RawFile) -> Counter[tuple[str, str]]:
    words = [word for turn in raw.turns for word in split_words(turn.text.casefold())]
    return Counter(pairwise(words))


def _called(paths: Sequence[Path], sheets: Sequence[Sheet]) -> str:
    """What the files of dialogs are called, by whom the tables name, and by which parts of names return."""
    columns = [{parts_of(row) for row in column.drop_nulls()} for sheet in sheets for column in sheet.table]

    def people(names: str) -> list[tuple[str, str]]:
        places = [name_pattern(names).fullmatch(path.with_suffix("").as_posix()) for path in paths]
        return [
            ("", "") if p is None else (p["participant"], p.groupdict().get("episode", "")) for p in places
        ]

    def named(names: str) -> int:
        ids = [parts_of(who) for who, _ in people(names)]
        return max((sum(one in column for one in ids) for column in columns), default=0)

    def is_unique(names: str) -> bool:
        return ("", "") not in people(names) and len(set(people(names))) == len(paths)

    def is_usual(names: str) -> bool:
        """Whether parts return: several people, who have the same few episodes."""
        who, episodes = (Counter(some) for some in zip(*people(names), strict=True))
        return is_unique(names) and 1 < len(who) < len(paths) and 2 * len(episodes) <= len(paths)

    apart = [f"{who}{sign}{{episode}}" for sign in "_- ." for who in ("{participant}", "{id}")]
    folders = ["folder", "{participant}/{episode}/{any}", "{participant}/{any}"]
    unique = [one for one in ("file", *folders, *apart) if is_unique(one)]
    best = max(unique, key=named, default="file")
    if named(best) > named("file") or not is_unique("file"):
        return best
    return "file" if named("file") else next(filter(is_usual, apart), "file")


def _no_dialogs(
    place: Path, below: Sequence[Path], others: Mapping[Path, Flaw], kinds: Mapping[str, Format]
) -> DataError:
    """The error of a folder without dialogs: what is in it instead, and what to do."""
    suffixes = Counter(path.suffix.casefold() or "no suffix" for path in below)
    there = ", ".join(f"{n:,} {suffix}" for suffix, n in suffixes.most_common())
    remedy = (
        f"It has {there or 'no files'}. Export transcripts as SubRip, WebVTT, or a table with start, end, "
        "speaker and text; most tools can."
    )
    if any(path.stem == "steps" for path in below):
        remedy = f"It has a table of steps, so it is a study already: fidm run {place}"
    elif suffixes.keys() & set(RECORDINGS):
        remedy += f" Recordings are transcribed by: fidm transcribe {place}"
    problems = [
        Problem(flaw.what, path.relative_to(place).as_posix(), flaw.line, flaw.hint)
        for path, flaw in others.items()
    ]
    said = f"has no dialogs ({', '.join(kinds)}). {remedy}"
    return DataError(said, source=str(place), problems=problems)


def _home(place: Path) -> Path | None:
    """The study that is there already: the folder, or the one in it; None where there is none."""
    for one in (place, place / STUDY):
        if (one / "study.toml").is_file() or (one / FILE).is_file():
            return one
    return None


def _sorted_out(
    paths: Sequence[Path],
    kinds: Mapping[str, Format],
    chosen: GroundingFile,
    *,
    on_progress: Progress | None,
) -> tuple[dict[Path, RawFile], dict[Path, Flaw]]:
    """The files that are dialogs, and why others with the suffix of dialogs are none."""
    found: dict[Path, RawFile] = {}
    others: dict[Path, Flaw] = {}
    speakers = frozenset(KNOWN) | {"", *(name.casefold() for name in chosen.speakers)}
    for i, path in enumerate(paths):
        if on_progress is not None:
            on_progress("looking at files", i, len(paths))
        kind = kinds.get(path.suffix.casefold())
        if kind is None:
            continue
        try:
            raw = kind.read_text(read_file(path, quiet=True), Options(chosen.columns, speakers))
        except BrokenError as broken:
            raw = RawFile(flaws=[broken.flaw])  # told again when all dialogs are read
        odd = next((flaw for flaw in raw.flaws if flaw.what.startswith((NO_COLUMN, NO_DIALOG))), None)
        if odd is not None:
            others[path] = odd
        else:
            found[path] = raw
    return found, others


def _talk(path: Path, raw: RawFile, chosen: GroundingFile) -> Transcript:
    """The turns of a file as one talk, before anybody knows who is who."""
    known = [who_is(turn, {})[1] for turn in raw.turns]
    somebody = "participant" in known
    turns = tuple(
        Turn(
            turn.speaker,
            turn.start_s,
            turn.end_s,
            turn.text,
            (role or "other") if somebody else "participant",
        )
        for turn, role in zip(raw.turns, known, strict=True)
    )
    said = chosen.language or next((turn.language for turn in raw.turns if turn.language), raw.language)
    return Transcript(path.stem, turns, str(path), language=chosen.languages.get(said, said))


def _meant_languages(talks: Iterable[Transcript]) -> dict[str, str]:
    """What is meant by a language that cannot be read, or by Chinese, where the characters tell.

    Recognisers call Cantonese Chinese.
    """
    by_said = dict[str, list[str]]()
    for talk in talks:
        if called(talk.language) in ("zh", None) and not Path(talk.language).is_file():
            by_said.setdefault(talk.language, []).append("".join(turn.text for turn in talk))
    return {
        said: "yue"
        for said, texts in by_said.items()
        if said and all(is_cantonese(text) and not is_mandarin(text) for text in texts)
    }


def _clear(fits: Mapping[str, float], n_dialogs: int) -> str:
    """The task that the words are about; empty where it is not clear.

    A task may hold all places of another one: then words that only one of them knows decide, and with some
    dialogs that there are none.
    """
    places = {name: _sections(name) for name in fits}
    first = max(fits, key=lambda name: (fits[name], len(places[name])))
    if fits[first] < FITS:
        return ""
    for name in fits.keys() - {first}:
        if places[name] < places[first] and n_dialogs >= FEW_DIALOGS and fits[first] < ALIKE * fits[name]:
            return name
        is_nested = places[name] <= places[first] or places[first] <= places[name]
        if fits[first] < (NESTED if is_nested else FAR_BETTER) * fits[name]:
            return ""
    return first


NESTED, ALIKE, FEW_DIALOGS = 1.03, 1.01, 4
"""So many times better a task must fit than one with some of its places; below, nobody needed the others."""


def _sections(task: str) -> set[str]:
    spec = read_task(task if task in builtin_tasks() else Path(task))
    return set(spec.sections)
