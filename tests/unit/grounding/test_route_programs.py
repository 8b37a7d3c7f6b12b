"""Route programs: reading, writing, tidying, and errors that never quote what was read."""

from __future__ import annotations

import traceback

import pytest

from fidm.errors import GroundingError
from fidm.grounding.route.program import (
    MAX_INSTRUCTIONS,
    MAX_SQUARES,
    NOTHING,
    OPS,
    Instruction,
    parse_program,
    same_program,
    tidy,
    write_program,
)

PLACES = ("meat", "egg_tofu", "bakery")
CANARY = "grandmotherlivesonpeachroad"

EVERY_FORM = (
    "MOVE up 3",
    "MOVE down 1",
    "MOVE left 12",
    f"MOVE right {MAX_SQUARES}",
    "MOVE ahead 2",
    "MOVE up end",
    "MOVE ahead end",
    "MOVE up to meat",
    "MOVE ahead to FINISH",
    "MOVE up",
    "MOVE ahead",
    "TURN left",
    "TURN right",
    "TURN around",
    "GOTO meat",
    "GOTO START",
    "GOTO FINISH",
    "GOTO EXIT",
    "ALONG",
    "ALONG egg_tofu",
    "BACK",
    "BACK 2",
    "BACK meat",
    "BUY bakery",
    "PAY",
    "LEAVE",
    "NONE",
)


@pytest.mark.parametrize("text", EVERY_FORM)
def test_every_form_is_read_and_written_the_same(text: str) -> None:
    assert write_program(parse_program(text, PLACES)) == text


def test_the_forms_use_every_instruction() -> None:
    assert {text.split()[0] for text in EVERY_FORM} == set(OPS)


def test_fields_are_filled() -> None:
    program = parse_program("MOVE up 3; MOVE left end; MOVE down to meat; TURN around; BACK 2", PLACES)
    assert program == (
        Instruction("MOVE", "up", 3),
        Instruction("MOVE", "left", to_end=True),
        Instruction("MOVE", "down", place="meat"),
        Instruction("TURN", "around"),
        Instruction("BACK", squares=2),
    )


def test_upper_and_lower_case_spaces_and_line_ends_do_not_matter() -> None:
    untidy = "  move  UP   3\n\n;; Turn Left ;buy MEAT\r\ngoto start;goto Egg_Tofu\n"
    assert write_program(parse_program(untidy, PLACES)) == (
        "MOVE up 3; TURN left; BUY meat; GOTO START; GOTO egg_tofu"
    )


def test_a_section_keeps_its_own_spelling() -> None:
    assert parse_program("BUY meat", ["Meat"])[0].place == "Meat"


@pytest.mark.parametrize("text", ["", " ", "\n;\n", "NONE", "none; NONE"])
def test_nothing_is_none(text: str) -> None:
    assert parse_program(text, PLACES) == NOTHING


def test_none_beside_other_instructions_is_left_out() -> None:
    assert write_program(parse_program("NONE; MOVE up 1; NONE", PLACES)) == "MOVE up 1"
    assert tidy([]) == NOTHING
    assert tidy([Instruction("NONE", span=(3, 4))]) == NOTHING


def test_tidy_keeps_at_most_the_longest_program() -> None:
    assert len(tidy([Instruction("MOVE", "up", 1)] * (MAX_INSTRUCTIONS + 5))) == MAX_INSTRUCTIONS
    assert len(parse_program("MOVE up 1;" * MAX_INSTRUCTIONS, PLACES)) == MAX_INSTRUCTIONS
    with pytest.raises(GroundingError, match=f"at most {MAX_INSTRUCTIONS} instructions, not 65"):
        parse_program("MOVE up 1;" * 65, PLACES)


def test_same_program_looks_at_meaning_alone() -> None:
    one = [Instruction("MOVE", "up", 3, span=(0, 4), probability=0.5)]
    assert same_program(one, parse_program("MOVE up 3", PLACES))
    assert not same_program(one, parse_program("MOVE up 2", PLACES))
    assert not same_program(one, parse_program("MOVE up end", PLACES))


BROKEN = (
    CANARY,
    f"MOVE {CANARY}",
    f"MOVE up {CANARY}",
    f"MOVE up to {CANARY}",
    f"MOVE up 3 {CANARY}",
    f"MOVE up end {CANARY}",
    f"MOVE up to meat {CANARY}",
    f"TURN {CANARY}",
    f"TURN left {CANARY}",
    f"GOTO {CANARY}",
    f"GOTO meat {CANARY}",
    f"ALONG {CANARY}",
    f"BACK {CANARY}",
    f"BACK 2 {CANARY}",
    f"BUY {CANARY}",
    f"PAY {CANARY}",
    f"LEAVE {CANARY}",
    f"NONE {CANARY}",
)


@pytest.mark.parametrize("text", BROKEN)
def test_errors_never_quote_what_was_read(text: str) -> None:
    with pytest.raises(GroundingError) as caught:
        parse_program(f"MOVE up 1; {text}", PLACES)
    said = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert "Instruction 2" in str(caught.value)
    assert CANARY not in said.replace(repr(text), "")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "text",
    [
        "MOVE", "MOVE around 2", "TURN", "TURN up", "TURN ahead", "GOTO", "BUY", "MOVE up to", "MOVE up 0",
        f"MOVE up {MAX_SQUARES + 1}", "MOVE up 1000000000000", "MOVE up -1", "MOVE up ３", "MOVE up 2.5", "BACK 0",
        "BACK end", "ALONG 3", "TURN left 2", "MOVE meat", "MOVE up meat", "PAY 2",
    ],
)  # fmt: skip
def test_what_is_no_instruction_is_refused(text: str) -> None:
    with pytest.raises(GroundingError, match="Instruction 1"):
        parse_program(text, PLACES)


def test_the_number_of_a_wrong_instruction_counts_what_was_written() -> None:
    with pytest.raises(GroundingError, match="Instruction 3"):
        parse_program("MOVE up 1;; TURN left; PAY now", PLACES)
