"""The review page in a real browser, on a real server in a process of its own."""

import re
import signal
import wave
from contextlib import contextmanager

import polars as pl
import pytest
from playwright.sync_api import expect
from review_studies import STRANGE, Server, make_study, make_talks

import fidm
from fidm.cli.main import main
from fidm.grounding.review.trail import Trail

WAY = ["go left one square and up two squares", "go up", "go to the meat and take it"]
SAID = {f"P{n}": WAY for n in (1, 3, 4, 6, 7, 8)} | {
    "P5": [WAY[0], "we could go up", WAY[2]],
    "P2": ["go left one square", STRANGE, "go up one square"],
}


NEVER_LOOKS = "window.setInterval = () => 0;"
"""Pages look every 15 s whether others decided anything, which on a busy machine is in the middle of a test."""


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return make_study(tmp_path_factory.mktemp("study"), SAID)


@pytest.fixture(scope="module")
def server(study):
    started = Server(study)
    yield started
    said, code = started.stop()
    assert code == 0, said
    assert "go up" not in said


@pytest.fixture
def start():
    """Starts servers; those that still run at the end of the test are stopped."""
    started = []

    def begin(*options):
        started.append(Server(*options))
        return started[-1]

    yield begin
    for one in started:
        one.stop()


def visit(watched, address, **options):
    page = watched.page(**options)
    page.add_init_script(NEVER_LOOKS)
    page.goto(address)
    return page


def enter(watched, server, who="Ada", find="", **options):
    """Open the page as somebody, with the list cut down to one participant."""
    page = visit(watched, server.address, **options)
    page.fill("#who-name", who)
    page.press("#who-name", "Enter")
    expect(page.locator("#count")).to_contain_text("segments")
    page.select_option("#order", "order")
    expect(page.locator(".row .what")).to_have_text([f"{one} · {n}" for one in SAID for n in (1, 2, 3)])
    if find:
        search(page, find)
    shown(page, f"{find or 'P1'}, segment 1 of 3")
    return page


def search(page, who):
    """Cut the list down to one participant."""
    page.fill("#search", who)
    page.locator("#search").blur()
    expect(page.locator(".row")).to_have_count(3)
    expect(page.locator(".row .what").first).to_have_text(f"{who} · 1")


def shown(page, title):
    """Wait until a segment is the one that is shown: until then the one before is, and nothing can be decided."""
    expect(page.locator("#talk-title")).to_have_text(title)
    expect(page.locator("#accept")).to_be_enabled()


def said_last(page, words):
    expect(page.locator("#said")).to_contain_text(words)


def colour(page, name):
    return page.locator(name).evaluate("element => getComputedStyle(element).backgroundColor")


def decisions(study, participant):
    return [one for one in Trail(study).decisions if one.participant == participant]


def test_open_filter_and_step_through(watched, server):
    page = enter(watched, server)
    assert server.token not in page.url
    assert not [url for url in watched.requests if server.token in url]
    assert {url.split("/")[2] for url in watched.requests if not url.startswith("data:")} == {
        f"127.0.0.1:{server.port}"
    }
    expect(page.locator(".row")).to_have_count(24)
    unlike = page.locator(".row", has=page.locator(".mark:not(.needs_review)"))
    page.select_option("#status", "needs_review")
    expect(unlike).to_have_count(0)
    expect(page.locator("#count")).to_have_text(re.compile(r"^[1-9]\d* of 24 segments$"))
    page.select_option("#status", "")
    expect(page.locator(".row")).to_have_count(24)
    page.select_option("#which", "doubts")
    expect(unlike).to_have_count(0)
    expect(page.locator(".row")).not_to_have_count(0)
    page.fill("#search", "nobody")
    expect(page.locator(".rows")).to_contain_text("Nothing here")
    expect(page.locator("#accept")).to_be_disabled()
    page.select_option("#which", "")
    page.fill("#search", "p6")
    page.locator(".row").nth(0).click()
    shown(page, "P6, segment 1 of 3")
    expect(page.locator(".turn.own .text")).to_have_text(WAY[0])
    expect(page.locator("svg.map .walk .step")).to_have_count(3)
    figure = page.locator("svg.map .figure")
    start = figure.get_attribute("transform")
    page.click("#on")
    expect(page.locator("#at-words")).to_have_text("1 of 3: W")
    expect(figure).not_to_have_attribute("transform", start)
    expect(page.locator(".used.lit")).to_contain_text("left one square")
    page.click("#play")
    expect(page.locator("#at-words")).to_have_text("3 of 3: N")
    expect(page.locator(".used.lit")).to_contain_text("up two squares")
    page.locator(".turn.elsewhere", has_text="go up").click()
    shown(page, "P6, segment 2 of 3")
    expect(page.locator("#doubts")).to_contain_text("nobody said how far")


def test_what_frees_most_moves_comes_first_and_says_how_many(watched, tmp_path, start, axe):
    way = ["go left one square and up three squares", "go left", "go right one square", "go right one square"]
    server = start(make_study(tmp_path / "study", {"P1": WAY, "P2": way}))
    page = visit(watched, server.address)
    page.fill("#who-name", "Ada")
    page.press("#who-name", "Enter")
    expect(page.locator("#count")).to_have_text("7 segments")
    order = page.locator("#order")
    expect(order.locator("option").nth(2)).to_have_text("frees most moves first")
    order.focus()
    order.press("f")  # by the keyboard alone
    expect(order).to_have_value("frees")
    first = page.locator(".row").first
    expect(first.locator(".what")).to_have_text("P2 · 2")
    expect(first.locator(".frees")).to_have_text("frees 2 later moves")
    expect(first).to_have_attribute("aria-label", re.compile("needs review, frees 2 later moves"))
    expect(page.locator(".row .frees")).to_have_count(1)
    shown(page, "P2, segment 2 of 4")
    expect(page.locator("#status-line")).to_contain_text("frees 2 later moves")
    assert axe(page) == []
    page.reload()
    shown(page, "P2, segment 2 of 4")
    expect(order).to_have_value("frees")
    page.locator("#segment").press("a")
    said_last(page, "Accepted")
    expect(page.locator(".row .frees")).to_have_count(0)


def test_pointing_at_a_move_lights_its_words_and_back(watched, server):
    page = enter(watched, server, find="P6")
    page.locator("svg.map .walk .step .reach").nth(2).hover(force=True)
    expect(page.locator(".used.lit")).to_have_text("up two squares")
    expect(page.locator(".chip.lit")).to_have_text("MOVE up 2")
    page.locator(".used", has_text="left one square").hover()
    expect(page.locator("svg.map .walk .step.lit")).to_have_count(1)
    page.locator("#talk-title").hover()
    expect(page.locator(".lit")).to_have_count(0)


def test_edit_by_clicking_and_find_it_after_reload(watched, server, study):
    page = enter(watched, server, find="P1")
    page.click("#edit")
    expect(page.locator("#save")).to_be_disabled()
    page.fill("#route", "")
    expect(page.locator("#route-said")).to_contain_text("no moves")
    figure = page.locator("svg.map .figure")
    here = figure.get_attribute("transform")
    x, y = (float(part) for part in re.findall(r"[\d.]+", here))
    left = page.locator(f'svg.map .cell[x="{x - 20 - 80:g}"][y="{y - 20:g}"]')
    left.click()
    expect(page.locator("#route")).to_have_value("MOVE left 2")
    page.locator('svg.map [data-place="meat"]').first.click()
    expect(page.locator("#route")).to_have_value("MOVE left 2; GOTO meat")
    expect(page.locator("#changes")).to_contain_text("also changes")
    page.locator('svg.map [data-place="meat"]').first.click()
    expect(page.locator("#route")).to_have_value("MOVE left 2; GOTO meat; BUY meat")
    expect(page.locator("#route-said")).to_contain_text("BUY")
    page.click("#undo")
    expect(page.locator("#route")).to_have_value("MOVE left 2; GOTO meat")
    expect(page.locator("#route-said")).not_to_contain_text("BUY")
    expect(page.locator("svg.map .step.inferred")).not_to_have_count(0)
    page.fill("#comment", "went to the meat")
    page.click("#save")
    said_last(page, "Edited: P1, segment 1. It also changed")
    shown(page, "P1, segment 2 of 3")
    page.reload()
    expect(page.locator("#reviewer")).to_have_text("Ada")
    search(page, "P1")
    page.locator(".row").nth(0).click()
    expect(page.locator("#verdicts")).to_contain_text(
        "You edited it MOVE left 2; GOTO meat – went to the meat"
    )
    expect(page.locator("#status-line")).to_contain_text("reviewed")
    [made] = decisions(study, "P1")
    assert (made.kind, made.reviewer, made.new.program) == ("edit", "Ada", "MOVE left 2; GOTO meat")


def test_only_legal_edits_can_be_saved(watched, server, study):
    page = enter(watched, server, find="P7")
    page.click("#edit")
    page.fill("#route", "MOVE up 9")
    expect(page.locator("#route-said")).to_contain_text("Legal there")
    expect(page.locator("#save")).to_be_disabled()
    assert colour(page, "#save") != colour(page, "#accept")  # it looks as disabled as it is
    expect(page.locator("#legal button:enabled")).to_have_count(0)
    expect(page.locator(".earlier-version")).to_have_count(3)  # buttons, changes and map step back
    page.locator('svg.map [data-place="meat"]').first.click()
    expect(page.locator("#trouble")).to_contain_text("Mend the route first")
    expect(page.locator("#route")).to_have_value("MOVE up 9")
    page.press("#route", "Enter")
    expect(page.locator("#trouble")).to_contain_text("cannot be done")
    page.locator(".row").nth(2).click()
    expect(page.locator("#trouble")).to_contain_text("Save the edit or leave it")
    page.click("#undo")
    expect(page.locator("#route")).to_have_value("MOVE left 1; MOVE up 2")
    expect(page.locator(".earlier-version")).to_have_count(0)
    expect(page.locator("#trouble")).to_be_empty()
    page.fill("#route", "FLY home")
    expect(page.locator("#route-said")).to_contain_text("Instruction 1, “FLY home”, has no known name")
    page.press("#route", "Enter")
    expect(page.locator("#trouble")).to_contain_text("FLY home")
    page.click("#leave")
    expect(page.locator("#chips")).to_be_visible()
    expect(page.locator("#trouble")).to_be_empty()  # it is over
    assert decisions(study, "P7") == []


def test_an_unsaved_edit_keeps_its_place_whatever_is_clicked_or_filtered(watched, server):
    page = enter(watched, server, "Gus", "P2")
    page.locator(".row").nth(2).click()
    shown(page, "P2, segment 3 of 3")
    page.click("#edit")
    page.fill("#route", "")
    expect(page.locator("#route-said")).to_have_text("no moves")
    marked = page.locator('.row[aria-current="true"] .what')

    def stays(*at):
        expect(page.locator("#trouble")).to_contain_text("Save the edit")
        expect(marked).to_have_text(list(at))
        expect(page.locator("#talk-title")).to_have_text("P2, segment 3 of 3")
        expect(page.locator("#route")).to_be_visible()
        expect(page.locator("#route")).to_have_value("")

    page.locator(".row").nth(0).click()
    stays("P2 · 3")
    page.locator(".turn.elsewhere .go").first.click()
    stays("P2 · 3")
    page.fill("#search", "P6")
    expect(page.locator(".row .what").first).to_have_text("P6 · 1")
    stays()
    search(page, "P2")
    stays("P2 · 3")
    page.fill("#search", "nobody")
    expect(page.locator(".rows")).to_contain_text("Nothing here")
    stays()
    page.click("#save")
    expect(page.locator("#said")).to_have_text("Edited: P2, segment 3.")
    shown(page, "P2, segment 3 of 3")
    search(page, "P2")
    expect(marked).to_have_text("P2 · 3")


def test_keys_never_walk_into_a_shelf(watched, server):
    page = enter(watched, server, find="P7")
    page.click("#edit")
    page.fill("#route", "")  # at once: what is typed before the first answer of the server stays
    expect(page.locator("#route-said")).to_contain_text("no moves")
    page.locator("#map").focus()
    for key in ("ArrowUp", "ArrowLeft", "ArrowDown"):  # a wall, a square, a wall
        page.keyboard.press(key)
    expect(page.locator("#route")).to_have_value("MOVE left 1")
    expect(page.locator("#route-said")).to_have_text("W")
    expect(page.locator("#trouble")).to_have_text("A shelf or wall is there.")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#route")).to_have_value("MOVE left 2")
    expect(page.locator("#trouble")).to_be_empty()
    for value in ("MOVE left 1", "", "MOVE left 1; MOVE up 2"):
        page.keyboard.press("Backspace")
        expect(page.locator("#route")).to_have_value(value)


def test_what_was_decided_is_said_after_going_on_to_another_dialog(watched, server):
    page = enter(watched, server, "Lee")
    page.locator(".row", has_text="P6 · 3").click()
    shown(page, "P6, segment 3 of 3")
    page.click("#accept")
    shown(page, "P7, segment 1 of 3")
    said_last(page, "Accepted: P6, segment 3.")
    page.keyboard.press("j")
    shown(page, "P7, segment 2 of 3")
    expect(page.locator("#said")).to_be_empty()


def test_a_comment_waits_at_its_segment(watched, server):
    page = enter(watched, server, find="P7")
    page.fill("#comment", "hard to hear")
    page.locator(".row").nth(1).click()
    shown(page, "P7, segment 2 of 3")
    expect(page.locator("#comment")).to_have_value("")
    page.locator(".row").nth(0).click()
    expect(page.locator("#comment")).to_have_value("hard to hear")
    page.on("dialog", lambda asked: asked.dismiss())  # a reload asks first
    assert page.evaluate("!window.dispatchEvent(new Event('beforeunload', { cancelable: true }))")
    page.fill("#comment", "")
    assert page.evaluate("window.dispatchEvent(new Event('beforeunload', { cancelable: true }))")


HOLD = """path => {
    const real = window.fetch;
    const told = new Promise(done => { window.letGo = () => { window.fetch = real; done(); }; });
    window.fetch = (...asked) => (asked[0].startsWith(path) ? told.then(() => real(...asked)) : real(...asked));
}"""


@contextmanager
def held(page, path):
    """What the page asks for at one path in the meantime is answered at the end."""
    page.evaluate(HOLD, path)
    yield
    with page.expect_response(f"**{path}*") as answer:
        page.evaluate("letGo()")
    answer.value.finished()
    page.evaluate("fetch('/dom.js').then(found => found.text())")  # behind it, so that it has been read


def test_while_something_is_on_its_way_nothing_is_lost_or_mistaken_for_it(watched, server, study):
    page = enter(watched, server, "Flo", "P7")
    with held(page, "/api/dialog"):
        page.fill("#search", "P6")
        page.fill("#search", "nobody")
    expect(page.locator("#talk-title")).to_have_text("No segment is open")  # P6 comes too late
    expect(page.locator("#accept")).to_be_disabled()
    search(page, "P7")
    shown(page, "P7, segment 1 of 3")
    with held(page, "/api/list"):
        page.select_option("#order", "doubtful")
        expect(page.locator("#accept")).to_be_disabled()
        page.locator("#segment").press("a")
    shown(page, "P7, segment 2 of 3")
    with held(page, "/api/dialog"):
        page.select_option("#order", "order")
        expect(page.locator(".row .what").first).to_have_text("P7 · 1")
        page.fill("#comment", "hard to hear")  # still at the one that is shown
    shown(page, "P7, segment 1 of 3")
    page.locator(".row").nth(1).click()
    expect(page.locator("#comment")).to_have_value("hard to hear")
    with held(page, "/api/preview"):
        page.click("#edit")
        page.fill("#route", "N")  # before the server says that the reading cannot be walked as it is
    expect(page.locator("#route-said")).to_have_text(re.compile("^N"))
    expect(page.locator("#route")).to_have_value("N")
    page.select_option("#order", "doubtful")
    expect(page.locator("#trouble")).to_contain_text("Save the edit or leave it")
    expect(page.locator("#order")).to_have_value("order")
    assert [one for one in Trail(study).decisions if one.reviewer == "Flo"] == []


def test_nobody_goes_by_two_names_unasked(watched, server):
    ada = enter(watched, server, "Ada", "P8")
    ada.click("#accept")
    said_last(ada, "Accepted: P8, segment 1.")
    page = visit(watched, server.address)
    expect(page.locator("#who")).to_be_visible()
    for _ in range(3):  # browsers close a window at the second Esc
        page.keyboard.press("Escape")
        expect(page.locator("#who")).to_be_visible()
    expect(page.locator('#who-names option[value="Ada"]')).to_have_count(1)
    page.fill("#who-name", "ada")
    page.press("#who-name", "Enter")
    expect(page.locator("#who-same")).to_contain_text("Ada has decided here before. Is that you?")
    page.fill("#who-name", "ADA ")
    expect(page.locator("#who-same")).to_be_hidden()
    page.press("#who-name", "Enter")
    page.click("#who-known")
    expect(page.locator("#who")).to_be_hidden()
    expect(page.locator("#reviewer")).to_have_text("Ada")
    page.click("#reviewer")
    page.fill("#who-name", "ada")
    page.press("#who-name", "Enter")
    page.click("#who-new")
    expect(page.locator("#reviewer")).to_have_text("ada")


def test_reject_and_withdraw(watched, server, study):
    page = enter(watched, server, find="P3")
    page.fill("#comment", "cannot be told")
    page.click("#reject")
    said_last(page, "Rejected: P3, segment 1.")
    page.reload()
    expect(page.locator("#reviewer")).to_have_text("Ada")
    search(page, "P3")
    page.locator(".row").nth(0).click()
    shown(page, "P3, segment 1 of 3")
    expect(page.locator("#status-line")).to_contain_text("rejected")
    page.click("#withdraw")
    said_last(page, "Withdrawn")
    expect(page.locator("#withdraw")).to_be_hidden()
    assert [one.kind for one in decisions(study, "P3")] == ["reject", "withdraw"]


def test_two_reviewers_at_once(watched, server, study, axe):
    watched.expected.append("409")
    ada, bo = enter(watched, server, "Ada", "P4"), enter(watched, server, "Bo", "P4")
    bo.locator(".row").nth(1).click()
    shown(bo, "P4, segment 2 of 3")
    ada.click("#edit")
    ada.fill("#route", "W N")
    ada.click("#save")
    said_last(ada, "Edited")
    bo.click("#accept")  # of something that starts elsewhere by now
    expect(bo.locator("#trouble")).to_contain_text("changed meanwhile")
    assert [one.reviewer for one in decisions(study, "P4")] == ["Ada"]
    bo.locator(".row").nth(0).click()
    shown(bo, "P4, segment 1 of 3")
    expect(bo.locator("#chips")).to_have_text("MOVE left 1MOVE up 2")  # what Ada did is not shown
    expect(bo.locator("#verdicts")).to_be_empty()
    bo.click("#accept")
    said_last(bo, "Accepted")
    bo.locator(".row").nth(0).click()
    expect(bo.locator("#verdicts")).to_contain_text("Ada edited it MOVE left 1; MOVE up 1")
    expect(bo.locator("#status-line")).to_contain_text("reviewers differ")
    expect(bo.locator("#agreement")).to_contain_text("Agreement with Ada 0 % of 1")
    cy = enter(watched, server, "Cy", "P4")
    expect(cy.locator(".row .mine", has_text="≠")).to_have_count(0)  # who has not judged is not told
    cy.locator(".row").nth(0).click()
    expect(cy.locator("#accept")).to_have_text("Accept a")
    expect(cy.locator("#status-line")).not_to_contain_text("differ")
    cy.select_option("#which", "differ")
    expect(cy.locator(".row")).to_have_count(1)
    expect(cy.locator(".row .mine")).to_contain_text("≠")
    expect(cy.locator("#settling")).to_be_visible()
    cy.reload()  # settling is not ended by that
    expect(cy.locator(".row")).to_have_count(1)
    expect(cy.locator("#verdicts")).to_contain_text("Ada edited it")
    expect(cy.locator("#settling")).to_have_text(
        "You are settling: your decision overrules Ada and Bo. The map shows how Ada read it."
    )
    expect(cy.locator("#status-line")).to_contain_text("read by Ada")
    expect(cy.locator("#status-line")).not_to_contain_text("%")
    expect(cy.locator(".alternative.by-people")).to_contain_text("MOVE left 1; MOVE up 2Bo: W, N×2")
    expect(cy.locator("#reject")).to_have_text("Settle: reject r")
    assert axe(cy) == []
    cy.click("#accept")
    said_last(cy, "Settled, accepted: P4, segment 1.")
    assert decisions(study, "P4")[-1].settles
    expect(cy.locator("#status-line")).to_contain_text("reviewed")
    expect(cy.locator("#settling")).to_be_hidden()


def test_what_people_say_is_text(watched, server):
    page = visit(watched, server.address)
    page.on("dialog", lambda dialog: pytest.fail("a script ran"))
    page.fill("#who-name", "<b>Eve</b>")
    page.press("#who-name", "Enter")
    page.fill("#search", "P2")
    page.locator(".row", has_text="<script>").click()
    shown(page, "P2, segment 2 of 3")
    own = page.locator(".turn.own .text").first
    expect(own).to_have_attribute("dir", "auto")
    assert own.evaluate("element => element.textContent") == STRANGE
    expect(page.locator("#turns script, .row script")).to_have_count(0)
    expect(page.locator("#reviewer")).to_have_text("<b>Eve</b>")
    page.locator("svg.map .walk .step .reach").first.hover(force=True)
    expect(page.locator(".used.lit")).to_contain_text("up two squares")


def test_another_page_cannot_reach_it(watched, server):
    watched.expected += ["CORS", "Failed to load resource", "ERR_FAILED", "Access to fetch"]
    page = watched.page()
    page.route("http://evil.example/", lambda route: route.fulfill(body="<p>evil", content_type="text/html"))
    page.goto("http://evil.example/")
    tried = """async ([address, token, mode]) => {
        try {
            const headers = mode === "cors" ? { "X-Fidm-Token": token } : {};
            const answer = await fetch(address, { method: "POST", mode, headers, body: "{}" });
            return answer.type + " " + (await answer.text());
        } catch { return "refused"; }
    }"""
    for path in ("/api/decide", "/api/preview", "/api/sample"):
        assert page.evaluate(tried, [server.origin + path, server.token, "cors"]) == "refused"
        assert page.evaluate(tried, [server.origin + path, server.token, "no-cors"]) in ("refused", "opaque ")


def test_a_wrong_token_shows_nothing(watched, server):
    watched.expected.append("401")
    page = visit(watched, f"{server.origin}/#wrong")
    expect(page.locator("#trouble")).to_contain_text("Open the address that fidm review printed")
    expect(page.locator(".row")).to_have_count(0)


def test_a_whole_review_with_the_keyboard(watched, server, study):
    page = visit(watched, server.address, reduced_motion="reduce")
    expect(page.locator("#who")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#who")).to_be_visible()
    keys = page.keyboard
    keys.type("Kay")
    keys.press("Enter")
    expect(page.locator(".row").first).to_be_visible()
    keys.press("?")
    expect(page.locator("#help")).to_be_visible()
    keys.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    keys.press("/")
    keys.type("P5")
    expect(page.locator(".row")).to_have_count(3)
    keys.type("a")  # typing in a field is never a decision
    keys.press("Backspace")
    keys.press("Escape")
    expect(page.locator("#talk-title")).to_contain_text("P5")
    for _ in range(3):
        keys.press("k")
    shown(page, "P5, segment 2 of 3")  # the most doubtful
    keys.press("e")
    expect(page.locator("#editor")).to_be_visible()
    for key in ("ArrowUp", "ArrowLeft", "ArrowLeft"):  # faster than the server answers; none is lost
        keys.press(key)
    expect(page.locator("#route")).to_have_value("MOVE up 1; MOVE left 2")
    keys.press("b")
    expect(page.locator("#route")).to_have_value("MOVE up 1; MOVE left 2; BUY household")
    keys.press("Backspace")
    expect(page.locator("#route")).to_have_value("MOVE up 1; MOVE left 2")
    keys.press("p")
    expect(page.locator("#trouble")).to_have_text("PAY is not possible here.")
    expect(page.locator("#said")).to_be_empty()
    keys.press("Escape")
    expect(page.locator("#editor")).to_be_hidden()
    keys.press("1")  # from the other reading: nothing about the way
    expect(page.locator("#route-said")).to_have_text("no moves")
    keys.press("Enter")
    said_last(page, "Edited: P5, segment 2")
    keys.press(" ")
    expect(page.locator("#at-words")).not_to_contain_text("start")
    keys.press("c")
    keys.type("not this")
    keys.press("Escape")
    keys.press("r")
    said_last(page, "Rejected: P5")
    keys.press("a")
    said_last(page, "Accepted: P5")
    made = decisions(study, "P5")
    assert [one.kind for one in made] == ["edit", "reject", "accept"]
    assert [one.comment for one in made] == ["", "not this", ""]
    assert made[0].new.program == "NONE"
    keys.press("w")
    said_last(page, "Withdrawn")
    keys.press("?")
    page.locator("#keys-on").uncheck()
    keys.press("Escape")
    expect(page.locator("#help")).to_be_hidden()
    keys.press("r")  # does nothing: the next decision is the next thing that is done
    page.click("#accept")
    said_last(page, "Accepted: P5")
    assert [one.kind for one in decisions(study, "P5")[3:]] == ["withdraw", "accept"]


@pytest.mark.parametrize("size", [(1366, 768), (1920, 1080)])
def test_everything_fits_and_axe_is_content(watched, server, axe, size):
    page = enter(watched, server, "Ada", "P8", viewport={"width": size[0], "height": size[1]})
    for name in ("#accept", "#edit", "#reject", "#comment", "svg.map", "#chips", ".not-a-diagnosis"):
        expect(page.locator(name)).to_be_in_viewport(ratio=1)
    wide = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
    assert wide == list(size)
    if size[0] > 1366:
        return
    assert axe(page) == []
    page.click("#edit")
    expect(page.locator("#route-said")).to_contain_text("as it stands")
    assert axe(page) == []
    page.click("#leave")
    for button, window in (("#help-open", "#help"), ("#reviewer", "#who")):
        page.click(button)
        expect(page.locator(window)).to_be_visible()
        assert axe(page) == []
        page.keyboard.press("Escape")
        expect(page.locator(window)).to_be_hidden()
    page.select_option("#order", "draw")
    expect(page.locator("#draw")).to_be_visible()
    assert axe(page) == []


def test_audit_sample_is_blind(watched, server, study):
    page = enter(watched, server, "Dee")
    page.select_option("#order", "draw")
    page.fill("#draw-n", "2")
    page.fill("#draw-seed", "5")
    page.press("#draw-seed", "Enter")
    said_last(page, "Drawn: 2 dialogs, seed 5.")
    expect(page.locator(".row")).to_have_count(6)
    expect(page.locator("#status")).to_be_disabled()
    expect(page.locator(".row .mark")).to_have_text([""] * 6)
    expect(page.locator("#accept")).to_be_enabled()
    expect(page.locator("#status-line .tag")).to_have_count(0)
    expect(page.locator("#audit")).to_have_text("Audit: 6 segments to judge")
    for left in range(5, -1, -1):
        page.keyboard.press("a")
        expect(page.locator("#done-words")).to_have_text(f"{6 - left} of 6 judged")
        expect(page.locator("#accept")).to_be_enabled()
    expect(page.locator("#audit")).to_contain_text("2 of 2 dialogs right, 34–100 %")
    words = """async () => {
        const { decimal, named } = await import("/dom.js");
        return [decimal(-0.25, 2), decimal(-0.001, 2), decimal(0.5, 2), named(["A"]), named(["A", "B", "C"])];
    }"""
    assert page.evaluate(words) == ["−0.25", "0.00", "0.50", "A", "A, B and C"]
    assert len([one for one in Trail(study).decisions if one.sample]) == 6


def test_killed_right_after_a_decision_and_fitted_later(watched, start, tmp_path, capsys):
    study = make_talks(tmp_path / "s")
    first = start(study, "--reviewer", "Ada")
    page = visit(watched, first.address)
    page.select_option("#order", "order")
    expect(page.locator(".row .what").nth(1)).to_have_text("P0000001 · 2")
    shown(page, re.compile("^P0000001, segment 1 of"))
    expect(page.locator(".turn .go").nth(9)).to_be_attached()
    lines = page.locator(".turn .when").evaluate_all(
        "all => all.map(one => [one.scrollWidth > one.clientWidth, one.querySelector('.go')?.offsetTop - one.offsetTop > 12])"
    )
    assert lines.count([False, False]) == len(lines)  # two digits stand beside the time too
    page.click("#edit")
    page.fill("#route", "W")
    page.press("#route", "Enter")
    said_last(page, "Edited: P0000001, segment 1.")
    assert first.stop(signal.SIGKILL)[1] == -signal.SIGKILL
    watched.expected.append("ERR_CONNECTION_REFUSED")
    page.keyboard.press("a")
    expect(page.locator("#trouble")).to_contain_text("does not answer")
    assert main(["audit", "verify", str(study)]) == 0
    before = pl.read_parquet(study / "steps.parquet")
    capsys.readouterr()
    assert main(["fit", str(study)]) == 0
    said = capsys.readouterr()
    assert "reviewers decided" in " ".join((said.out + said.err).split())
    after = pl.read_parquet(study / "steps.parquet")
    own = after.filter((pl.col("participant") == "P0000001") & (pl.col("segment").cast(pl.String) == "1"))
    assert [fidm.load_task("grocery").actions[code] for code in own["action"]] == ["W"]
    assert not after.equals(before)

    second = start(study, "--reviewer", "Ada", "--sample", "2", "--seed", "7")
    page.goto("about:blank")  # so that it is loaded anew even at the same port
    page.goto(second.address)
    expect(page.locator("#order")).to_have_value("sample:audit-7-2")
    page.select_option("#order", "order")
    expect(page.locator("#status")).to_be_enabled()  # no audit any more
    shown(page, re.compile("^P0000001, segment 1 of"))
    expect(page.locator("#verdicts")).to_contain_text("You edited it MOVE left 1")
    page.keyboard.press("j")
    shown(page, re.compile("^P0000001, segment 2 of"))
    page.keyboard.press("r")
    said_last(page, "Rejected")
    said, code = second.stop(signal.SIGINT)
    assert code == 0
    assert "Wrote steps, segments and grounding" in said
    assert "1 rejected and left out" in " ".join(said.split())


def is_at(page, condition):
    """Wait until something is true of the recording."""
    page.wait_for_function(
        f"() => {{ const audio = document.getElementById('recording'); return {condition}; }}"
    )


def test_a_segment_is_heard_where_the_study_has_its_recording(watched, start, tmp_path, axe):
    study = make_study(tmp_path / "study", {"P1": WAY, "P2": WAY})
    (study / "audio").mkdir()
    with wave.open(str(study / "audio" / "P1.wav"), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8_000)
        sound.writeframes(bytes(2 * 8_000 * 20))
    page = visit(watched, start(study, "--reviewer", "Ada").address)
    page.select_option("#order", "order")
    shown(page, "P1, segment 1 of 3")
    page.keyboard.press("j")
    shown(page, "P1, segment 2 of 3")
    button = page.get_by_role("button", name="Listen to the recording of this segment")
    button.click()
    is_at(page, "!audio.paused && audio.currentTime > 5")
    expect(page.get_by_role("button", name="Stop the recording")).to_be_visible()
    assert axe(page) == []
    is_at(page, "audio.paused && audio.currentTime >= 10")  # of 20 s: it stops by itself after the segment
    assert page.locator("#recording").evaluate("audio => audio.currentTime") < 19
    expect(button).to_be_visible()
    page.locator("#segment").focus()
    page.keyboard.press("h")
    is_at(page, "!audio.paused && audio.currentTime < 9")
    page.keyboard.press("h")
    is_at(page, "audio.paused && audio.currentTime < 10")
    page.keyboard.press("h")
    is_at(page, "!audio.paused")
    page.fill("#search", "P2")
    page.locator("#search").blur()
    page.locator(".row").first.click()
    shown(page, "P2, segment 1 of 3")
    is_at(page, "audio.paused")
    expect(page.locator("#hear")).to_be_hidden()
    assert axe(page) == []
