"""Participants who are left out of a study on purpose, and why.

The table of participants may have a column ``excluded``: a reason in words, or true; empty, NA or the like,
or false for whoever takes part. A cell that is neither words nor true or false, or that could mean either, is
refused, since a person must not be left out, or kept, by a slip.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from fidm.errors import DataError, Problem
from fidm.io.columns import natural

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

    Parameters
    ----------
    table : DataFrame or None
        The participants; None and a table without the column ``excluded`` leave nobody out.
    source : str
        Where the table comes from, for messages.

    Examples
    --------
    >>> import polars as pl
    >>> from fidm.io.excluded import excluded_people
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
    return f"{total:,} participant{'' if total == 1 else 's'} excluded: {', '.join(listed)}"
