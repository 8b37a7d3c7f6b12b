"""Pages from templates: what a template says becomes sections, tables and figures, or an error."""

from __future__ import annotations

import polars as pl
import pytest
from jinja2 import UndefinedError
from matplotlib.figure import Figure

from fidm.errors import DataError
from fidm.record import Record
from fidm_studies import Findings
from fidm_studies.writing import one_line, side, write_sections

TEMPLATE = """
## Summary [#found]

{{ n }} people are {{ pace | say(above="slow", below="fast", unsure="neither") }}
{% if pace != "unsure" %}
, by {{ r }}
{% endif %}
.

{% for name in names %}
{{ name }} took part.

{% endfor %}
## Times [#times]

### Times by group [#times]

| group | typical time (s)     |     n |
| ----- | -------------------: | ----: |
| group | median (low to high) | count |

Medians of {{ share | percent }}.

![One mark.](drawn "Times & groups")
"""


def findings(**numbers):
    table = pl.DataFrame({"group": ["a"], "median": [1.5], "low": [1.0], "high": [2.0], "count": [1200]})
    found = {"n": 1200, "r": {"value": 0.5, "low": 0.25, "high": 0.75}, "share": 0.5, "names": ["A", "B"]}
    return Findings(Record.of("x", (), seed=1), tables={"times": table}, numbers={**found, **numbers})


def written(template=TEMPLATE, *, figures=("drawn",), **numbers):
    drawn = {name: Figure() for name in figures}
    return write_sections(template, findings(**numbers), chosen={"pace": "above"} | numbers, figures=drawn)


def test_a_template_becomes_sections_tables_notes_and_figures():
    summary, times = written()
    assert (summary["id"], summary["title"]) == ("found", "Summary")
    assert summary["paragraphs"] == [
        "1,200 people are slow, by 0.500 (0.250 to 0.750).", "A took part.", "B took part.",
    ]  # fmt: skip
    assert times["paragraphs"] == []
    (table,) = times["tables"]
    assert [column["name"] for column in table["columns"]] == ["group", "median", "low", "high", "count"]
    assert [column["align"] for column in table["columns"]][:2] == ["left", "right"]
    assert table["columns"][1]["words"] == "typical time (s)"
    assert table["rows"] == [["a", 1.5, 1.0, 2.0, 1200]]
    assert table["note"] == "Medians of 50.0 %."
    (figure,) = times["figures"]
    assert (figure["alt"], figure["title"], figure["table"]) == ("One mark.", "Times & groups", "times")


def test_words_follow_what_was_chosen():
    assert written(pace="unsure")[0]["paragraphs"][0] == "1,200 people are neither."


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("## Summary [#found]", "Summary", "does not begin with a heading"),
        ("[#times]\n\n|", "[#other]\n\n|", "shows the table other, which is not there"),
        ("| -----: | ----: |", "| ---: |", "a header, a rule and one line"),
        ("median (low to high)", "median (low, high)", "a cell that names no column"),
        ("](drawn ", "](other ", "shows the figure other, which is not there"),
        ('![One mark.](drawn "Times & groups")', "", "no place for the figures: drawn"),
    ],
)
def test_what_is_wrong_with_a_template_is_said(old, new, says):
    if old.startswith("| -----"):
        old = "| ----- | -------------------: | ----: |"
    assert old in TEMPLATE
    with pytest.raises(DataError, match=says):
        written(TEMPLATE.replace(old, new))


def test_a_value_that_nobody_gave_is_an_error():
    with pytest.raises(UndefinedError, match="nothing"):
        written(TEMPLATE + "{{ nothing }}")


def test_an_interval_lies_on_one_side_or_on_none():
    assert side({"low": 0.6, "high": 0.9}, 0.5) == "above"
    assert side({"low": 0.1, "high": 0.4}, 0.5) == "below"
    for low in (0.4, None, float("nan")):
        assert side({"low": low, "high": 0.9}, 0.5) == "unsure"


def test_spaces_that_only_set_tags_apart_go_and_others_stay():
    assert one_line("a ( b )\n. c , about .45 ; 3 : 4") == "a (b). c, about .45; 3: 4"
