"""Columns as labs write them: names or numbers, gaps, wrong kinds; and the notes of what is wrong in them.

A problem names its table, its row counted from 1, and the person; it never shows what stood in a cell. The
table of participants may have a column ``excluded``, which leaves people out on purpose: a reason in words,
or true; empty, NA or the like, or false for whoever takes part. A cell that is neither words nor true or
false, or that could mean either, is refused, since a person must not be left out, or kept, by a slip.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

import polars as pl

from fidm.cohort import NO_ACTION, PROBLEM_SCHEMA
from fidm.errors import DataError, Problem, count, remedy
from fidm.tasks.stack import TaskSet

RESERVED = ("_row", "_episode", "_task", "_end", "_person", "_name", "_code", "_p", "_place", "_known")
"""Names of columns used while reading; a table's own are left out."""

KNOWN = {
    "participant", "episode", "step", "segment", "task", "state", "action", "end_state", "weight", "split",
    "excluded", "inferred", "n_moves", "duration_s", "n_characters", "n_turns", "pause_s",
}  # fmt: skip
"""Documented names of columns. Messages repeat no others: a file without header has words there."""

LARGEST = 2**31 - 1
"""The largest number of a state, an action or a step."""


def numbered(table: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with their numbers, without those in which every cell is empty."""
    table = table.drop(RESERVED, strict=False)
    blank = pl.all_horizontal(
        (pl.col(name).is_null() | (pl.col(name).cast(pl.String).str.strip_chars() == ""))
        if kind == pl.String
        else pl.col(name).is_null()
        for name, kind in table.schema.items()
    )
    return table.with_row_index("_row").filter(~blank)


def _listed(columns: Sequence[str]) -> str:
    """Names of columns that are known, and how many others there are."""
    known = [repr(name) for name in columns if name in KNOWN]
    others = sum(name not in KNOWN and name not in RESERVED for name in columns)
    more = f"{count(others, 'column')} of other names" if others else ""
    return " and ".join(part for part in (", ".join(known), more) if part) or "no columns"


def plain_kind(table: pl.DataFrame, name: str, column: str) -> pl.DataFrame:
    """Return the table with a column as numbers or text; dates and the like are refused."""
    kind = table.schema[column]
    if kind == pl.Null or kind.is_decimal():
        return table.with_columns(pl.col(column).cast(pl.Float64))
    if kind in (pl.Categorical, pl.Enum):
        return table.with_columns(pl.col(column).cast(pl.String))
    if kind == pl.Boolean:
        return table.with_columns(pl.col(column).cast(pl.Int64))
    if not (kind.is_numeric() or kind == pl.String):
        raise DataError(
            f"The column {column!r} of {name} holds {kind}; numbers are needed. Give times in seconds."
        )
    return table


def need(table: pl.DataFrame, name: str, columns: tuple[str, ...]) -> None:
    """Raise unless a table has these columns."""
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise DataError(
            f"The table {name!r} has no column {', '.join(map(repr, missing))}. "
            f"It has {_listed(table.columns)}."
        )


def natural(column: pl.Expr) -> pl.Expr:
    """Return a name as text; 3.0, which a spreadsheet may make of 3, becomes 3."""
    return column.cast(pl.String).str.strip_chars().str.replace(r"^(-?\d+)\.0+$", "$1")


def refuse_decimals(table: pl.DataFrame, name: str) -> None:
    """Raise if names were read as decimal numbers, among which 1.1 and 1.10 are the same."""
    for column in ("participant", "episode", "segment"):
        kind = table.schema.get(column)
        if kind is not None and kind.is_float():
            number = pl.col(column).fill_nan(None)
            if table.select((number != number.round()).any()).item():
                raise DataError(
                    f"The column {column!r} of {name} holds names that were read as decimal numbers, so 1.1 "
                    "and 1.10 cannot be told apart. Read the column as text, for example with dtype=str."
                )


def named_codes(
    table: pl.DataFrame, source: str, column: str, tasks: TaskSet | None, found: list[pl.DataFrame]
) -> pl.DataFrame:
    """Return the table with names of actions or states as their numbers; numbers stay."""
    table = plain_kind(table, source, column)
    if table.schema[column].is_numeric():
        return whole(table, source, column, found)
    text = pl.col(column).cast(pl.String).str.strip_chars()
    as_number = text.cast(pl.Int64, strict=False)
    if tasks is None:
        if table.select((as_number.is_null() & text.is_not_null()).any()).item():
            raise DataError(
                f"The {column}s are given by name; name the tasks, so that they can be understood."
            )
        return table.with_columns(as_number.alias(column))
    codes = []
    for task in tasks.tasks:
        labels = task.actions if column == "action" else task.states
        codes += [(task.name, label, code) for code, label in enumerate(labels)]
        if column == "action" and task.grid is not None and task.grid.spec.exit is not None:
            left_out = task.grid.spec.exit.action
            if left_out not in task.actions:
                codes.append((task.name, left_out, NO_ACTION))
    book = pl.DataFrame(
        codes, schema={"_task": pl.String, "_name": pl.String, "_code": pl.Int64}, orient="row"
    )
    twice = book.filter(pl.struct("_task", "_name").is_duplicated()).unique(["_task", "_name"])
    book = book.unique(["_task", "_name"], keep="none", maintain_order=True)
    named = table.with_columns(_name=text).join(
        book, on=["_task", "_name"], how="left", maintain_order="left"
    )
    named = named.with_columns(pl.coalesce("_code", as_number).alias(column))
    lost = pl.col(column).is_null() & pl.col("_name").is_not_null()
    if twice.height:
        same = named.join(twice.select("_task", "_name"), on=["_task", "_name"], how="semi")
        what = f"Several {'actions' if column == 'action' else 'states'} of the task have this name."
        say(found, source, same, pl.col(column).is_null(), what, "Give their numbers, or other names.")
        named_once = named.join(twice.select("_task", "_name"), on=["_task", "_name"], how="anti")
        _say_unknown_names(found, source, named_once.filter(lost), column, book)
    else:
        _say_unknown_names(found, source, named.filter(lost), column, book)
    return named.drop("_name", "_code")


def _say_unknown_names(
    found: list[pl.DataFrame], source: str, rows: pl.DataFrame, column: str, book: pl.DataFrame
) -> None:
    """Note names nobody knows, with what may have been meant; what stood there is not shown."""
    names = {str(task): own["_name"].to_list() for (task,), own in book.group_by("_task")}
    for task, name in rows.select("_task", "_name").unique(maintain_order=True).rows()[:200]:
        known = names.get(str(task), [])
        near = difflib.get_close_matches(name, known, n=1)
        listed = f"{', '.join(known[:20]) or 'none'}{', …' if len(known) > 20 else ''}"
        hint = f"Did you mean {near[0]}?" if near else f"Known: {listed}."
        which = f"The task {task}" if len(names) > 1 and known else "The task"
        bad = (pl.col("_name") == name) & pl.col("_task").eq_missing(pl.lit(task))
        say(found, source, rows, bad, f"{which} has no {column} of this name.", hint)


def whole(table: pl.DataFrame, name: str, column: str, found: list[pl.DataFrame]) -> pl.DataFrame:
    """Return the table with a column of whole numbers; what is none is noted and left empty."""
    table = plain_kind(table, name, column)
    number = pl.col(column).cast(pl.Float64, strict=False)
    whole = number.is_finite() & (number == number.round()) & (number.abs() <= LARGEST)
    bad = pl.col(column).is_not_null() & ~whole.fill_null(value=False)
    say(found, name, table, bad, f"The {column} is not a whole number, or too large.")
    whole = pl.when(bad).then(None).otherwise(number).cast(pl.Int64, strict=False)
    return table.with_columns(whole.alias(column))


def numbers(table: pl.DataFrame, name: str, column: str, found: list[pl.DataFrame]) -> pl.DataFrame:
    """Return the table with a column of numbers; what is none is noted and left empty."""
    table = plain_kind(table, name, column)
    number = pl.col(column).cast(pl.Float64, strict=False)
    blank = pl.col(column).is_null()
    if table.schema[column] == pl.String:
        blank = blank | (pl.col(column).str.strip_chars() == "")
    bad = ~blank & ~number.is_finite().fill_null(value=False) & ~number.is_nan().fill_null(value=False)
    say(found, name, table, bad, f"{column} is not a finite number.")
    return table.with_columns(pl.when(bad).then(None).otherwise(number).fill_nan(None).alias(column))


def flags(table: pl.DataFrame, name: str, column: str, found: list[pl.DataFrame]) -> pl.DataFrame:
    """Return the table with a column of true and false; empty is false, and what is neither is noted.

    True and false may also be written 1 and 0, or as words.
    """
    kind = table.schema[column]
    if kind.is_temporal() or kind.is_nested() or kind in (pl.Binary, pl.Object):
        raise DataError(
            f"The column {column!r} of {name} holds {kind}; true and false, or 1 and 0, are needed."
        )
    text = pl.col(column).cast(pl.String).str.strip_chars().str.to_lowercase()
    blank = text.is_null() | text.is_in(["", "nan"])
    yes, no = text.is_in(["true", "1", "1.0"]), text.is_in(["false", "0", "0.0"])
    bad = ~(blank | yes.fill_null(value=False) | no.fill_null(value=False))
    say(found, name, table, bad, f"{column} is neither true nor false.", "Write true or false, or 1 or 0.")
    return table.with_columns(yes.fill_null(value=False).alias(column))


def in_order(table: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return the rows sorted; rows that are equal stay as they lie."""
    return table.sort(by, maintain_order=True)


def by_number(table: pl.DataFrame, owner: str, name: str) -> pl.DataFrame:
    """Return the rows by owner, then by name where all names are whole numbers; else as they lie.

    Names such as 1.9 and 1.10 are text.
    """
    number = pl.col(name).cast(pl.Int64, strict=False)
    if table.select(number.is_not_null().all()).item():
        return table.sort(owner, number, maintain_order=True)
    return in_order(table, [owner])


def say(
    found: list[pl.DataFrame], table: str, rows: pl.DataFrame, bad: pl.Expr, problem: str, hint: str = ""
) -> None:
    """Note a problem for every row an expression picks out."""
    picked = rows.filter(bad.fill_null(value=False))
    if picked.height:
        found.append(
            picked.select(
                pl.lit(table).alias("table"),
                (pl.col("_row").cast(pl.Int64) + 1).alias("row"),
                pl.col("participant").cast(pl.String),
                pl.lit(problem).alias("problem"),
                pl.lit(hint).alias("hint"),
            ).cast(dict(PROBLEM_SCHEMA))  # type: ignore[arg-type]
        )


def n_without(problems: pl.DataFrame, ids: pl.Series) -> tuple[int, int]:
    """Return how many people were left out for problems, and of how many who are there some episodes were."""
    is_there = pl.col("participant").is_in(ids.implode()).fill_null(value=False)
    gone, in_part = problems.filter(~is_there), problems.filter(is_there)
    return gone["participant"].n_unique(), in_part["participant"].n_unique()


def say_without(problems: pl.DataFrame, ids: pl.Series) -> str:
    """Return who was left out for problems: "2 participants, and episodes of 1 other"."""
    gone, in_part = n_without(problems, ids)
    parts = [count(gone, "participant")] if gone or not in_part else []
    if in_part:
        others = count(in_part, "other" if gone else "participant")
        parts.append(f"{'and ' if gone else ''}episodes of {others}")
    return ", ".join(parts)


def refusal(problems: pl.DataFrame, source: str) -> DataError:
    """Return the error that lists these problems."""
    people = problems["participant"].drop_nulls().n_unique()
    return DataError(
        f"{count(problems.height, 'problem')}, with {count(people, 'participant')}. Repair what is "
        f"wrong, or leave these people out with {remedy('strict=False', '--skip-bad')}.",
        source=source,
        problems=[
            Problem(
                row["problem"], f"{row['table']}, row {row['row']}, {row['participant']}", hint=row["hint"]
            )
            for row in problems.iter_rows(named=True)
        ],
    )


COLUMN = "excluded"
NO_REASON = "no reason given"
YES, NO = ("true", "yes"), ("false", "no")
MISSING = ("", "na", "n/a", "n.a", "#n/a", "<na>", "nan", "null", "-")
"""How tables write that nothing is there; a full stop at the end is left aside, and so "." is among them."""

UNCLEAR = (
    "none", "non", "y", "n", "t", "f", "x", "in", "out", "keep", "kept", "include", "included",
    "not excluded",
)  # fmt: skip
"""Words that could mean either."""

MOST_REASONS = 5
"""How many reasons a sentence lists."""


def excluded_people(table: pl.DataFrame | None, *, source: str = "") -> pl.DataFrame:
    """Return ``participant`` and ``reason`` of everybody whom a table of participants leaves out.

    None and a table without the column ``excluded`` leave nobody out. ``source`` is where it comes from, for
    messages.

    Examples
    --------
    >>> import polars as pl
    >>> from fidm.io.columns import excluded_people
    >>> people = pl.DataFrame({"participant": ["A", "B", "C"], "excluded": [None, "did not complete", ""]})
    >>> excluded_people(people).rows()
    [('B', 'did not complete')]
    """
    if table is None or COLUMN not in table.columns or "participant" not in table.columns:
        return pl.DataFrame(schema={"participant": pl.String, "reason": pl.String})
    kind = table.schema[COLUMN]
    if not (kind in (pl.Boolean, pl.Null, pl.String, pl.Categorical) or isinstance(kind, pl.Enum)):
        raise DataError(
            f"The column {COLUMN!r} of participants holds {'numbers' if kind.is_numeric() else kind}. "
            "Write a reason in words, or true or false; leave it empty for whoever takes part.",
            source=source,
        )
    text = pl.col(COLUMN).cast(pl.String).str.strip_chars()
    low = text.str.to_lowercase().str.replace(r"\s*\.$", "")
    said = table.select(
        natural(pl.col("participant")),
        pl.when(low.is_in(YES)).then(pl.lit(NO_REASON)).otherwise(text).alias("reason"),
        (text.is_null() | low.is_in([*NO, *MISSING])).alias("_takes_part"),
        (low.is_in(UNCLEAR) | ~text.str.contains(r"\p{L}")).alias("_odd"),
    ).with_row_index("_row")
    said = said.filter(~pl.col("_takes_part"))
    odd = said.filter(pl.col("_odd"))
    if odd.height:
        raise DataError(
            "It is not clear who is excluded.",
            source=source,
            problems=[
                Problem(
                    "excluded is neither a reason in words nor true or false.",
                    f"participants, row {row + 1}, {name}",
                    hint="Leave it empty for whoever takes part.",
                )
                for row, name in odd.select("_row", "participant").iter_rows()
            ],
        )
    found = said.drop_nulls("participant").unique("participant", keep="first", maintain_order=True)
    return found.select("participant", "reason")


def without(table: pl.DataFrame, people: pl.Series) -> pl.DataFrame:
    """Return the rows of a table that belong to none of these people."""
    if not len(people):
        return table
    theirs = natural(pl.col("participant")).is_in(people.implode()).fill_null(value=False)
    return table.filter(~theirs)


def count_reasons(excluded: pl.DataFrame) -> dict[str, int]:
    """Return how many people are excluded for each reason, the most frequent first."""
    counted = excluded.group_by("reason").len().sort("len", "reason", descending=[True, False])
    return {str(reason): int(n) for reason, n in counted.iter_rows()}


def say_reasons(reasons: Mapping[str, int]) -> str:
    """Return who is excluded and why, as a sentence: "2 participants excluded: did not complete (2)"."""
    total = sum(reasons.values())
    listed = [f"{reason} ({n:,})" for reason, n in list(reasons.items())[:MOST_REASONS]]
    if len(reasons) > MOST_REASONS:
        rest = total - sum(list(reasons.values())[:MOST_REASONS])
        listed.append(f"other reasons ({rest:,})")
    return f"{count(total, 'participant')} excluded: {', '.join(listed)}"
