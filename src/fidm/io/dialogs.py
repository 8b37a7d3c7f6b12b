"""Timed dialogs: reading them from the files that labs and recognisers write, and writing them.

What a file keeps of a transcript when it is written and read again, always with the speakers and texts:

==========  ===================  ========  =====  =====  ==============================  ========  ===========
format      suffix               times     roles  words  marks                           language  participant
==========  ===================  ========  =====  =====  ==============================  ========  ===========
chat        .cha                 1 ms      yes    yes    pauses, fillers, retracings,    yes       no
                                                         events
elan        .eaf                 1 ms      no     no     events                          no        no
textgrid    .TextGrid            1 µs      no     no     events                          no        no
srt         .srt                 1 ms      no     no     none                            no        no
vtt         .vtt                 1 ms      no     no     none                            yes       no
whisper     .json                1 µs      yes    yes    all                             yes       yes
csv         .csv                 1 µs      yes    no     none                            yes       yes
tsv         .tsv                 1 µs      yes    no     none                            yes       yes
jsonl       .jsonl               1 µs      yes    yes    all                             yes       yes
==========  ===================  ========  =====  =====  ==============================  ========  ===========

Where roles are not kept, they are found by the speakers' names, or given as ``roles``. Where the
participant is not kept, it is the name of the file. CHAT keeps fillers and retracings that cover whole
words; TextGrid loses turns without words; subtitles, ELAN and TextGrid cannot keep turns without times.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import polars as pl

from fidm.cohort import PROBLEM_SCHEMA
from fidm.errors import DataError, Problem, count, remedy
from fidm.files import whole_file
from fidm.io.formats import table
from fidm.io.formats.base import (
    RECORDINGS,
    BrokenError,
    Flaw,
    Format,
    Options,
    RawFile,
    Source,
    clean,
    files_below,
    find_files,
    read_file,
    tidy,
)
from fidm.io.formats.checks import KNOWN, Asked, Roles, load_roles, same_talk, transcripts_of
from fidm.io.talk import Transcript, Transcripts, Turn
from fidm.registry import FORMATS
from fidm.types import Omission, omission

logger = logging.getLogger(__name__)


def formats() -> tuple[Format, ...]:
    """Return the file formats of dialogs, with those of other packages: names, suffixes, what each keeps.

    Examples
    --------
    >>> from fidm.io.dialogs import formats
    >>> [one.name for one in formats() if "pauses" in one.keeps]
    ['chat', 'whisper', 'jsonl']
    """
    return tuple(FORMATS.loaded().values())


def shows_pauses(format: str) -> bool:
    """Return whether a file of a format can show a pause inside an utterance: by a mark, or by words' times.

    Examples
    --------
    >>> from fidm.io.dialogs import shows_pauses
    >>> shows_pauses("chat"), shows_pauses("csv")
    (True, False)
    """
    known = FORMATS.loaded().get(format)
    return known is None or not {"pauses", "words"}.isdisjoint(known.keeps)


def _suffixes() -> dict[str, Format]:
    """Which format reads files of a suffix; of two, the first."""
    found: dict[str, Format] = {}
    for one in formats():
        for suffix in one.suffixes:
            found.setdefault(suffix, one)
    return found


def read(
    source: Source,
    *,
    participant: str | Callable[[Path], str] | None = None,
    names: str = "file",
    roles: Mapping[str, Any] | str | Path | Roles | None = None,
    columns: Mapping[str, str] | None = None,
    language: str = "",
    skip: Sequence[str] = (),
    strict: bool = True,
    untimed: Literal["problem", "keep"] = "problem",
    format: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Transcripts:
    r"""Read timed dialogs: who said what, and when.

    Parameters
    ----------
    source : path, pattern, or several
        A file, a folder (all files of known suffixes in it, however deep, but hidden ones), a pattern such as
        ``"visit1/*.cha"``, or a list of these.
    participant : str or callable, optional
        Whose dialog it is: a text for a single file, or a function from the file's path. By default the
        column ``participant`` of a table, else the file's name without its suffix.
    names : str
        What files are called: ``"file"`` after their participant; ``"folder"``, they lie in a folder that is
        and are called after the episode, ``P001/visit1.cha``; or a pattern, ``"{participant}_{episode}"`` for
        ``P001_visit1.cha``. ``{any}`` is what does not matter; ``{id}`` is a participant up to
        the first sign. Files that say it themselves are not concerned.
    roles : mapping or path, optional
        Who the speakers are, such as ``{"SPEAKER_00": "participant", "SPEAKER_01": "assessor"}``, or the
        path of a TOML or JSON file with that, or of a table (CSV, Excel, …) with the columns ``speaker`` and
        ``role``. Where it differs from file to file, ``{"P001.cha": {"SPEAKER_00": "participant"}}``, or a
        column ``file``. Upper and lower case are alike. Comes before what the file says and before the usual
        names (PAR, participant, child, patient; INV, assessor, examiner, interviewer, …).
    columns : mapping, optional
        What a table calls ``speaker``, ``start_s``, ``end_s``, ``text``, ``participant``, ``episode``,
        ``language`` or ``role``, such as ``{"text": "utterance"}``.
    language : str
        The language of files that do not say theirs, such as ``"yue"``.
    skip : sequence of str
        Files of a folder that are no dialogs, by their path from there.
    strict : bool
        Raise if anything is wrong, with all problems of all files. With False the files concerned are left
        out whole, and the problems are in ``problems`` of the result: ``table`` is the file, ``row`` the
        line.
    untimed : {"problem", "keep"}
        Whether a turn without times is a problem, or kept with unknown times.
    format : str, optional
        The format of all files, whatever their suffix; see :func:`formats`.
    on_progress : callable, optional
        Called as ``on_progress(done, of)`` after each file.

    Returns
    -------
    Transcripts
        In the order of the files; of a table, in the order in which participants appear in it.

    Notes
    -----
    Different speakers may talk at once. Turns of one speaker may overlap, and turns may start before the one
    above them, by no more than 0.05 s.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from fidm.io.dialogs import read
    >>> with tempfile.TemporaryDirectory() as place:
    ...     file = Path(place) / "P001.csv"
    ...     _ = file.write_text("speaker,start_s,end_s,text\nINV,0,1.5,And then?\nPAR,2,3.25,Left.\n")
    ...     transcripts = read(file)
    >>> transcripts[0]
    Transcript('P001', 2 turns)
    >>> [turn.role for turn in transcripts[0]]
    ['assessor', 'participant']
    """
    if untimed not in ("problem", "keep"):
        raise DataError("untimed must be 'problem' or 'keep'.")
    pattern = name_pattern(names)
    if names != "file" and participant is not None:
        raise DataError("participant= and names= both say whose dialog it is; participant= must be left out.")
    forced = FORMATS.find(format) if format is not None else None
    known = load_roles(roles)
    roles_file = Path(known.source) if known.source else None
    by_suffix = dict.fromkeys(forced.suffixes, forced) if forced else _suffixes()
    files = find_files(source, tuple(by_suffix), but=[roles_file] if roles_file else [])
    skipped = [name for _, name in files if name in skip]
    files = [(path, name) for path, name in files if name not in skip]
    if isinstance(participant, str) and (len(files) != 1 or not clean(participant)):
        raise DataError(
            f"participant= names one file, and there are {len(files)}. Give a function from the path instead."
        )
    read_by = [forced or by_suffix.get(path.suffix.casefold()) for path, _ in files]
    options = Options(_columns(columns, read_by), frozenset(KNOWN) | known.names())
    known.require_files(path for path, _ in files)
    done: list[tuple[str, list[Transcript]]] = []
    problems: list[tuple[str, str, Flaw]] = []
    for number, (path, name) in enumerate(files, 1):

        def name_of(path: Path = path) -> str:
            return _participant(path, participant) if names == "file" else _own_name(path)

        asked = Asked(
            known.of(path), language, untimed, participant if isinstance(participant, str) else None, name_of
        )
        try:
            one = forced or _by_suffix(path, by_suffix)
            raw = one.read_text(read_file(path), options)
            found, flaws = transcripts_of(raw, asked, source=str(path), format=one.name)
            if names != "file":
                found = [_placed(item, path, pattern) for item in found]
        except BrokenError as broken:
            found, flaws = [], [(name_of(), broken.flaw)]
        problems += [
            (name, _short(who, path, pattern) if names != "file" else who, flaw) for who, flaw in flaws
        ]
        done.append((name, found))
        if on_progress is not None:
            on_progress(number, len(files))
    problems += _repeated(done)
    noted = _problem_table(problems)
    logger.info("read %d files, %d problems", len(files), noted.height)
    if noted.height and strict:
        raise _refusal(noted, len(files))
    bad = noted["table"].unique(maintain_order=True).to_list()
    items = tuple(item for name, found in done if name not in bad for item in found)
    odd = _unknown(source, by_suffix)
    omissions = [
        *omission("file", "in no known format", odd),
        *omission("file", "named in skip of grounding.toml", skipped),
        *omission("file", "problems, listed in grounding/problems.csv", bad),
        *_silent_turns(items),
    ]
    return Transcripts(items, noted, tuple(omissions))


def _unknown(source: Source, by_suffix: Mapping[str, Format]) -> list[str]:
    """The files in a folder whose format is not known; recordings are no surprise beside dialogs."""
    folder = Path(source) if isinstance(source, str | Path) else None
    if folder is None or not folder.is_dir():
        return []
    known = (*by_suffix, *RECORDINGS)
    odd = [path for path in files_below(folder) if path.suffix.casefold() not in known]
    return [path.relative_to(folder).as_posix() for path in odd]


def _silent_turns(items: Sequence[Transcript]) -> list[Omission]:
    """The turns that say nothing to anybody who reads a dialog, or nothing of time."""
    kinds: tuple[tuple[str, str, Callable[[Turn], bool]], ...] = (
        ("said by speakers with the role other", "", lambda turn: turn.role == "other"),
        ("no words", "", lambda turn: turn.role == "participant" and not turn.text),
        ("no times", "durations and pauses",
         lambda turn: turn.role == "participant" and bool(turn.text) and not turn.is_timed),
    )  # fmt: skip
    found: list[Omission] = []
    for why, of, is_out in kinds:
        who = [item.participant for item in items for turn in item if is_out(turn)]
        found += omission("turn", why, who, n=len(who), of=of)
    return found


def write(transcript: Transcript, path: str | Path, *, format: str | None = None) -> None:
    """Write a dialog to a file, whole or not at all.

    The file is read again before it takes its place. A text or a speaker that the format cannot show, such
    as angle brackets in CHAT, is refused rather than changed. Marks and times of words are dropped where
    the format has no place for them; the table at the head of :mod:`fidm.io.dialogs` says where.

    Parameters
    ----------
    transcript : Transcript
        What to write.
    path : path
        Where to; an older file is replaced.
    format : str, optional
        The format; by default what the suffix says.
    """
    target = Path(path)
    try:
        one = FORMATS.find(format) if format is not None else _by_suffix(target, _suffixes())
    except BrokenError as broken:
        raise DataError(f"{broken.flaw.what} {broken.flaw.hint}", source=str(target)) from None
    whole = replace(transcript, turns=tuple(tidy(turn) for turn in transcript))
    text = one.write_text(whole)
    try:
        again = one.read_text(text, Options())
    except BrokenError:
        again = RawFile()
    if not same_talk(whole, again):
        raise DataError(
            f"{one.title} cannot show every text, speaker and time of {whole.participant!r} as they are. "
            "Write another format, such as JSONL."
        )
    with whole_file(target) as part:
        part.write_bytes(text.encode("utf-8"))


def _by_suffix(path: Path, known: Mapping[str, Format]) -> Format:
    found = known.get(path.suffix.casefold())
    if found is None:
        raise BrokenError(
            "has a suffix that no known format has.",
            None,
            f"Known are {', '.join(known)}{remedy('; or name the format with format=', '')}.",
        )
    return found


def _participant(path: Path, given: str | Callable[[Path], str] | None) -> str:
    name = given if isinstance(given, str) else given(path) if given is not None else path.stem
    if not isinstance(name, str) or not clean(name):
        raise DataError("participant= must give a text that is not empty.", source=str(path))
    return clean(name)


NAMES = {"file": "{participant}", "folder": "{participant}/{episode}"}
"""Usual patterns of what files are called, by name."""

PARTS = {
    "{participant}": "(?P<participant>[^/]+)",
    "{id}": "(?P<participant>[^/]+?)",
    "{episode}": "(?P<episode>[^/]+)",
    "{any}": "[^/]*",
}
"""What the parts of a pattern find; the participant is as long as possible, or, as ``{id}``, as short."""


@cache
def name_pattern(names: str) -> re.Pattern[str]:
    """Return what finds participant and episode in the end of a path without its suffix."""
    pattern = NAMES.get(names, names)
    parts = re.split(r"(\{\w+\})", pattern)
    named = [part for part in parts if part in PARTS]
    if (
        sum(one in ("{participant}", "{id}") for one in named) != 1
        or named.count("{episode}") > 1
        or "}{" in pattern
    ):
        raise DataError(
            f"names is {names!r}. It must be 'file', 'folder', or a pattern with {{participant}}, and with "
            "{episode} and {any} where names have such parts, as in '{participant}_{episode}'."
        )
    return re.compile("(?:.*/)?" + "".join(PARTS.get(part) or re.escape(part) for part in parts), re.DOTALL)


def _short(who: str, path: Path, pattern: re.Pattern[str]) -> str:
    """The participant after whom a file is called, where the file names nobody."""
    found = pattern.fullmatch(path.with_suffix("").as_posix()) if who == _own_name(path) else None
    return who if found is None else clean(found["participant"])


def _own_name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def _placed(item: Transcript, path: Path, pattern: re.Pattern[str]) -> Transcript:
    """A transcript with participant and episode as its file is called; one that says them keeps them."""
    if item.participant != _own_name(path):
        return item
    found = pattern.fullmatch(path.with_suffix("").as_posix())
    if found is None:
        raise BrokenError("is not called as names says.", None, "Rename it, or name it in skip.")
    episode = found.groupdict().get("episode")
    return replace(
        item,
        participant=clean(found["participant"]),
        episode=item.episode if episode is None else clean(episode),
    )


def _columns(columns: Mapping[str, str] | None, read_by: list[Format | None]) -> dict[str, str]:
    if not columns:
        return {}
    known = (*table.NEEDED, *table.OPTIONAL)
    odd = [name for name in columns if name not in known]
    if odd:
        raise DataError(f"columns can rename {', '.join(known)}; there is no {odd[0]!r}.")
    if not any(one is not None and one.takes_columns for one in read_by):
        raise DataError("columns is for tables (CSV, TSV and JSONL), and there is none among the files.")
    return dict(columns)


def _repeated(done: list[tuple[str, list[Transcript]]]) -> list[tuple[str, str, Flaw]]:
    """Participants and episodes that more than one file holds."""
    holders: dict[tuple[str, str], list[str]] = {}
    for name, found in done:
        for item in found:
            holders.setdefault((item.participant, item.episode), []).append(name)
    hint = (
        "Rename one file, tell episodes apart with a column 'episode', or say by names where the episode "
        'stands: names = "folder" for P001/visit1.cha, "{participant}_{episode}" for P001_visit1.cha.'
    )
    return [
        (
            name,
            who,
            Flaw(f"{len(names)} files hold the same episode of {who!r}: {_listed(names)}.", None, hint),
        )
        for (who, _), names in holders.items()
        if len(names) > 1
        for name in names
    ]


def _listed(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _problem_table(problems: list[tuple[str, str, Flaw]]) -> pl.DataFrame:
    rows = [(name, flaw.line, who, flaw.what, flaw.hint) for name, who, flaw in problems]
    return pl.DataFrame(rows, schema=PROBLEM_SCHEMA, orient="row")


def _refusal(problems: pl.DataFrame, n_files: int) -> DataError:
    bad = problems["table"].n_unique()
    return DataError(
        f"{count(problems.height, 'problem')} in {bad:,} of {count(n_files, 'file')}. Repair what is "
        f"wrong, or leave these files out with {remedy('strict=False', '--skip-bad')}.",
        problems=[
            Problem(row["problem"], row["table"], row["row"], row["hint"])
            for row in problems.iter_rows(named=True)
        ],
    )
