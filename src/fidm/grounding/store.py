"""A study folder's grounding: written whole beside the tables, and read back for draws, audits and reviews.

    study/
      .grounding.lock           held by whoever writes the grounding; always empty
      grounding.toml            settings, if any differ from the defaults
      talks/                    the dialogs, in any format
      steps.parquet, …          the tables that everything after reads
      grounding/
        segments.parquet        every segment: program, alternatives, doubts
        moves.parquet           every action, and the words it came from
        dialogs.parquet         every dialog: its language, its file, the phases opened in it
        turns.parquet           what was said (this file and the answers hold participants' words)
        provenance.json         grounder, versions, hashes, settings
        problems.csv            what was wrong with dialogs or traces
        answers.sqlite          a language model's answers, if one was asked
        review.jsonl            what people decided about segments, if anybody did
        proposals.parquet       the segments as the grounder left them, once decisions were applied
        proposals-moves.parquet their moves
        proposals.json          the provenance of those
        review.lock             held by whoever adds decisions or reads them; always empty

Only the owner of the study can read the folder ``grounding``.
"""

from __future__ import annotations

import json
import shutil
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fidm.cohort import Cohort
from fidm.errors import DataError, GroundingError, few, meant
from fidm.files import hash_file, is_interrupted, locked, whole_file, writing
from fidm.grounding.base import Proposal, Reading, Segment
from fidm.grounding.dialog import GroundedDialog, GroundedSegment, Settings, Weighing
from fidm.grounding.ground import Grounded, assemble, one_script
from fidm.grounding.route.program import parse_program
from fidm.grounding.route.replay import Terrain
from fidm.grounding.segment import Effort
from fidm.io.columns import COLUMN as EXCLUDED
from fidm.io.columns import natural
from fidm.io.sheets import NAMES, SUFFIXES, read_table
from fidm.io.study import GIVEN, StudyWriter, read_manifest
from fidm.io.talk import Transcript, Turn
from fidm.tasks.model import TaskModel
from fidm.types import Omission, omission

FOLDER, LOCK = "grounding", ".grounding.lock"
ANSWERS = "answers.sqlite"
VECTORS = "language.sqlite"
"""What stays when a grounding is written anew: answers of a language model, and vectors of what was said."""

PROPOSALS, PROPOSED_MOVES, PROPOSED = "proposals.parquet", "proposals-moves.parquet", "proposals.json"
"""The segments as the grounder left them, their moves and their provenance, where people have decided on some
since. While the last is there, the others, the turns and the dialogs belong together."""

DIALOG_SCHEMA = {
    "participant": pl.String,
    "episode": pl.String,
    "language": pl.String,
    "told": pl.String,
    "frame": pl.String,
    "n_turns": pl.Int32,
    "source": pl.String,
    "format": pl.String,
    "about": pl.String,
    "media": pl.String,
}
TURN_SCHEMA = {
    "participant": pl.String,
    "episode": pl.String,
    "turn": pl.Int32,
    "speaker": pl.String,
    "role": pl.String,
    "kind": pl.String,
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "text": pl.String,
    "line": pl.Int32,
}


def private_folder(study: str | Path) -> Path:
    """Return the study's folder of groundings, made if need be, for its owner alone."""
    folder = Path(study) / FOLDER
    if folder.is_symlink():
        raise DataError("is a link. What participants said stays in the study itself.", source=str(folder))
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
    return folder


def write_grounding(
    study: str | Path,
    grounded: Grounded,
    *,
    tasks: Sequence[str | Path],
    problems: pl.DataFrame | None = None,
    keep_proposals: bool = False,
) -> None:
    """Write a grounding into a study folder: its tables, and the folder ``grounding``.

    A table of participants that a lab keeps in the study, or that study.toml names, stays as it is: its
    columns are joined, and people without a dialog are added. So are further columns of a table of
    episodes, such as a visit, for episodes with a dialog.

    Parameters
    ----------
    study : path
        The folder.
    grounded : Grounded
        What to write.
    tasks : sequence
        The task, by its built-in name or the path of its file.
    problems : DataFrame, optional
        What was wrong with dialogs that could not be read.
    keep_proposals : bool
        Whether this is what people made of the grounding that is there, see :func:`put_by_proposals`; a new
        grounding takes the place of the old proposals.
    """
    folder = private_folder(study)
    people, told = known_participants(study), grounded.cohort.participants
    cohort = _with_everybody(_with_conditions(grounded.cohort, study), people)
    wrong = grounded.checks if problems is None else pl.concat([problems, grounded.checks])
    gone = ["problems.csv", *([] if keep_proposals else [PROPOSALS, PROPOSED_MOVES, PROPOSED])]
    gone = [f"{FOLDER}/{name}" for name in gone]
    whole = StudyWriter(study, tasks=tasks, overwrite=True, gone=gone, kept=GIVEN)
    with writing(folder), whole as writer:
        writer.add(cohort)
        part = writer.place / FOLDER
        part.mkdir(mode=0o700)
        grounded.segments.write_parquet(part / "segments.parquet")
        grounded.moves.write_parquet(part / "moves.parquet")
        _turns(grounded).write_parquet(part / "turns.parquet")
        _dialogs(grounded).write_parquet(part / "dialogs.parquet")
        provenance = {
            **grounded.provenance,
            "n_steps": cohort.n_steps,
            "n_segments": grounded.segments.height,
            "given": hash_given(study),
            "facts": _only_told(told, people),
            "unmatched": [one.to_dict() for one in unmatched(study, grounded)],
        }
        text = json.dumps(provenance, indent=2, ensure_ascii=False, default=str)
        (part / "provenance.json").write_text(text + "\n", "utf-8")
        if wrong.height:
            wrong.write_csv(part / "problems.csv")
        for file in part.iterdir():
            file.chmod(0o600)


def put_by_proposals(study: str | Path) -> None:
    """Keep a study's segments as the grounder left them, before what people decided takes their place.

    From then on the grounding can be made again from them, even if a process is killed while it writes.
    """
    folder = Path(study) / FOLDER
    if (folder / PROPOSED).exists():
        return
    # The last file says that the others are whole.
    kept = {"segments.parquet": PROPOSALS, "moves.parquet": PROPOSED_MOVES, "provenance.json": PROPOSED}
    for source, target in kept.items():
        with whole_file(folder / target, mode=0o600) as part:
            shutil.copyfile(folder / source, part)


def _with_conditions(cohort: Cohort, study: str | Path) -> Cohort:
    """The cohort with the further columns of a table of episodes in a study folder, if there is one."""
    table, source = _given(study, "episodes")
    if table is None:
        return cohort
    if "episode" not in table.columns:
        table = table.with_columns(episode=pl.lit("1"))
    keys = ["participant", "episode"]
    known = table.drop("task", "end_state", strict=False).with_columns(natural(pl.col("episode")))
    if known.select(pl.struct(keys).is_duplicated().any()).item():
        raise DataError("names an episode twice.", source=source)
    own = cohort.episode_keys().select(keys).join(known, on=keys, how="left", maintain_order="left")
    return replace(cohort, episodes=pl.concat([cohort.episodes, own.drop(keys)], how="horizontal"))


def _only_told(told: pl.DataFrame, people: pl.DataFrame | None) -> list[str]:
    """What only the dialogs' files say of participants; capitals in the names of columns aside."""
    own = {"participant", *(() if people is None else (name.casefold() for name in people.columns))}
    return [name for name in told.columns if name.casefold() not in own]


def _with_everybody(cohort: Cohort, people: pl.DataFrame | None) -> Cohort:
    """The cohort with the columns of a table of participants, and the people of whom there is no dialog.

    What only the dialogs' files say of people stays, behind what the table says.
    """
    if people is None:
        return cohort
    own = cohort.participants.select("participant", *_only_told(cohort.participants, people))
    joined = own.join(people, on="participant", how="left", maintain_order="left")
    cohort = one_script(cohort.with_participants(joined.select(*people.columns, pl.exclude(people.columns))))
    absent = people.join(own, on="participant", how="anti")
    if not absent.height:
        return cohort
    absent = pl.concat([cohort.participants.clear(), absent], how="diagonal_relaxed")
    nobody = replace(
        cohort[:0], participants=absent, episode_offsets=np.zeros(absent.height + 1, dtype=np.int64)
    )
    return Cohort.concat([cohort, nobody])


def unmatched(study: str | Path, grounded: Grounded) -> list[Omission]:
    """Return what the tables that a lab keeps in a study, and its dialogs, do not say of each other."""
    given, ids = given_tables(study), grounded.cohort.ids
    people = known_participants(study) if "participants" in given else None
    found: list[Omission] = []
    if people is not None:
        lost = ids.filter(~ids.is_in(people["participant"].implode())).to_list()
        of = "comparisons by columns of the table"
        found += omission("participant", "no row in the table of participants", lost, of=of)
        rows = {row["participant"]: row for row in people.iter_rows(named=True)}
        differ: dict[str, list[str]] = {}
        for dialog in grounded.dialogs:
            own = {
                name.casefold(): cell for name, cell in rows.get(dialog.transcript.participant, {}).items()
            }
            for name, value in dialog.transcript.about.items():
                if value and own.get(name) is not None and not _same_fact(name, own[name], value):
                    differ.setdefault(name, []).append(dialog.transcript.participant)
        rows_of_people, _ = _given(study, "participants")
        found += [] if rows_of_people is None else _differing(rows_of_people)
        for name, who in differ.items():
            why = f"the dialogs' files say another {name} than the table of participants, which counts"
            found += omission("fact", why, list(dict.fromkeys(who)))
    table, _ = _given(study, "episodes")
    if "episodes" in given and table is not None and "episode" in table.columns:
        known = table.select("participant", natural(pl.col("episode")))
        alone = known.join(grounded.cohort.episode_keys(), on=["participant", "episode"], how="anti")
        found += omission(
            "episode",
            "rows of the table of episodes without a dialog",
            alone["participant"].to_list(),
            n=alone.height,
        )
    return found


def _same_fact(name: str, one: object, other: str) -> bool:
    """Whether a cell of a table says what a dialog's file says; ages may be in whole years."""
    try:
        return abs(float(str(one)) - float(other)) < (1 if name == "age" else 1e-9)
    except ValueError:
        return str(one).strip().casefold() == other.strip().casefold()


def study_draws(study: str | Path, task: TaskModel, n: int, *, seed: int) -> Iterator[Cohort]:
    """Sample whole groundings of a study: the same people, other readings of what they said.

    Parameters
    ----------
    study : path
        A grounded study.
    task : TaskModel
        Its task.
    n : int
        How many.
    seed : int
        The same seed gives the same draws.
    """
    people = known_participants(study)
    grounded = read_grounding(study, task)
    weighing = Weighing(**grounded.provenance.get("weighing", {}))
    grounded = replace(grounded, settings=replace(grounded.settings, weighing=weighing))
    for cohort in grounded.draws(n, seed=seed):
        yield _with_everybody(cohort, people)


def known_participants(study: str | Path) -> pl.DataFrame | None:
    """Return the table of participants in a study folder, if there is one; the lab's own comes first."""
    people, source = _given(study, "participants")
    if people is None:
        return None
    twice = people["participant"].filter(people["participant"].is_duplicated()).unique(maintain_order=True)
    if len(twice) and read_manifest(Path(study)).participants is None:
        raise DataError(f"names a participant twice: {few(twice)}. Keep one row for each.", source=source)
    return _one_row_each(people).select("participant", pl.exclude("participant"))


def _one_row_each(people: pl.DataFrame) -> pl.DataFrame:
    """A lab's table with a row for each participant: a row for each visit, say, in what these agree on.

    What they differ in is missing, except that whoever is excluded in one row is excluded.
    """
    facts = [name for name in people.columns if name != "participant"]
    agreed = [
        pl.when((pl.col(name).drop_nulls().n_unique() <= 1) | (name == EXCLUDED))
        .then(pl.col(name).drop_nulls().first())
        .alias(name)
        for name in facts
    ]
    return people.group_by("participant", maintain_order=True).agg(agreed)


def _differing(people: pl.DataFrame) -> list[Omission]:
    """What a lab's table says differently in several rows of a participant."""
    facts = [name for name in people.columns if name not in ("participant", EXCLUDED)]
    times = people.group_by("participant", maintain_order=True).agg(
        pl.col(name).drop_nulls().n_unique() for name in facts
    )
    return [
        one
        for name in facts
        for one in omission(
            "fact",
            f"the table of participants has rows that differ in {name}",
            times.filter(pl.col(name) > 1)["participant"].to_list(),
        )
    ]


def given_tables(study: str | Path) -> dict[str, Path]:
    """Return the files of the tables of participants and episodes that a lab keeps in a study itself."""
    folder = Path(study)
    named = read_manifest(folder).participants
    kinds = [suffix for suffix in SUFFIXES if suffix != ".parquet"]
    files = {name: [folder / f"{name}{suffix}" for suffix in kinds] for name in GIVEN}
    found = {
        name: own[0] for name, paths in files.items() if (own := [path for path in paths if path.exists()])
    }
    return found if named is None else {**found, "participants": folder / named.file}


def hash_given(study: str | Path) -> dict[str, str]:
    """Return a hash of each table that a lab keeps in a study itself."""
    return {name: hash_file(path) for name, path in given_tables(study).items() if path.is_file()}


def _given(study: str | Path, name: str) -> tuple[pl.DataFrame | None, str]:
    """A table of a study folder, people named as in dialogs, and its file; the lab's own comes first."""
    folder, own = Path(study), given_tables(study).get(name)
    named = read_manifest(folder).participants if name == "participants" else None
    if named is not None and own is not None:
        table = read_table(own, ids=(*NAMES, named.id), sheet=named.sheet)
        for column in (named.id, *named.excluded):
            if column not in table.columns:
                hint = meant([column], table.columns)
                raise DataError(f"has no column {column!r}. {hint}", source=str(own))
        if named.id != "participant":
            table = table.rename({"participant": "participant_in_table"}, strict=False)
            table = table.rename({named.id: "participant"})
        table = _with_excluded(table, named.excluded)
        parts = [own]
    else:
        single = [path for path in (own, folder / f"{name}.parquet") if path and path.exists()]
        parts = single[:1] or sorted((folder / name).glob("*.parquet"))
        if not parts:
            return None, ""
        table = pl.concat([read_table(path) for path in parts], how="diagonal_relaxed")
        if own is None and name == "participants":  # what dialogs' files said before is read from them again
            table = table.drop(_told_before(folder), strict=False)
    if "participant" not in table.columns:
        hint = "Rename the column with their ids, or name it in study.toml: [participants], id = ..."
        hint = f"{meant(['participant'], table.columns)} {hint}"
        raise DataError(f"has no column 'participant'. {hint}", source=str(parts[0]))
    table = table.with_columns(natural(pl.col("participant"))).drop_nulls("participant")
    ids = {} if named is None else named.ids
    plain = [unicodedata.normalize("NFC", who).strip() for who in table["participant"]]
    plain = [ids.get(who, who) for who in plain]
    return table.with_columns(participant=pl.Series(plain, dtype=pl.String)), str(parts[0])


def _with_excluded(table: pl.DataFrame, excluded: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """A lab's table with everybody excluded who has one of these values, besides those it excludes itself."""
    if not excluded:
        return table
    reasons = [pl.col(EXCLUDED).cast(pl.String)] if EXCLUDED in table.columns else []
    for column, values in excluded.items():
        cell = pl.col(column).cast(pl.String).str.strip_chars()
        is_out = cell.str.to_lowercase().is_in([value.strip().lower() for value in values])
        reasons.insert(0, pl.when(is_out).then(f"{column}: " + cell))
    return table.with_columns(pl.coalesce(reasons).alias(EXCLUDED))


def _told_before(study: Path) -> list[str]:
    """The columns of participants that only the files of dialogs gave when they were read before."""
    if not has_grounding(study):
        return []
    try:
        return list(json.loads((study / FOLDER / "provenance.json").read_text("utf-8")).get("facts", ()))
    except (OSError, ValueError):
        return []


@contextmanager
def alone_in(study: str | Path, *, wait_s: float = 0.0) -> Iterator[None]:
    """Hold a study's grounding for oneself; whoever else wants it is told so. Ends with the process."""
    if not Path(study).is_dir():
        raise DataError("is not a folder.", source=str(study))
    with ExitStack() as held:
        try:
            held.enter_context(locked(Path(study) / LOCK, wait_s=wait_s))
        except TimeoutError:
            raise DataError("is being grounded by another process just now.", source=str(study)) from None
        except OSError as error:
            raise DataError(f"cannot be written: {error.strerror}.", source=str(study)) from None
        yield


def _turns(grounded: Grounded) -> pl.DataFrame:
    rows: dict[str, list[Any]] = {name: [] for name in TURN_SCHEMA}
    for dialog in grounded.dialogs:
        item = dialog.transcript
        for i, turn in enumerate(item.turns):
            kind = dialog.kinds[i] if i < len(dialog.kinds) else ""
            values = (
                item.participant, item.episode, i + 1, turn.speaker, turn.role, kind, turn.start_s,
                turn.end_s, turn.text, turn.line,
            )  # fmt: skip
            for name, value in zip(TURN_SCHEMA, values, strict=True):
                rows[name].append(value)
    return pl.DataFrame(rows, schema=TURN_SCHEMA)


def _dialogs(grounded: Grounded) -> pl.DataFrame:
    rows = [
        (
            dialog.transcript.participant, dialog.transcript.episode, dialog.language,
            " ".join(sorted(dialog.told)), dialog.frame, len(dialog.transcript),
            Path(dialog.transcript.source).name, dialog.transcript.format,
            json.dumps(dict(dialog.transcript.about), ensure_ascii=False), dialog.transcript.media,
        )
        for dialog in grounded.dialogs
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=DIALOG_SCHEMA, orient="row")


def has_grounding(study: str | Path) -> bool:
    """Whether a study's steps were grounded from dialogs."""
    return (Path(study) / FOLDER / "provenance.json").is_file() and not is_interrupted(Path(study))


def read_grounding(
    study: str | Path, task: TaskModel, *, settings: Settings | None = None, proposed: bool = False
) -> Grounded:
    """Read back the grounding of a study, to sample from it or to look at it.

    Parameters
    ----------
    study : path
        The folder.
    task : TaskModel
        Its task.
    settings : Settings, optional
        What doubtful moves count; only that matters here.
    proposed : bool
        As the grounder left it, whatever people decided since.
    """
    folder = Path(study) / FOLDER
    if folder.is_symlink():
        raise DataError("is a link. What participants said stays in the study itself.", source=str(folder))
    is_apart = proposed and (folder / PROPOSED).is_file()
    if not is_apart and not has_grounding(study):
        raise GroundingError("has no grounding. Run: fidm ground STUDY.", source=str(study))
    try:
        segments = pl.read_parquet(folder / (PROPOSALS if is_apart else "segments.parquet"), glob=False)
        turns = pl.read_parquet(folder / "turns.parquet", glob=False)
        listed = pl.read_parquet(folder / "dialogs.parquet", glob=False)
        provenance = json.loads((folder / (PROPOSED if is_apart else "provenance.json")).read_text("utf-8"))
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise GroundingError(
            f"cannot be read ({type(error).__name__}). Run fidm ground again.", source=str(folder)
        ) from None
    if provenance.get("task_fingerprint") != task.fingerprint:
        raise GroundingError(
            f"was grounded on another version of {task.name}. Run fidm ground again.", source=str(study)
        )
    terrain = Terrain(task)
    said, read = dict(_by_dialog(turns)), dict(_by_dialog(segments))
    dialogs = []
    for row in listed.iter_rows(named=True):
        key = (row["participant"], row["episode"])
        dialogs.append(_dialog(row, read.get(key, segments[:0]), said.get(key, turns[:0]), terrain))
    return assemble(dialogs, terrain, settings or Settings(), provenance)


def _by_dialog(table: pl.DataFrame) -> list[tuple[tuple[str, str], pl.DataFrame]]:
    parts = table.partition_by("participant", "episode", maintain_order=True)
    return [((part["participant"][0], part["episode"][0]), part) for part in parts]


def _transcript(row: dict[str, Any], table: pl.DataFrame) -> Transcript:
    turns = tuple(
        Turn(
            said["speaker"],
            said["start_s"],
            said["end_s"],
            said["text"],
            role=said["role"],
            line=said["line"],
        )
        for said in table.iter_rows(named=True)
    )
    about = json.loads(row.get("about") or "{}")
    return Transcript(
        row["participant"],
        turns,
        row["source"],
        row["format"],
        row["episode"],
        row["language"],
        about=about,
        media=row.get("media") or "",  # groundings of earlier versions do not have it
    )


def _dialog(
    listed: dict[str, Any], table: pl.DataFrame, spoken: pl.DataFrame, terrain: Terrain
) -> GroundedDialog:
    transcript = _transcript(listed, spoken)
    found = []
    for row in table.iter_rows(named=True):
        own = tuple(int(turn) - 1 for turn in row["turns"].split())
        texts = [transcript.turns[i].text for i in own]
        starts = tuple(sum(len(text) + 1 for text in texts[:i]) for i in range(len(texts)))
        opened = tuple(row["opened"].split())
        dialog = tuple(range(row["first_turn"] - 1, row["last_turn"]))
        reached = tuple((row.get("reached") or "").split())  # groundings of earlier versions do not have it
        segment = Segment(
            int(row["segment"]), "\n".join(texts), own, starts, dialog, opened, row["closed_by"], reached
        )
        doubts = tuple(row["doubts"].split())
        proposal = Proposal(read_readings(row["readings"], terrain), doubts, row["grounder"])
        effort = Effort(*(row[f.name] for f in fields(Effort)))
        found.append(GroundedSegment(segment, proposal, effort, row["status"], doubts))
    told = frozenset(listed["told"].split())
    kinds = tuple(spoken["kind"].to_list())
    frame = listed.get("frame") or ""  # groundings of earlier versions do not have it
    return GroundedDialog(transcript, tuple(found), told, listed["language"], kinds, frame)


def read_readings(text: str, terrain: Terrain) -> tuple[Reading, ...]:
    """Read back the readings of a segment."""
    found = []
    for item in json.loads(text):
        program = parse_program(item["program"], terrain.places)
        spans = item.get("spans", [])
        sure = item.get("sure", [])
        if len(spans) == len(program) == len(sure):
            program = tuple(
                type(step)(step.op, step.way, step.squares, step.to_end, step.place, (span[0], span[1]), p)
                for step, span, p in zip(program, spans, sure, strict=True)
            )
        found.append(Reading(program, float(item["probability"])))
    return tuple(found)
