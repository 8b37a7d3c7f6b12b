"""Task files: a TOML text becomes a checked description of a task, or a list of what is wrong in it.

This is the only place where a task's text is read. Every problem names its key, and its line where
that can be found; all problems of a file are reported together. TOML parsers drop the places of keys, so
the text is read again, line by line, just far enough to know under which heading each key stands.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from fidm.errors import Problem, TaskError
from fidm.registry import TASKS
from fidm.tasks.grid import map_problems, moves_of
from fidm.types import Normaliser

FORMAT = 1
"""The version of the task format that this package reads."""

MAX_FILE_BYTES = 16_000_000
MAX_TARGETS = 60


def _one_symbol(text: str) -> str:
    if len(text) != 1 or not text.isprintable() or text.isspace():
        raise ValueError(f"is {text!r}; a symbol is one printable character, not a space")
    return text


PLAIN = "[a-z][a-z0-9_]{0,63}"


def _plain_name(text: str) -> str:
    if not re.fullmatch(PLAIN, text):
        raise ValueError(
            f"is {shown(text)}; a name is up to 64 small letters, digits and underscores, a letter first"
        )
    return text


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be one line of printable characters")
    return text


Symbol = Annotated[str, AfterValidator(_one_symbol)]
Label = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_one_line)]
Name = Annotated[str, AfterValidator(_plain_name)]
Names = Annotated[tuple[Name, ...], Field(strict=False)]
Words = dict[str, dict[str, Annotated[tuple[Label, ...], Field(strict=False)]]]
"""What people call the places, by language and place."""

ARRIVE = "ARRIVE"
"""What the goal is called that is a place to arrive at, unless the file names it."""

OTHER_PLACES = ("start", "finish", "exit")
"""Places besides the sections that ``[words]`` may have words for."""

Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e9, le=1e9)]
Reach = Literal["adjacent", "on", "anywhere", "arrive"]
"""From where a place is used by its action; or, with "arrive", that stepping onto it uses it."""


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ValuesSpec(_Table):
    """How values are computed: discount, temperature and kind of soft maximum."""

    gamma: Annotated[float, Field(ge=0.0, lt=1.0)]
    tau: Annotated[float, Field(ge=1e-9, le=1e6)]
    normaliser: Normaliser = "sum"


class RewardsSpec(_Table):
    """What each kind of action pays (paper, table 5)."""

    move: Number
    target: Number
    repeated: Number
    non_target: Number
    out_of_phase: Number = 0.0
    bump: Number | None = None


class MapSpec(_Table):
    """The map as a drawing, and the symbols of walls, floor and start."""

    drawing: str
    wall: Symbol = "#"
    floor: Symbol = "."
    start: Symbol = "S"
    one_way: dict[Symbol, Literal["N", "E", "S", "W"]] = {}


class SectionSpec(_Table):
    """A place where something can be got: a shelf, a shop, a counter."""

    symbol: Symbol
    label: Label | None = None
    reach: Reach | None = None
    reward: Number | None = None
    requires: Names = ()


class PhaseSpec(_Table):
    """A part of the task with its own goals; completing them opens the next."""

    name: Name
    targets: Names = ()


class FinishSpec(_Table):
    """An action that ends the last phase, such as paying at the till; or a place that ends it."""

    symbol: Symbol
    action: Label
    label: Label | None = None
    reach: Literal["adjacent", "on", "arrive"] = "on"
    reward: Number = 0.0
    reward_completion: Number = 0.0
    reward_early: Number = 0.0
    early: Literal["nothing", "illegal"] = "nothing"
    ends: bool = True

    @model_validator(mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        """Nobody takes an action to arrive; then the word names the goal alone."""
        arrives = isinstance(given, dict) and given.get("reach") == "arrive"
        return {"action": ARRIVE, **given} if arrives else given


class HiddenSpec(_Table):
    """Cells nobody has seen at the start: how probable it is that each is open, and what entering it pays."""

    open: Annotated[float, Field(gt=0.0, lt=1.0)]
    reward: Number | None = None


class ExitSpec(_Table):
    """The way out; leaving is replayed and counted, but by default not part of the likelihood."""

    symbol: Symbol
    action: Label = "OUT"
    label: Label | None = None
    in_likelihood: bool = False


class RulesSpec(_Table):
    """The points a description of a task tends to leave open; each default is explained in the docs."""

    buy: Literal["per_section", "single"] = "per_section"
    reach: Reach = "adjacent"
    order: Literal["any", "listed"] = "any"
    value_flow: Literal["chained", "ends", "continues"] = "chained"
    phase_change: Literal["transcript", "goals"] = "transcript"
    waiting: Literal["left_out", "counted"] = "left_out"
    early_target: Literal["marks", "ignored", "illegal"] = "marks"
    late_target: Literal["marks", "ignored", "illegal"] = "marks"
    non_targets: Literal["legal", "illegal"] = "legal"
    bumps: Literal["illegal", "stay"] = "illegal"
    diagonal: Literal["none", "free", "no_corner_cutting"] = "none"
    starts: Literal["one", "several"] = "one"
    reveal: Literal["beside", "on_entering"] = "beside"


class TaskSpec(_Table):
    """A task as its file describes it: map, sections, phases, rewards, values and rules."""

    format: int
    name: Name
    title: Label
    description: str = ""
    verb: Label = "BUY"
    values: ValuesSpec
    rewards: RewardsSpec
    costs: dict[Symbol, Number] = {}
    hidden: dict[Symbol, HiddenSpec] = {}
    map: MapSpec
    sections: Annotated[dict[Name, SectionSpec], Field(min_length=1)]
    phases: Annotated[tuple[PhaseSpec, ...], Field(min_length=1, strict=False)]
    finish: FinishSpec | None = None
    exit: ExitSpec | None = None
    rules: RulesSpec = RulesSpec()
    words: Words = {}

    @property
    def targets(self) -> tuple[str, ...]:
        """Every section that some phase asks for, in the order of the phases."""
        return tuple(target for phase in self.phases for target in phase.targets)

    def reach_of(self, section: str) -> Reach:
        """From where a section can be bought: its own setting, else the task's rule."""
        return self.sections[section].reach or self.rules.reach

    @property
    def arrival_symbols(self) -> frozenset[str]:
        """The symbols of places that stepping onto them uses."""
        found = {section.symbol for name, section in self.sections.items() if self.reach_of(name) == "arrive"}
        if self.finish and self.finish.reach == "arrive":
            found.add(self.finish.symbol)
        return frozenset(found)

    @property
    def place_names(self) -> dict[str, str]:
        """What each symbol of the map stands for, walls and floor left out."""
        names = {s.symbol: s.label or name.replace("_", " ") for name, s in self.sections.items()}
        names[self.map.start] = "start"
        for place in (self.finish, self.exit):
            if place:
                names[place.symbol] = place.label or place.action
        return names

    @property
    def ground_names(self) -> dict[str, str]:
        """What the symbols of ground stand for that is walked on otherwise than plain floor."""
        names = {symbol: f"one-way door, {way} only" for symbol, way in self.map.one_way.items()}
        for symbol, hidden in self.hidden.items():
            pays = "" if hidden.reward is None else f", entering it first pays {hidden.reward:g}"
            names[symbol] = f"hidden cell, open with probability {hidden.open:g}{pays}"
        places = self.place_names
        for symbol, price in self.costs.items():
            priced = f"a step onto it pays {price:g}"
            names[symbol] = f"{names[symbol]}, {priced}" if symbol in names else priced
        return {symbol: said for symbol, said in names.items() if symbol not in places}

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows of the map."""
        return tuple(self.map.drawing.strip("\r\n").splitlines())


def builtin_tasks() -> tuple[str, ...]:
    """Return the names of the tasks that need no path: those of fidm, then those of other packages."""
    return TASKS.names()


def builtin_text(name: str) -> str:
    """Return the text of a built-in task's file, to read or to start one's own from."""
    if name not in TASKS:
        hint = did_you_mean(name, builtin_tasks())
        raise TaskError(f"There is no built-in task {name!r}. {hint}")
    return TASKS.read(name, f"{name}.toml")


def named_like(text: str, file: Path) -> str:
    """Return a task's text with the name of a file, or with its own where no name can be made of that."""
    name = re.sub("[^a-z0-9]+", "_", file.stem.lower()).strip("_")
    if not re.fullmatch(PLAIN, name):
        return text
    return re.sub("^name *=.*$", f'name = "{name}"', text, count=1, flags=re.MULTILINE)


def read_task(source: str | Path) -> TaskSpec:
    """Read a task file, or a task of an installed package, and check it.

    Parameters
    ----------
    source : str or Path
        The name of a built-in task (see :func:`builtin_tasks`) or the path of a TOML file.

    Raises
    ------
    TaskError
        With every problem of the file, each naming its key and, where known, its line.
    """
    if isinstance(source, str) and source in TASKS:
        spec = parse_task(builtin_text(source), source=source)
        if spec.name != source:
            raise TaskError(f"says name = {spec.name!r}. A task is called like its file.", source=source)
        return spec
    if not str(source).strip():
        raise TaskError(f"A task needs a name or a path. Built in: {', '.join(builtin_tasks())}.")
    path = Path(source)
    if ".parquet" in path.suffix.casefold():
        what = (
            "is a file of tasks without maps. Here the TOML file of a task that was drawn as a map is needed."
        )
        raise TaskError(what, source=str(source))
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise TaskError("cannot be read: it is no ordinary file.", source=str(source))
        if size > MAX_FILE_BYTES:
            raise TaskError(f"is larger than {MAX_FILE_BYTES // 1_000_000} MB.", source=str(source))
        text = path.read_text("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        close = difflib.get_close_matches(str(source), builtin_tasks(), n=1)
        guess = f" Did you mean {close[0]!r}?" if close else ""
        raise TaskError(
            "there is no such file, and no built-in task of that name."
            f"{guess} Built in: {', '.join(builtin_tasks())}.",
            source=str(source),
        ) from None
    except UnicodeDecodeError as error:
        raise TaskError(
            f"is not UTF-8 text (byte {error.start}). Save the file as UTF-8.", source=str(source)
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise TaskError(f"cannot be read: {reason}.", source=repr(str(source))[1:-1]) from None
    return parse_task(text, source=str(source))


def parse_task(text: str, *, source: str = "task") -> TaskSpec:
    """Turn the text of a task file into a checked description.

    Parameters
    ----------
    text : str
        TOML.
    source : str
        What to call the text in an error.
    """
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise TaskError("is not valid TOML: nested too deeply.", source=source) from None
    except ValueError as error:
        raise TaskError(f"is not valid TOML: {error}.{toml_hint(str(error))}", source=source) from None
    try:
        spec = TaskSpec.model_validate(data)
    except ValidationError as error:
        problems = [explain(item, data, text, _known_keys) for item in error.errors(include_url=False)]
        raise _unusable(source, problems) from None
    problems = [*_spec_problems(spec), *map_problems(spec)]
    if problems:
        raise _unusable(source, [located(problem, text) for problem in problems])
    return spec


def _unusable(source: str, problems: list[Problem]) -> TaskError:
    count = "one problem" if len(problems) == 1 else f"{len(problems)} problems"
    return TaskError(f"the task cannot be used; it has {count}.", source=source, problems=problems)


def _spec_problems(spec: TaskSpec) -> list[Problem]:
    """What is wrong in a description apart from its map."""
    problems = []
    if spec.format != FORMAT:
        problems.append(Problem(f"is {spec.format}; this version reads format {FORMAT}.", "format"))
    if len(spec.targets) > MAX_TARGETS:
        problems.append(Problem(f"name {len(spec.targets)} targets; {MAX_TARGETS} can be used.", "phases"))
    problems += [*_phase_problems(spec), *_requirement_problems(spec), *_hidden_problems(spec)]
    if spec.rewards.bump is not None and spec.rules.bumps == "illegal":
        hint = 'Set rules.bumps = "stay" if people can bump into walls.'
        problems.append(Problem("is set, but bumps are not legal.", "rewards.bump", hint=hint))
    for language, places in spec.words.items():
        for place in places:
            if place not in spec.sections and place not in OTHER_PLACES:
                hint = did_you_mean(place, spec.sections)
                problems.append(Problem("is no section.", f"words.{language}.{place}", hint=hint))
    for word, keys in _action_words(spec).items():
        if len(keys) > 1:
            problems.append(Problem(f"give the same action {word!r}.", " and ".join(keys)))
    return problems


def _phase_problems(spec: TaskSpec) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for i, phase in enumerate(spec.phases):
        where = f"phases.{phase.name}"
        if phase.name in [earlier.name for earlier in spec.phases[:i]]:
            yield Problem(f"is called {phase.name!r} like an earlier phase.", f"phases.{i}.name")
        for target in phase.targets:
            if target not in spec.sections:
                hint = did_you_mean(target, spec.sections)
                yield Problem(f"names {target!r}, which is no section.", f"{where}.targets", hint=hint)
            elif target in seen:
                what = f"names {target!r}, which is a target of {seen[target]!r} already."
                yield Problem(what, f"{where}.targets")
            seen.setdefault(target, phase.name)
        is_last = phase is spec.phases[-1]
        if not phase.targets and not (is_last and spec.finish):
            hint = "If leaving is the last goal, describe it as [finish], not as [exit]."
            yield Problem(
                "has no targets. Only a last phase that ends with [finish] may have none.",
                where,
                hint=hint if spec.exit and not spec.finish else "",
            )


def _requirement_problems(spec: TaskSpec) -> Iterator[Problem]:
    targets = dict.fromkeys(spec.targets)
    for name, section in spec.sections.items():
        for needed in section.requires:
            where = f"sections.{name}.requires"
            if needed == name:
                yield Problem("names the section itself.", where)
            elif needed not in targets:
                hint = did_you_mean(needed, targets)
                yield Problem(f"names {needed!r}, which is no target.", where, hint=hint)


def _hidden_problems(spec: TaskSpec) -> Iterator[Problem]:
    """Rules that hidden cells do not go with."""
    if not spec.hidden:
        return
    if spec.rules.phase_change != "goals":
        hint = 'Set rules.phase_change = "goals": nobody can ground dialogs on a task with hidden cells.'
        yield Problem('is "transcript", which does not go with [hidden].', "rules.phase_change", hint=hint)
    if spec.rules.diagonal != "none":
        what = f'is "{spec.rules.diagonal}", which does not go with [hidden].'
        yield Problem(what, "rules.diagonal", hint="Leave it out, or write the task as code.")


def _action_words(spec: TaskSpec) -> dict[str, list[str]]:
    words: dict[str, list[str]] = {way: ["movement"] for way in moves_of(spec)}
    if spec.rules.buy == "single":
        words.setdefault(spec.verb, []).append("verb")
    else:
        for name in spec.sections:
            words.setdefault(f"{spec.verb} {name}", []).append(f"sections.{name}")
    if spec.finish:
        words.setdefault(spec.finish.action, []).append("finish.action")
    if spec.exit:
        words.setdefault(spec.exit.action, []).append("exit.action")
    return words


def _known_keys(path: list[Any]) -> list[str]:
    """The keys the format knows at a place, for a 'did you mean'."""
    tables = {"values": ValuesSpec, "rewards": RewardsSpec, "map": MapSpec, "sections": SectionSpec}
    tables |= {
        "hidden": HiddenSpec,
        "phases": PhaseSpec,
        "finish": FinishSpec,
        "exit": ExitSpec,
        "rules": RulesSpec,
    }
    table: Any = tables.get(str(path[0]), TaskSpec) if path else TaskSpec
    return list(table.model_fields)


# ---------------------------------------------------------------------- what is wrong, in words


_HEADING = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"\s*((?:\"[^\"]*\"|'[^']*'|[\w.-])+)\s*=\s*(.*?)\s*$")
_OPENING = re.compile(r"(\"\"\"|''')(.*)")


def line_of(text: str, where: str) -> int | None:
    """Find the line of a key such as ``sections.meat.symbol`` in a task file.

    A table in an array is given by its number (``phases.1.targets``) or by its ``name``. ``map.drawing,
    row 3`` is the line of that row. Where the key itself is not in the file, the line of the innermost
    heading above it is returned; where there is none, None.
    """
    if " and " in where:  # several keys: the first that stands in the file
        return next((line for key in where.split(" and ") if (line := line_of(text, key))), None)
    key, _, row = where.partition(", row ")
    lines, numbers = _places(text)
    path = key.split(".")
    if len(path) > 1:
        path[1] = numbers.get((path[0], path[1]), path[1])
    known = (lines[tuple(path[:n])] for n in range(len(path), 0, -1) if tuple(path[:n]) in lines)
    line = next(known, None)
    if line is None or not row.isdigit():
        return line
    return _line_of_row(text.splitlines(), line, int(row))


def _places(text: str) -> tuple[dict[tuple[str, ...], int], dict[tuple[str, str], str]]:
    """The line of every heading and key, and the number of every named table in an array."""
    lines: dict[tuple[str, ...], int] = {}
    numbers: dict[tuple[str, str], str] = {}
    counts: dict[str, int] = {}
    table: tuple[str, ...] = ()
    until = ""  # the quotes that end the string we are in
    for line, content in enumerate(text.splitlines(), start=1):
        if until:
            until = "" if until in content else until
        elif heading := _HEADING.match(content):
            table = tuple(_bare(part) for part in heading[2].split("."))
            if heading[1] == "[[":
                counts[heading[2]] = counts.get(heading[2], -1) + 1
                lines.setdefault(table, line)
                table = (*table, str(counts[heading[2]]))
            lines.setdefault(table, line)
        elif key := _KEY.match(content):
            path = (*table, *(_bare(part) for part in key[1].split(".")))
            lines.setdefault(path, line)
            if len(path) == 3 and path[2] == "name" and path[1].isdigit():
                numbers.setdefault((path[0], _bare(key[2])), path[1])
            if (opening := _OPENING.match(key[2])) and opening[1] not in opening[2]:
                until = opening[1]
    return lines, numbers


def _line_of_row(lines: list[str], line: int, row: int) -> int:
    """The line of a row of a drawing whose key is on the given line."""
    key = _KEY.match(lines[line - 1])
    opening = _OPENING.match(key[2]) if key else None
    if opening is None or opening[1] in opening[2]:
        return line  # the whole drawing is on one line
    first = line if opening[2] else line + 1
    while first < len(lines) and not lines[first - 1].strip():
        first += 1
    return first + row - 1


def _bare(word: str) -> str:
    return word.strip().strip("\"'")


def toml_hint(message: str) -> str:
    """Say what most often lies behind a TOML parser's complaint."""
    if "('phases',)" in message:
        return " Write [[phases]], with double brackets, above each phase."
    if "Invalid value" in message or "Expected newline" in message:
        return " Text needs quotes, and decimal numbers a point."
    return ""


def explain(
    item: Mapping[str, Any], data: Mapping[str, Any], text: str, known: Callable[[list[Any]], list[str]]
) -> Problem:
    """Put one pydantic finding into our words, with its key and line."""
    path = _named([part for part in item["loc"] if part != "[key]"], data)
    where, kind = ".".join(map(str, path)), item["type"]
    what, hint = item["msg"].removeprefix("Value error, ").removeprefix("Input should be "), ""
    if kind == "extra_forbidden":
        what, hint = "is not a known key.", did_you_mean(str(path[-1]), known(path[:-1]))
    elif kind == "missing":
        what = "is missing."
    elif kind == "finite_number":
        what = "is not a finite number."
    elif kind == "tuple_type" and path == ["phases"]:
        what = "needs double brackets: write [[phases]] above each phase."
    elif kind == "tuple_type":
        what = f'should be a list, such as ["a", "b"], not {shown(item["input"])}.'
    elif item["msg"].startswith("Input should be "):
        what = f"should be {what}, not {shown(item['input'])}."
    elif not what.endswith("."):
        what = f"{what[0].lower()}{what[1:]}."
    return located(Problem(what, where or "the file", hint=hint), text)


def _named(path: list[Any], data: Mapping[str, Any]) -> list[Any]:
    """The same path with a phase's name in the place of its number, and without a list's numbers."""
    if len(path) < 3 or path[0] != "phases":
        return [part for part in path if not isinstance(part, int)] if path[:1] == ["sections"] else path
    name = data["phases"][path[1]].get("name")
    known = isinstance(name, str) and path[2] != "name"
    return ["phases", name if known else path[1], *(p for p in path[2:] if not isinstance(p, int))]


def shown(value: object) -> str:
    """Show a value, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def did_you_mean(word: str, known: Any) -> str:
    """Guess which of the known words was meant, or list them."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"Did you mean {close[0]!r}?" if close else f"Known here: {', '.join(known)}."


def located(problem: Problem, text: str) -> Problem:
    """Add the line to a problem whose key stands in the text."""
    line = problem.line if problem.line is not None else line_of(text, problem.where)
    return Problem(problem.what, problem.where, line, problem.hint)
