"""Where the figure may stand after words in doubt, and what settles it."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
from test_grounding_dialogs import Stub, talk

import fidm
from fidm.grounding.base import Proposal, Reading, Segment
from fidm.grounding.dialog import CONFIRMED, CONTRADICTED, OTHER_READING, Settings, Weighing
from fidm.grounding.ground import Grounded, ground
from fidm.grounding.route.program import parse_program, write_program
from fidm.grounding.route.replay import Position, Terrain, replay
from fidm.grounding.whereabouts import ANYWHERE, Heard, Whereabouts, misreadings, spot_of
from fidm.io.talk import Transcript, Turn

TASK = fidm.load_task("grocery")
TERRAIN = Terrain(TASK)


def heard(said: str, *, reached: tuple[str, ...] = (), **more: bool) -> Heard:
    """A segment of readings written ``program@probability``, set apart by ``|``."""
    readings = []
    for part in said.split("|"):
        text, _, p = part.partition("@")
        readings.append(Reading(parse_program(text, TERRAIN.places), float(p or 0.9)))
    segment = Segment(1, said, (0,), (0,), (0,), reached=reached)
    return Heard(segment, tuple(readings), **more)


def follow(*said: Heard) -> tuple[Whereabouts, list[float], list[float]]:
    """Follow segments; return how probable each is to be right, and where its moves start to be known."""
    places, position, walks = Whereabouts(TERRAIN, frozenset()), TERRAIN.start(), []
    for one in said:
        places.hear(one, position)
        walks.append(replay(one.readings[0].program, TERRAIN, position))
        position = walks[-1].end
    settled = places.settle(walks)
    return places, [one.right for one in settled], [one.known[0] if one.known else 0.0 for one in settled]


def test_where_nothing_is_doubted_the_figure_is_where_the_moves_lead() -> None:
    places, right, known = follow(heard("MOVE left 1"), heard("MOVE up 3"), heard("GOTO meat"))
    position = TERRAIN.start()
    for text in ("MOVE left 1", "MOVE up 3", "GOTO meat"):
        position = replay(parse_program(text, TERRAIN.places), TERRAIN, position).end
    assert places.best() == spot_of(position)
    assert min(right) > 0.9
    assert min(known) > 0.9


def test_probabilities_are_probabilities() -> None:
    _, right, known = follow(
        heard("MOVE left 1@0.6|MOVE left 2@0.2", is_doubted=True), heard("MOVE up"), heard("BUY meat")
    )
    assert all(0 <= p <= 1 for p in (*right, *known))
    assert all(a <= b + 1e-9 for a, b in zip(right, known, strict=True))


@pytest.mark.parametrize("distance", [1, 2])
def test_what_can_be_walked_later_tells_how_far_it_was(distance: int) -> None:
    """From the start the corridor leads three squares up; only at its end one can go left."""
    said = (heard("MOVE left 1"), heard(f"MOVE up {distance}@0.3|MOVE up 3@0.3", is_doubted=True))
    before, *_ = follow(*said)
    after, *_ = follow(*said, heard("MOVE left 2"))
    assert before.best() == ANYWHERE or before.follow()[1] == 0
    assert after.follow() == [0, 1, 0]


def test_a_place_brings_all_ways_together() -> None:
    doubted = heard("MOVE left 3@0.5", is_doubted=True)
    _, _, known = follow(
        heard("MOVE left 1; MOVE up 3"), doubted, heard("GOTO seasoning"), heard("MOVE left 1")
    )
    assert known[1] < 0.7 < 0.75 < known[3]


def test_the_assessor_tells_where_the_figure_is() -> None:
    doubted = "MOVE left 1; MOVE up 3; MOVE left 1; MOVE up 4@0.4"
    _, alone, _ = follow(heard(doubted, is_doubted=True))
    _, told, _ = follow(heard(doubted, reached=("egg_tofu",), is_doubted=True))
    _, denied, _ = follow(heard(doubted, reached=("meat",), is_doubted=True))
    assert alone == [pytest.approx(0.4)]
    assert denied[0] < 0.3
    assert told[0] > 0.8


def test_a_rejected_segment_leaves_the_figure_anywhere_and_a_reviewed_one_says_where_it_is() -> None:
    lost = (heard("MOVE left 1", is_lost=True), heard("MOVE up 1"))
    assert follow(*lost)[0].best() == ANYWHERE
    assert follow(*lost)[2][1] == 0
    _, _, known = follow(*lost, heard("MOVE up 2", is_certain=True), heard("MOVE left 1"))
    assert known[2:] == [1.0, pytest.approx(0.97, abs=0.03)]


def test_a_grounder_that_claims_everything_in_doubt_is_trusted_half() -> None:
    readings = heard("MOVE left 1@0.75|NONE@0.25").readings
    assert Proposal(readings).trusted() == readings
    assert [one.probability for one in Proposal(readings, ("odd",)).trusted()] == [0.375, 0.125]
    modest = heard("MOVE left 1@0.75|NONE@0.15").readings
    assert Proposal(modest, ("odd",)).trusted() == modest


def test_values_play_no_part(tmp_path: Path) -> None:
    """The same words on the same map with other rewards lead to the same places."""
    text = (resources.files("fidm.tasks") / "builtin" / "grocery.toml").read_text("utf-8")
    changed = text.replace("target = 1.0", "target = 7.0").replace("non_target = -0.2", "non_target = 3.0")
    assert changed != text
    (tmp_path / "rich.toml").write_text(changed, "utf-8")
    other = Terrain(fidm.load_task(tmp_path / "rich.toml"))
    found = []
    for terrain in (TERRAIN, other):
        places, position = Whereabouts(terrain, frozenset()), terrain.start()
        for text in (
            "MOVE left 1; MOVE up 3",
            "MOVE left 2@0.5",
            "MOVE up 2",
            "GOTO meat@0.3",
            "MOVE down 1",
        ):
            one = heard(text, is_doubted="@" in text)
            places.hear(one, position)
            position = replay(one.readings[0].program, terrain, position).end
        found.append((places._now, places._weights()))
    assert found[0] == found[1]


def test_usual_misreadings_differ_from_what_was_read_and_from_each_other() -> None:
    for text in ("NONE", "MOVE up", "MOVE up 1; TURN left", "BUY meat", "GOTO meat; BUY meat; BACK 2", "PAY"):
        program = parse_program(text, TERRAIN.places)
        texts = [write_program(one) for one in misreadings(program)]
        assert text not in texts
        assert len(texts) == len(set(texts))
        assert ("NONE" in texts) == (text != "NONE")


# ------------------------------------------------------------------ in dialogs


def stubbed(*said: str, closing: str = "okay, I've moved you") -> Grounded:
    dialog = talk(*said)
    turns = [replace_text(turn, closing) if turn.role == "assessor" else turn for turn in dialog.turns]
    return ground([Transcript("P1", tuple(turns), language="en")], TASK, by=Stub(), settings=Settings())


def replace_text(turn: Turn, text: str) -> Turn:
    return Turn(turn.speaker, turn.start_s, turn.end_s, text, turn.role)


def test_another_reading_is_followed_where_the_rest_fits_it_better() -> None:
    found = stubbed("MOVE left 1", "MOVE up 1@0.45|MOVE up 3@0.35!", "MOVE left 4", "GOTO seasoning")
    row = found.segments.row(1, named=True)
    assert row["program"] == "MOVE up 3"
    assert OTHER_READING in row["doubts"].split()
    assert found.segments["status"][2] == "confident"
    assert found.checks.height == 0


def test_a_doubt_is_lifted_by_what_comes_later_and_counts_then() -> None:
    found = stubbed("MOVE left 1", "MOVE up 3@0.8!", "MOVE left 10", "MOVE up 3; MOVE up 4", "GOTO bakery")
    row = found.segments.row(1, named=True)
    assert row["status"] == "confident"
    assert row["doubts"].split() == ["odd", CONFIRMED]
    assert found.cohort.weight.min() == 1.0


def test_an_assessor_who_names_another_place_raises_a_doubt() -> None:
    found = stubbed("BUY meat", closing="okay, I've moved you. You're at the eggs")
    assert found.segments["doubts"].to_list() == [CONTRADICTED]
    assert found.segments["status"].to_list() == ["needs_review"]
    sure = stubbed("BUY meat", closing="okay, I've moved you, you're at the meat. And then?")
    assert sure.segments["status"].to_list() == ["confident"]
    assert sure.segments["reached"].to_list() == ["meat"]
    asked = stubbed("BUY meat", closing="okay, moved. Do you want to go to the eggs?")
    assert asked.segments["reached"].to_list() == [""]


def test_sure_is_a_probability_above_one_half() -> None:
    for wrong in (0.5, 1.1):
        with pytest.raises(fidm.errors.GroundingError):
            Weighing(sure=wrong)
    strict = ground(
        talk("MOVE left 1!", "GOTO meat"), TASK, by=Stub(), settings=Settings(weighing=Weighing(sure=1))
    )
    assert strict.cohort.weight.max() == 0.0


def test_positions_have_no_way_that_led_there() -> None:
    assert spot_of(Position(4, 1, (2, 3))) == spot_of(Position(4, 1))
