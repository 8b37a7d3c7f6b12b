"""A report in a real browser: people's sections, what belongs together in them, the list, paper."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from pypdf import PdfReader

import fidm
from fidm.grounding.ground import ground
from fidm.grounding.store import write_grounding
from fidm.report.html import to_html
from fidm.report.report import build_report
from fidm.talk import Transcript, Turn

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
        turns.append(Turn("PAR", 4.0 * i, 4.0 * i + 2.0, text, "participant"))
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
    return build_report(study, classify=False).data


@pytest.fixture(scope="module")
def address(data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    return put(tmp_path_factory.mktemp("page"), data)


def put(folder: Path, report: dict[str, Any]) -> str:
    path = folder / "report.html"
    path.write_text(to_html(report), "utf-8")
    return path.as_uri()


@pytest.fixture
def opened(page: Page, address: str) -> Page:
    page.goto(f"{address}#person-1")
    expect(page.locator("#person-1 .episode")).to_be_visible()
    return page


def bar(page: Page, i: int) -> Locator:
    return page.locator(f"#person-1 .chart .bar[data-step='{i}']")


def words(page: Page, i: int) -> Locator:
    return page.locator(f"#person-1 .said[data-steps~='{i}']")


def lit(page: Page, kind: str) -> list[str]:
    """The steps or segments of one kind of element that are lit."""
    return page.eval_on_selector_all(
        f"#person-1 {kind}.lit", "all => all.map(e => e.dataset.step ?? e.dataset.steps ?? e.dataset.segment)"
    )


def lit_words(page: Page) -> list[str]:
    return page.locator("#person-1 .said.lit").all_text_contents()


# ---------------------------------------------------------------------- opening


def test_a_report_opens_without_a_network_and_renders_nobody_before_being_asked(watched, address):
    context = watched.context(offline=True)
    page = context.new_page()
    page.add_init_script(
        "window.parsed = 0; const p = JSON.parse; JSON.parse = t => (window.parsed += 1, p(t));"
    )
    page.goto(address)
    assert page.locator("details.person").count() == 3
    assert page.locator(".person-body").count() == 0
    assert page.evaluate("window.parsed") == 1  # what everybody shares, and nobody's own part
    page.locator("#person-2 > summary").click()
    expect(page.locator("#person-2 .episode")).to_be_visible()
    assert (page.locator(".person-body").count(), page.evaluate("window.parsed")) == (1, 2)
    page.locator("#person-2 > summary").click()
    page.locator("#person-2 > summary").click()
    assert page.locator("#person-2 .person-body").count() == 1  # and not once more
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
    assert lit_words(opened) == ["go up two squares"]
    assert lit(opened, "svg.map .step") == lit(opened, ".chart .bar[data-step]") == ["1"]
    assert set(lit(opened, ".chart .bar[data-segment]")) == {"1"}
    assert opened.locator("#person-1 .turn.lit .text").all_text_contents() == [ASTRAL]
    expect(opened.locator("#person-1 .now")).to_contain_text("Step 2 of 6, segment 2: N")
    assert opened.locator("#person-1 .figure").count() == 1
    opened.mouse.move(0, 0)
    assert lit_words(opened) == []
    assert opened.locator("#person-1 .figure").count() == 0


def test_pointing_at_words_lights_their_steps(opened):
    words(opened, 1).hover()
    assert lit(opened, "svg.map .step") == lit(opened, ".chart .bar[data-step]") == ["1", "2"]
    expect(opened.locator("#person-1 .now")).to_contain_text("Segment 2, steps 2–3: MOVE up 2")


def test_pointing_at_the_map_and_at_effort_lights_the_rest(opened):
    opened.locator("#person-1 svg.map .step[data-step='4'] .reach").hover(force=True)
    assert lit_words(opened) == ["go down one square"]
    opened.locator("#person-1 .effort .bar[data-segment='1']").first.hover()
    assert lit(opened, ".chart .bar[data-step]") == ["1", "2"]
    assert lit_words(opened) == ["go up two squares"]


def test_what_was_said_is_text_and_nothing_else(opened, data):
    assert opened.locator("#person-1 .turn .text").all_text_contents()[::2] == list(SAID)
    assert opened.evaluate("window.hacked") is None
    assert opened.locator("#people script, #people b").count() == 0
    expect(opened.locator("#person-2 > summary")).to_contain_text("<b>P02</b>")
    bar(opened, STEP_OF["SCRIPT"]).hover()
    assert lit_words(opened) == ["go up one square"]
    hebrew = opened.locator("#person-1 .turn .text").nth(6)
    assert hebrew.evaluate("e => [getComputedStyle(e).direction, e.dir, e.lang]") == ["rtl", "auto", "en"]


def test_a_click_pins_and_releases(opened):
    bar(opened, 4).click()
    bar(opened, 0).hover()
    assert lit(opened, ".chart .bar[data-step]") == ["4"]
    words(opened, 0).click()
    assert lit(opened, ".chart .bar[data-step]") == ["0"]
    words(opened, 0).click()
    opened.mouse.move(0, 0)
    assert lit(opened, ".chart .bar") == []
    bar(opened, 4).click()
    opened.mouse.move(0, 0)
    opened.get_by_role("button", name="Release the pinned step").click()
    assert lit(opened, ".chart .bar") == []


def test_a_click_on_the_map_goes_on_with_keys(opened):
    opened.locator("#person-1 svg.map .step[data-step='4'] .reach").click(force=True)
    opened.mouse.move(0, 0)
    opened.keyboard.press("ArrowLeft")
    assert lit(opened, "svg.map .step") == ["3"]
    opened.keyboard.press("Escape")
    assert lit(opened, "svg.map .step") == []


def test_touching_works(watched, address):
    page = watched.page(has_touch=True, viewport={"width": 800, "height": 1100})
    page.goto(f"{address}#person-1")
    words(page, 4).tap()
    assert lit(page, "svg.map .step") == ["4"]
    bar(page, 0).tap()
    assert lit_words(page) == ["go left one square"]


def test_everything_is_reached_with_the_keyboard(opened):
    bar(opened, 0).focus()
    opened.keyboard.press("ArrowRight")
    assert lit(opened, ".chart .bar[data-step]") == ["1"]
    assert lit_words(opened) == ["go up two squares"]
    opened.keyboard.press("End")
    assert lit(opened, ".chart .bar[data-step]") == ["5"]
    opened.keyboard.press("Enter")
    opened.keyboard.press("ArrowLeft")  # what is pinned moves along
    assert "pinned" in opened.locator("#person-1 .episode").get_attribute("class")
    assert lit(opened, "svg.map .step") == ["4"]
    opened.keyboard.press("Escape")
    assert lit(opened, ".chart .bar") == []
    opened.keyboard.press("Home")
    assert lit(opened, ".chart .bar[data-step]") == ["0"]
    opened.keyboard.press("Tab")  # one stop for all bars, then the list of turns and its words
    opened.keyboard.press("Tab")
    assert opened.evaluate("document.activeElement.className.split(' ')[0]") == "said"
    opened.keyboard.press("ArrowRight")
    opened.keyboard.press(" ")
    assert lit(opened, ".chart .bar[data-step]") == ["1", "2"]


def test_slider_and_play_walk_the_route(watched, address):
    page = watched.page()
    page.clock.install()
    page.goto(f"{address}#person-1")
    slider = page.get_by_label("Step along the route")
    slider.focus()
    page.keyboard.press("ArrowRight")
    assert lit(page, ".chart .bar[data-step]") == ["1"]
    assert "Step 2 of 6" in (slider.get_attribute("aria-valuetext") or "")
    page.get_by_role("button", name="Step on").click()
    assert slider.input_value() == "3"
    page.get_by_role("button", name="Play the route").click()
    assert lit(page, ".chart .bar[data-step]") == ["3"]
    page.clock.run_for(750)
    assert lit(page, ".chart .bar[data-step]") == ["4"]
    page.clock.run_for(5_000)
    assert lit(page, ".chart .bar[data-step]") == ["5"]
    expect(page.get_by_role("button", name="Play the route")).to_have_text("Play")


# ---------------------------------------------------------------------- numbers


def test_figures_and_tables_show_the_data(opened, data):
    person = data["people"][0]
    steps = person["episodes"][0]["steps"]
    estimates = [
        float(text.replace("−", "-"))
        for text in opened.locator("table.profile td:nth-child(3)").all_text_contents()
    ]
    assert estimates == pytest.approx([row["estimate"] for row in person["profile"]], rel=0.05)
    assert opened.locator("svg.strip .dot").count() == len(person["profile"])
    opened.get_by_text("Table of 6 steps").click()
    opened.get_by_text("Table of 6 segments").click()
    rows = opened.locator("#person-1 .table tbody tr[data-step]")
    assert rows.locator("th").all_text_contents() == [str(step) for step in steps["step"]]
    assert rows.locator("td:nth-child(3)").all_text_contents() == steps["action"]
    assert rows.locator("td:nth-child(11)").all_text_contents()[1] == "go up two squares"
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
    assert lit_words(opened) == ["go down one square"]
    segments = opened.locator("#person-1 .table tbody tr[data-segment]")
    segments.nth(1).locator("button").click()
    assert lit(opened, ".chart .bar[data-step]") == ["1", "2"]
    assert rows.evaluate_all("all => all.filter(e => e.classList.contains('lit')).length") == 2


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
    expect(page.locator("#person-1 .turn .when").first).to_have_text("0:00–0:02")
    assert page.locator("#person-1 .turn .text").count() == 0
    bar(page, 1).hover()
    assert lit(page, ".turn") == ["1"]
    expect(page.locator("#person-2 .chart .bar").first).to_be_visible()
    assert page.locator("#person-2 svg.map, #person-2 .turns").count() == 0
    expect(page.locator("#person-3 .episode")).to_contain_text("There are no steps in this episode.")


# ---------------------------------------------------------------------- the list


@pytest.fixture(scope="module")
def crowd(data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page of 400 people, made of the three."""
    many = copy.deepcopy(data)
    many["people"], many["shared"]["people"] = [], []
    for n in range(1, 401):
        person, row = data["people"][n % 3], data["shared"]["people"][n % 3]
        values = row["values"] | {"action_sensitivity": None if n == 7 else 1000.0 - n}
        about = {"id": f"Q{n:03d}", "label": ("normal", "mci")[n % 2]}
        many["people"].append(person | about)
        many["shared"]["people"].append(
            row | about | {"n": n, "values": values, "flags": ["odd"] if n % 5 == 0 else []}
        )
    return put(tmp_path_factory.mktemp("crowd"), many)


def shown(page: Page) -> list[str]:
    return page.eval_on_selector_all(
        "details.person:not([hidden])",
        "all => all.map(e => e.querySelector('summary').firstElementChild.textContent)",
    )


def test_people_are_found_filtered_and_sorted(page, crowd):
    page.add_init_script(
        "window.parsed = 0; const p = JSON.parse; JSON.parse = t => (window.parsed += 1, p(t));"
    )
    page.goto(crowd)
    count = page.locator(".count")
    expect(count).to_have_text("400 people")
    page.get_by_label("Find by id").fill("q03")
    expect(count).to_have_text("10 of 400 people")
    page.get_by_label("Status").select_option(label="mci")
    page.get_by_label("Remarks").select_option(label="odd")
    assert shown(page) == ["Q035"]
    page.get_by_label("Remarks").select_option(label="without remarks")
    assert shown(page) == ["Q031", "Q033", "Q037", "Q039"]
    page.get_by_label("Sort by").select_option("action_sensitivity")
    assert shown(page) == ["Q039", "Q037", "Q033", "Q031"]
    page.get_by_label("Order").select_option("down")
    assert shown(page) == ["Q031", "Q033", "Q037", "Q039"]
    page.get_by_label("Find by id").fill("")
    assert shown(page)[-1] == "Q007"  # no number: last either way
    page.get_by_label("Find by id").fill("nobody")
    expect(count).to_have_text("0 of 400 people")
    assert (page.evaluate("window.parsed"), page.locator(".person-body").count()) == (1, 0)


# ---------------------------------------------------------------------- paper, and everybody


def test_every_printed_page_says_what_a_report_is_not(page, address):
    page.goto(address)
    page.get_by_label("with tables").check()
    page.get_by_role("button", name="Open all for printing").click()
    expect(page.get_by_text("3 open.")).to_be_visible()
    assert page.locator(".episode").count() == 3
    expect(page.locator("#person-1 .table tbody tr[data-step]").first).to_be_visible()
    printed = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True)))
    texts = [sheet.extract_text() for sheet in printed.pages]
    assert len(texts) > 3
    assert all(STATEMENT in text for text in texts)
    assert sum("go down one square" in text for text in texts) >= 1
    page.get_by_role("button", name="Close all").click()
    assert page.locator("details.person[open]").count() == 0


def test_without_margin_boxes_the_statement_is_at_the_foot_of_the_text(page, address):
    page.goto(address)
    page.evaluate("document.documentElement.classList.remove('margin-boxes')")
    page.locator("#person-3 > summary").click()
    printed = PdfReader(io.BytesIO(page.pdf(prefer_css_page_size=True)))
    assert all(sheet.extract_text().count(STATEMENT) >= 2 for sheet in printed.pages)


def test_nobody_is_kept_out(opened, axe: Callable[[Page], list[str]]):
    opened.get_by_text("Table of 6 steps").click()
    opened.get_by_text("Table of 6 segments").click()
    bar(opened, 1).click()
    assert axe(opened) == []


def test_scripts_have_no_way_to_make_text_into_markup():
    folder = Path(fidm.__file__).parent / "report" / "static"
    scripts = "\n".join(path.read_text("utf-8") for path in folder.glob("*.js"))
    risky = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(", "fetch(")
    assert [name for name in risky if name in scripts] == []
