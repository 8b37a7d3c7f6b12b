"""A report in a real browser: people's sections, what belongs together in them, the list, paper."""

from __future__ import annotations

import copy
import io
import math
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from pypdf import PageObject, PdfReader

import fidm
from fidm.grounding.ground import ground
from fidm.grounding.store import write_grounding
from fidm.io.talk import Transcript, Turn
from fidm.plot.evidence import residual_shade
from fidm.present.numbers import estimate_text, number_text, percent_text
from fidm.report.report import build_report, to_html

STATEMENT = "Research use only, not a diagnosis."
ASTRAL, SCRIPT, HEBREW = (
    "😀𠮷 go up two squares",
    "<script>window.hacked = 1</script> go up one square",
    "שלום go up one square מה",
)
SAID = (
    "go left one square",
    ASTRAL,
    SCRIPT,
    HEBREW,
    "go down one square",
    "go up one square, go up one square",
)
STEP_OF = {"ASTRAL": 1, "SCRIPT": 3, "DOWN": 4}


def talk(who: str, *said: str) -> Transcript:
    turns = []
    for i, text in enumerate(said):
        turns.append(Turn("PAR", 4.0 * i, 4.0 * i + 2.0 - 0.1 * (i % 3), text, "participant"))
        turns.append(Turn("INV", 4.0 * i + 2.5, 4.0 * i + 3.0, "okay, moved", "assessor"))
    return Transcript(who, tuple(turns), language="en")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("talks") / "study"
    people = [talk("P01", *SAID), talk("<b>P02</b>", *SAID[:4]), talk("P10", *SAID[:2])]
    write_grounding(folder, ground(people, fidm.load_task("grocery")), tasks=["grocery"])
    return folder


@pytest.fixture(scope="module")
def data(study: Path) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fidm.fit.population.FEWEST_OBSERVED", 3)  # three people are enough for a page
        return build_report(study, classify=False).data


@pytest.fixture(scope="module")
def address(data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    return put(tmp_path_factory.mktemp("page"), data)


def put(folder: Path, report: dict[str, Any]) -> str:
    path = folder / "report.html"
    path.write_text(to_html(report), "utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def kept(browser: Browser) -> Iterator[tuple[Page, list[str]]]:
    """One page for all tests that need no context of their own, and the errors that were written in it."""
    errors: list[str] = []
    context = browser.new_context(viewport={"width": 1366, "height": 768})
    context.set_default_timeout(30_000)
    page = context.new_page()
    page.on("console", lambda said: said.type == "error" and errors.append(said.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page, errors
    context.close()


@pytest.fixture
def page(kept: tuple[Page, list[str]]) -> Iterator[Page]:
    """The module's page, with nothing in it; a test fails if anything was written as an error."""
    found, errors = kept
    errors.clear()
    found.goto("about:blank")
    found.mouse.move(0, 0)  # not where the test before left it
    yield found
    assert errors == []


@pytest.fixture
def opened(page: Page, address: str) -> Page:
    return go(page, address)


def go(page: Page, address: str) -> Page:
    """Open the first person of a report."""
    page.goto(f"{address}#person-1")
    expect(page.locator("#person-1 .episode")).to_be_visible()
    return page


def bar(page: Page, i: int) -> Locator:
    return page.locator(f"#person-1 .chart .bar[data-step='{i}']")


def words(page: Page, i: int) -> Locator:
    return page.locator(f"#person-1 .said[data-steps~='{i}']")


def expect_lit(page: Page, kind: str, *wanted: str, by: str = "data-step") -> None:
    """Wait until these steps (or segments) of one kind of element are lit, and no others of that kind."""
    found = page.locator(f"#person-1 {kind}.lit")
    expect(found).to_have_count(len(wanted))
    for i, name in enumerate(wanted):
        expect(found.nth(i)).to_have_attribute(by, name)


def expect_lit_words(page: Page, *wanted: str) -> None:
    """Wait until these words are lit, and no others."""
    found = page.locator("#person-1 .said.lit")
    expect(found).to_have_text(list(wanted))
    assert found.all_text_contents() == list(wanted)  # to the letter: the wait does not mind spaces


def open_tables(page: Page, *names: str) -> None:
    """Open tables of the first person, which are filled a moment later."""
    for name in names:
        page.get_by_text(f"Table of 6 {name}").click()
        expect(page.locator(f"#person-1 table.{name} tbody tr")).to_have_count(6)


def expect_filled(page: Page) -> None:
    """Wait until every open table is filled."""
    expect(page.locator("details.table[open]:not(:has(table))")).to_have_count(0)


# ---------------------------------------------------------------------- opening


def test_a_report_opens_without_a_network_and_renders_nobody_before_being_asked(watched, address):
    context = watched.context(offline=True)
    page = context.new_page()
    page.add_init_script(
        "window.parsed = 0; const p = JSON.parse; JSON.parse = t => (window.parsed += 1, p(t));"
    )
    page.goto(address)
    expect(page.locator("details.person")).to_have_count(3)
    expect(page.locator(".person-body")).to_have_count(0)
    assert page.evaluate("window.parsed") == 1  # what everybody shares, and nobody's own part
    page.locator("#person-2 > summary").click()
    expect(page.locator("#person-2 .episode")).to_be_visible()
    expect(page.locator(".person-body")).to_have_count(1)
    assert page.evaluate("window.parsed") == 2
    second = page.locator("#person-2")
    second.evaluate("e => e.addEventListener('toggle', () => { e.dataset.heard = e.open; })")
    for is_open in ("false", "true"):
        second.locator("> summary").click()
        expect(second).to_have_attribute("data-heard", is_open)
    expect(second.locator(".person-body")).to_have_count(1)  # and not once more
    assert [url for url in watched.requests if not url.startswith(("file:", "data:"))] == []


def test_an_address_opens_a_person_even_one_a_filter_hides(page, address):
    page.goto(address)
    page.get_by_label("Find by id").fill("P10")
    expect(page.locator("#person-1")).to_be_hidden()
    page.evaluate("location.hash = '#person-1'")
    expect(page.locator("#person-1 .episode")).to_be_visible()
    expect(page.locator("#person-1 > summary")).to_be_focused()


# ---------------------------------------------------------------------- what belongs together


def test_pointing_at_a_step_lights_its_words_beyond_letters_of_two_units(opened):
    bar(opened, STEP_OF["ASTRAL"]).hover()
    expect_lit_words(opened, "go up two squares")
    expect_lit(opened, "svg.map .step", "1")
    expect_lit(opened, ".chart .bar[data-step]", "1")
    expect(opened.locator("#person-1 .chart .bar[data-segment='1'].lit")).not_to_have_count(0)
    expect(opened.locator("#person-1 .chart .bar[data-segment].lit:not([data-segment='1'])")).to_have_count(0)
    expect(opened.locator("#person-1 .turn.lit .text")).to_have_text([ASTRAL])
    expect(opened.locator("#person-1 .now")).to_contain_text("Step 2 of 6, segment 2: N")
    expect(opened.locator("#person-1 .figure")).to_have_count(1)
    opened.mouse.move(0, 0)
    expect_lit_words(opened)
    expect(opened.locator("#person-1 .figure")).to_have_count(0)


def test_pointing_at_words_lights_their_steps(opened):
    words(opened, 1).hover()
    expect_lit(opened, "svg.map .step", "1", "2")
    expect_lit(opened, ".chart .bar[data-step]", "1", "2")
    expect(opened.locator("#person-1 .now")).to_contain_text("Segment 2, steps 2–3: MOVE up 2")


def test_pointing_at_the_map_and_at_effort_lights_the_rest(opened):
    opened.locator("#person-1 svg.map .step[data-step='4'] .reach").hover(force=True)
    expect_lit_words(opened, "go down one square")
    opened.locator("#person-1 .effort .bar[data-segment='1']").first.hover()
    expect_lit(opened, ".chart .bar[data-step]", "1", "2")
    expect_lit_words(opened, "go up two squares")


def test_what_was_said_is_text_and_nothing_else(opened, data):
    assert opened.locator("#person-1 .turn .text").all_text_contents()[::2] == list(SAID)
    assert opened.evaluate("window.hacked") is None
    expect(opened.locator("#people script, #people b")).to_have_count(0)
    expect(opened.locator("#person-2 > summary")).to_contain_text("<b>P02</b>")
    bar(opened, STEP_OF["SCRIPT"]).hover()
    expect_lit_words(opened, "go up one square")
    hebrew = opened.locator("#person-1 .turn .text").nth(6)
    assert hebrew.evaluate("e => [getComputedStyle(e).direction, e.dir, e.lang]") == ["rtl", "auto", "en"]


def test_a_click_pins_and_releases(opened):
    bar(opened, 4).click()
    bar(opened, 0).hover()
    expect(opened.locator("#person-1 .chart .bar[data-step='0']:hover")).to_have_count(1)
    expect_lit(opened, ".chart .bar[data-step]", "4")
    words(opened, 0).click()
    expect_lit(opened, ".chart .bar[data-step]", "0")
    words(opened, 0).click()
    opened.mouse.move(0, 0)
    expect_lit(opened, ".chart .bar")
    bar(opened, 4).click()
    opened.mouse.move(0, 0)
    opened.get_by_role("button", name="Release the pinned step").click()
    expect_lit(opened, ".chart .bar")


def test_a_click_on_the_map_goes_on_with_keys(opened):
    opened.locator("#person-1 svg.map .step[data-step='4'] .reach").click(force=True)
    opened.mouse.move(0, 0)
    opened.keyboard.press("ArrowLeft")
    expect_lit(opened, "svg.map .step", "3")
    opened.keyboard.press("Escape")
    expect_lit(opened, "svg.map .step")


def test_touching_works(watched, address):
    page = go(watched.page(has_touch=True, viewport={"width": 800, "height": 1100}), address)
    words(page, 4).tap()
    expect_lit(page, "svg.map .step", "4")
    bar(page, 0).tap()
    expect_lit_words(page, "go left one square")


def test_everything_is_reached_with_the_keyboard(opened):
    bar(opened, 0).focus()
    opened.keyboard.press("ArrowRight")
    expect_lit(opened, ".chart .bar[data-step]", "1")
    expect_lit_words(opened, "go up two squares")
    opened.keyboard.press("End")
    expect_lit(opened, ".chart .bar[data-step]", "5")
    opened.keyboard.press("Enter")
    opened.keyboard.press("ArrowLeft")  # what is pinned moves along
    expect(opened.locator("#person-1 .episode")).to_have_class(re.compile(r"\bpinned\b"))
    expect_lit(opened, "svg.map .step", "4")
    opened.keyboard.press("Escape")
    expect_lit(opened, ".chart .bar")
    opened.keyboard.press("Home")
    expect_lit(opened, ".chart .bar[data-step]", "0")
    opened.keyboard.press("Tab")  # one stop for all bars, then the list of turns and its words
    opened.keyboard.press("Tab")
    expect(opened.locator("#person-1 .said:focus")).to_have_count(1)
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press(" ")
    expect_lit(opened, ".chart .bar[data-step]", "1", "2")


def test_slider_and_play_walk_the_route(watched, address):
    page = watched.page()
    page.clock.install(time=0)
    go(page, address)
    page.clock.pause_at(3600)  # from now on time passes only where the test says so
    slider = page.get_by_label("Step along the route")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect_lit(page, ".chart .bar[data-step]", "1")
    expect(slider).to_have_attribute("aria-valuetext", re.compile("Step 2 of 6"))
    page.get_by_role("button", name="Step on").click()
    expect(slider).to_have_value("3")
    page.get_by_role("button", name="Play the route").click()
    expect_lit(page, ".chart .bar[data-step]", "3")
    page.clock.run_for(750)
    expect_lit(page, ".chart .bar[data-step]", "4")
    page.clock.run_for(5_000)
    expect_lit(page, ".chart .bar[data-step]", "5")
    expect(page.get_by_role("button", name="Play the route")).to_have_text("Play")


# ---------------------------------------------------------------------- numbers


def shown_channels(person: dict[str, Any]) -> set[str]:
    return {name for one in person["episodes"][0]["segments"] for name in one["effort"]}


def test_numbers_are_written_as_in_the_tables_above(opened):
    dice = random.Random(7)
    values = [0.0, 12.25, -12.25, 0.0625, 2.125, 9.995, 9.996, 999.5, 999.499, 1234.5, 1e15, 1e-4, 9.999e-5]
    values += [dice.choice((-1, 1)) * 10 ** dice.uniform(-8, 9) for _ in range(1500)]
    values += [round(dice.uniform(-50, 50), dice.randint(0, 4)) for _ in range(1500)]
    shares = [dice.uniform(-0.2, 1) for _ in range(500)] + [k / 2000 for k in range(-100, 500)]
    told = opened.evaluate(
        "([a, b]) => [a.map(fidmCharts.number), b.map(fidmCharts.percent)]", [values, shares]
    )
    assert told[0] == [number_text(value) for value in values]
    assert told[1] == [percent_text(share) for share in shares]


def test_residuals_have_the_colours_of_the_figures(opened):
    values = [-3.0, -math.log(4), -0.4, -0.01, 0.0, 0.3, 1.0, 5.0]
    for is_difference in (False, True):
        drawn = opened.evaluate(
            "([all, d]) => all.map((v) => fidmCharts.residualColour(v, d).match(/\\d+/g).map(Number))",
            [values, is_difference],
        )
        expected = 255 * residual_shade(np.array(values), is_difference=is_difference)[:, :3]
        assert np.abs(np.array(drawn) - expected).max() <= 2


def test_who_decided_and_why_is_shown_as_text(page, data, tmp_path):
    seen = copy.deepcopy(data)
    made = {"reviewer": "Ann", "at": "2026-01-05T10:20:30Z", "kind": "edit", "words": "corrected",
            "settles": False, "in_force": True, "comment": "<b>left</b>, not right"}  # fmt: skip
    hidden = {**made, "reviewer": "reviewer 2", "at": None, "comment": None, "in_force": False}
    seen["people"][0]["episodes"][0]["segments"][1]["reviews"] = [made, hidden]
    go(page, put(tmp_path, seen))
    decisions = page.locator("#person-1 .turn .decision")
    said = ["Ann, 2026-01-05 10:20 UTC: corrected (“<b>left</b>, not right”).",
            "reviewer 2: corrected, not in force."]  # fmt: skip
    expect(decisions).to_have_text(said)
    open_tables(page, "segments")
    row = page.locator("#person-1 table.segments tbody tr").nth(1)
    expect(row.locator("td").last).to_have_text(" ".join(said))
    expect(page.locator("#people b")).to_have_count(0)


def test_places_are_called_as_on_the_map_and_remarks_stay_in_the_background(page, data, tmp_path):
    named = copy.deepcopy(data)
    steps = named["people"][0]["episodes"][0]["steps"]
    steps["action"][0], steps["where"][0] = "BUY egg_tofu", "row 2, column 3, completed: egg_tofu, meat"
    steps["where"][1] = "row 2, column 4, completed: egg_tofu, meat"
    profile = named["people"][0]["profile"]
    for row, status in zip(profile, ("no_maximum", "few_observations", "alike"), strict=True):
        row["status"] = status
    go(page, put(tmp_path, named))
    open_tables(page, "steps")
    rows = page.locator("#person-1 table.steps tbody tr")
    expect(rows.nth(0).locator("td").nth(1)).to_have_text("BUY egg and tofu")
    expect(rows.nth(0).locator("td").nth(3)).to_have_text("row 2, column 3, completed: egg and tofu, meat")
    expect(rows.nth(1).locator("td").nth(3)).to_have_text("row 2, column 4")
    expect(page.locator("#person-1 .key").first).to_contain_text("N is up, S down")
    expect(page.locator("#person-1 table.profile td:nth-child(6)")).to_have_text(
        [row["rests_on"] for row in profile]
    )
    expect(page.locator("#person-1 > summary .flags")).to_have_text(
        "η: every choice was a best one, few observations"
    )
    expect(page.locator("#person-1 > summary .others")).to_have_text("1 remark on effort")


def test_infinite_numbers_are_shown_as_such(page, data, tmp_path):
    endless = copy.deepcopy(data)
    person = endless["people"][0]
    steps = person["episodes"][0]["steps"]
    steps["unexpectedness"][1], steps["probability"][1], steps["counts"][1] = None, 0.0, False
    person["profile"][0] |= {"estimate": None, "low": 12.0, "high": None, "status": "no_maximum"}
    endless["shared"]["parameters"][0] |= {"n": 2, "n_infinite": 1}
    go(page, put(tmp_path, endless))
    expect(page.locator("#person-1 > summary .eta")).to_have_text("η ∞ (from 12.0)")
    expect(page.locator("#person-1 table.profile td:nth-child(3)").first).to_have_text("∞")
    expect(page.locator("#person-1 .person-body")).to_contain_text(
        "finite estimate (action sensitivity η 2 of 3)"
    )
    bar(page, 1).hover()
    expect(page.locator("#person-1 .now")).to_contain_text(
        "N, probability 0.0 %, unexpectedness ∞, not counted"
    )
    open_tables(page, "steps")
    expect(page.locator("#person-1 table.steps tbody tr").nth(1).locator("td").nth(5)).to_have_text("∞")


def test_no_estimate_is_said_to_be_none(page, data, tmp_path):
    empty = copy.deepcopy(data)
    nothing = {"estimate": None, "low": None, "high": None, "percentile": None}
    own = empty["people"][0]["profile"]
    own[0] |= {**nothing, "status": "no_observation", "n": 0, "said": "Not estimated: no stated moves."}
    own[1] |= {**nothing, "status": "alike", "said": "Not estimated: no differences."}
    for cohort in empty["shared"]["parameters"][:2]:
        cohort |= dict.fromkeys(("p10", "median", "p90", "low", "high")) | {"n": 0}
    go(page, put(tmp_path, empty))
    expect(page.locator("#person-1 > summary .eta")).to_have_text("")
    expect(page.locator("#person-1 > summary .flags")).to_have_text("η: not estimated: no stated moves")
    for row, said in ((0, "Not estimated: no stated moves."), (1, "Not estimated: no differences.")):
        cells = page.locator("#person-1 table.profile tbody tr").nth(row).locator("td")
        expect(cells.nth(3)).to_have_text("–")
        strip = page.locator("#person-1 table.profile svg.strip").nth(row)
        expect(strip).to_have_attribute("aria-label", f"{own[row]['words']}: {said}")
        expect(strip.locator("circle, .interval, .middle80")).to_have_count(0)


def test_times_nobody_recorded_are_left_out(page, data, tmp_path):
    untimed = copy.deepcopy(data)
    episode = untimed["people"][0]["episodes"][0]
    for one in (*episode["turns"], *episode["segments"]):
        one |= {"start_s": None, "end_s": None}
    go(page, put(tmp_path, untimed))
    expect(page.locator("#person-1 .turn .when")).to_have_text([""] * len(episode["turns"]))


def test_a_very_long_id_makes_nothing_wider(page, data, tmp_path):
    long = copy.deepcopy(data)
    name = "P" * 900
    long["people"][0]["id"] = long["shared"]["people"][0]["id"] = name
    long["people"][0]["label"] = long["shared"]["people"][0]["label"] = "L" * 300
    estimates = next(
        table for section in long["sections"] for table in section["tables"] if table["id"] == "estimates"
    )
    estimates["rows"][0][0] = name
    go(page, put(tmp_path, long))
    expect(page.locator("#person-1 > summary .id")).to_have_text(name)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    cell = page.locator("#table-estimates tbody th").first
    assert len(cell.text_content()) == 60
    expect(cell).to_have_attribute("title", name)
    assert cell.evaluate(
        "e => e.closest('.table-holder').scrollWidth <= e.closest('.table-holder').clientWidth + 1"
    )


def test_figures_and_tables_show_the_data(opened, data):
    person = data["people"][0]
    steps = person["episodes"][0]["steps"]
    shown = [
        estimate_text(row["estimate"], row["low"], row["high"], row["status"]) for row in person["profile"]
    ]
    expect(opened.locator("table.profile td:nth-child(3)")).to_have_text(shown)
    finite = [row for row in person["profile"] if row["estimate"] is not None]
    assert finite
    expect(opened.locator("svg.strip .dot")).to_have_count(len(finite))
    open_tables(opened, "steps", "segments")
    rows = opened.locator("#person-1 .table tbody tr[data-step]")
    expect(rows.locator("th")).to_have_text([str(step) for step in steps["step"]])
    expect(rows.locator("td:nth-child(3)")).to_have_text(steps["action"])
    expect(rows.locator("td:nth-child(11)").nth(1)).to_have_text("go up two squares")
    counted = [
        known and value is not None
        for known, value in zip(steps["counts"], steps["unexpectedness"], strict=True)
    ]
    drawn = opened.locator("#person-1 .chart .bar[data-step]").evaluate_all(
        "all => all.map(e => [e.classList.contains('uncounted'), e.querySelector('.body').getAttribute('fill')])"
    )
    ways = opened.locator("#person-1 svg.map .way").evaluate_all(
        "all => all.map(e => e.getAttribute('stroke'))"
    )
    assert [not hatched for hatched, _ in drawn] == counted
    assert all(fill == way for (hatched, fill), way in zip(drawn, ways, strict=True) if not hatched)
    rows.nth(4).hover()
    expect_lit_words(opened, "go down one square")
    segments = opened.locator("#person-1 .table table.segments tbody tr[data-segment]")
    efforts = opened.locator("#person-1 .table table.efforts tbody tr")
    expect(segments).to_have_count(6)
    expect(efforts).to_have_count(6)
    first = person["episodes"][0]["segments"][0]["effort"]["characters"]
    cells = efforts.first.locator("td").all_text_contents()
    names = [channel["name"] for channel in data["shared"]["channels"]]
    at = 3 * [name for name in names if name in shown_channels(person)].index("characters")
    assert cells[at : at + 3] == [
        f"{first['observed']:.0f}", number_text(first["expected"]), number_text(first["residual"]),
    ]  # fmt: skip
    segments.nth(1).locator("button").click()
    expect_lit(opened, ".chart .bar[data-step]", "1", "2")
    expect(opened.locator("#person-1 .table tbody tr[data-step].lit")).to_have_count(2)


def test_without_words_map_or_dialogs_there_is_still_a_section(page, data, tmp_path):
    bare = copy.deepcopy(data)
    silent, unmapped, empty = (one["episodes"][0] for one in bare["people"])
    for turn in silent["turns"]:
        turn["text"] = None
    unmapped |= {"scene": None, "turns": []}
    empty |= {"steps": {name: [] for name in empty["steps"]}, "segments": [], "turns": []}
    page.goto(put(tmp_path, bare))
    for n in (1, 2, 3):
        page.locator(f"#person-{n} > summary").click()
        expect(page.locator(f"#person-{n} .episode")).to_be_visible()
    expect(page.locator("#person-1 .turn .when").first).to_have_text("0:00–0:02")
    expect(page.locator("#person-1 .turn .text")).to_have_count(0)
    bar(page, 1).hover()
    expect_lit(page, ".turn", "1", by="data-segment")
    expect(page.locator("#person-2 .chart .bar").first).to_be_visible()
    expect(page.locator("#person-2 svg.map, #person-2 .turns")).to_have_count(0)
    expect(page.locator("#person-3 .episode")).to_contain_text("no steps")


# ---------------------------------------------------------------------- the list


@pytest.fixture(scope="module")
def crowd(data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of 400 people, made of the three."""
    many = copy.deepcopy(data)
    many["people"], many["shared"]["people"], many["shared"]["label"] = [], [], "diagnosis"
    for n in range(1, 401):
        person, row = data["people"][n % 3], data["shared"]["people"][n % 3]
        values = row["values"] | {"action_sensitivity": None if n == 7 else 1000.0 - n}
        about = {"id": f"Q{n:03d}", "label": ("normal", "mci")[n % 2]}
        many["people"].append(person | about)
        many["shared"]["people"].append(
            row | about | {"n": n, "values": values, "flags": ["odd"] if n % 5 == 0 else []}
        )
    return put(tmp_path_factory.mktemp("crowd"), many)


def expect_shown(page: Page, *wanted: str) -> None:
    """Wait until the list has these people in this order, and nobody else."""
    expect(page.locator("details.person:not([hidden]) > summary > :first-child")).to_have_text(list(wanted))


def test_people_are_found_filtered_and_sorted(watched, crowd):
    page = watched.page()
    page.add_init_script(
        "window.parsed = 0; const p = JSON.parse; JSON.parse = t => (window.parsed += 1, p(t));"
    )
    page.goto(crowd)
    count = page.locator(".count")
    expect(count).to_have_text("400 people")
    page.get_by_label("Find by id").fill("q03")
    expect(count).to_have_text("10 of 400 people")
    page.get_by_label("Diagnosis").select_option(label="mci")
    page.get_by_label("Remarks").select_option(label="odd")
    expect_shown(page, "Q035")
    page.get_by_label("Remarks").select_option(label="without remarks")
    expect_shown(page, "Q031", "Q033", "Q037", "Q039")
    page.get_by_label("Sort by").select_option("action_sensitivity")
    expect_shown(page, "Q039", "Q037", "Q033", "Q031")
    page.get_by_label("Order").select_option("down")
    expect_shown(page, "Q031", "Q033", "Q037", "Q039")
    page.get_by_label("Find by id").fill("")
    last = page.locator("details.person:not([hidden])").last.locator("> summary > :first-child")
    expect(last).to_have_text("Q007")  # no number: last either way
    page.get_by_label("Find by id").fill("nobody")
    expect(count).to_have_text("0 of 400 people")
    expect(page.locator(".person-body")).to_have_count(0)
    assert page.evaluate("window.parsed") == 1


# ---------------------------------------------------------------------- paper, and everybody


A4 = (pytest.approx(595.9, abs=1), 0)


def sizes_of(sheet: PageObject, beginning: str) -> list[float]:
    """In which size, in points, the texts stand that begin so."""
    found: list[float] = []

    def see(text: str, cm: list[float], tm: list[float], font: Any, size: float) -> None:
        if text.strip().startswith(beginning):
            a, b = tm[0] * cm[0] + tm[1] * cm[2], tm[0] * cm[1] + tm[1] * cm[3]
            found.append(size * math.hypot(a, b))

    sheet.extract_text(visitor_text=see)
    return found


WIDER = """() => [...document.querySelectorAll('main *, header *')]
  .filter(e => !e.closest('svg') && e.getClientRects().length)
  .filter(e => { const box = e.getBoundingClientRect(); return box.right > innerWidth + 1 || box.left < -1; })
  .map(e => `${e.tagName}.${e.className} ${Math.round(e.getBoundingClientRect().right)}`)"""


def test_nothing_is_wider_than_the_screen_or_the_paper(page, wide):
    page.goto(wide)
    page.get_by_label("with tables").check()
    page.get_by_role("button", name="Open all for printing").click()
    expect(page.get_by_text("open. Print")).to_be_visible()
    expect_filled(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    inside = "all => all.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.ariaLabel)"
    assert page.eval_on_selector_all(".table-holder", inside) == []
    try:
        page.emulate_media(media="print")
        page.set_viewport_size({"width": PAPER_PX, "height": 1000})
        page.wait_for_function("wide => innerWidth === wide && matchMedia('print').matches", arg=PAPER_PX)
        assert page.evaluate(WIDER) == []
    finally:
        page.emulate_media(media="null")
        page.set_viewport_size({"width": 1366, "height": 768})


PAPER_PX = math.floor((210 - 28) / 25.4 * 96)
"""The width of the text on A4."""


@pytest.fixture(scope="module")
def wide(data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with all that makes tables wide: a label, long ids, long intervals, six effort channels."""
    broad = copy.deepcopy(data)
    tables = {one["id"]: one for section in broad["sections"] for one in section["tables"]}
    estimates = tables["estimates"]
    estimates["columns"].insert(1, {"name": "d", "words": "diagnosis", "unit": None, "align": "left"})
    for row in estimates["rows"]:
        row.insert(1, "major_ncd")
        row[0] = "P0000001"
        row[2:] = [-0.0123456 if isinstance(cell, float) else cell for cell in row[2:]]
    known = broad["shared"]["channels"]
    known += [{**known[0], "name": f"c{i}", "words": f"response time {i}"} for i in range(6 - len(known))]
    for person in broad["people"]:
        for segment in person["episodes"][0]["segments"]:
            effort = {"observed": 12.3456, "expected": 0.00123456, "residual": -0.0123456, "own_z": 0.0}
            segment["effort"] = {channel["name"]: effort for channel in known}
            segment["doubts"] = ["a shelf or wall is in the way before the number of squares is reached"]
    return put(tmp_path_factory.mktemp("wide"), broad)


def test_every_printed_page_says_what_a_report_is_not(page, address, data):
    page.goto(address)
    page.get_by_label("with tables").check()
    page.get_by_role("button", name="Open all for printing").click()
    expect(page.get_by_text("3 open.")).to_be_visible()
    expect(page.locator(".episode")).to_have_count(3)
    expect_filled(page)
    expect(page.locator("#person-1 .table tbody tr[data-step]").first).to_be_visible()
    printed = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True)))
    texts = [sheet.extract_text() for sheet in printed.pages]
    assert len(texts) > 3
    assert all(STATEMENT in text for text in texts)
    assert sum("go down one square" in text for text in texts) >= 1
    assert all((float(sheet.mediabox.width), sheet.rotation) == A4 for sheet in printed.pages)
    sizes = [size for sheet in printed.pages for size in sizes_of(sheet, "Every person has an action")]
    assert sizes
    assert min(sizes) >= 8.5  # a browser shrinks all pages if anything is wider than one
    whole = " ".join(" ".join(texts).split())
    for person in data["people"]:
        for segment in person["episodes"][0]["segments"]:
            for seen in list(segment["effort"].values())[-1:]:  # a segment in doubt without a move has none
                assert number_text(seen["residual"]) in whole
    page.get_by_role("button", name="Close all").click()
    expect(page.locator("details.person[open]")).to_have_count(0)


def test_without_margin_boxes_the_statement_is_at_the_foot_of_the_text(page, address):
    page.goto(address)
    page.evaluate("document.documentElement.classList.remove('margin-boxes')")
    page.locator("#person-3 > summary").click()
    expect(page.locator("#person-3 .episode")).to_be_visible()
    printed = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True)))
    assert all(sheet.extract_text().count(STATEMENT) >= 2 for sheet in printed.pages)


def test_nobody_is_kept_out(opened, axe: Callable[[Page], list[str]]):
    open_tables(opened, "steps", "segments")
    bar(opened, 1).click()
    expect_lit_words(opened, "go up two squares")
    assert axe(opened) == []


def test_scripts_have_no_way_to_make_text_into_markup():
    folder = Path(fidm.__file__).parent / "report" / "static"
    scripts = "\n".join(path.read_text("utf-8") for path in folder.glob("*.js"))
    risky = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "fetch(")
    assert [name for name in risky if name in scripts] == []
