"""The map that pages draw: the same cells, names and ways as the task has."""

import json

import pytest
from mazes import maze
from playwright.sync_api import expect

import fidm
from fidm.pages import ASSETS, csp_hash, map_scene, read_asset, script_json

HTML = "<!doctype html><html lang=en><title>map</title><style>{css}</style><main></main><script>{js}</script>"


@pytest.fixture
def scene():
    return map_scene(fidm.load_task("grocery"))


@pytest.fixture
def drawn(page, scene):
    page.set_content(HTML.format(css=read_asset("base.css"), js=read_asset("map.js")))
    page.evaluate(
        "scene => { window.svg = fidmMap.draw(scene, {label: 'the store'});"
        " document.querySelector('main').append(svg); }",
        scene,
    )
    return page


def test_it_has_every_cell_shelf_and_name(drawn, scene):
    expect(drawn.locator("rect[data-cell]")).to_have_count(len(scene["cells"]))
    expect(drawn.locator("rect.target")).to_have_count(sum(row.count("t") for row in scene["kinds"]))
    expect(drawn.locator("rect")).to_have_count(scene["rows"] * scene["columns"])
    names = [one["words"] for one in scene["labels"]]
    shown = drawn.evaluate(
        "[...document.querySelectorAll('.name')].map(n => [...n.children].map(c => c.textContent).join(' '))"
    )
    assert shown == names
    expect(drawn.get_by_role("img", name="the store")).to_have_count(1)


def test_a_way_walked_twice_lies_beside_the_first_and_actions_are_crosses(drawn, scene):
    here = 0
    way = next(k for k, there in enumerate(scene["neighbour"][here]) if there >= 0)
    there = scene["neighbour"][here][way]
    steps = [
        {"from": here, "to": there, "move": True, "colour": "#ff0000", "title": "out"},
        {"from": there, "to": here, "move": True, "colour": "#00ff00", "title": "back"},
        {"from": here, "to": there, "move": True, "colour": "#0000ff", "title": "again"},
        {"from": there, "to": there, "move": False, "title": "take"},
        {"from": -1, "to": -1, "move": False, "title": "after the end"},
    ]
    drawn.evaluate("steps => { window.made = fidmMap.walk(svg, steps); }", steps)
    lines = drawn.evaluate(
        "made.map(g => g.querySelector('.way')).map(l => l && ['x1','y1','x2','y2'].map(k => +l.getAttribute(k)))"
    )
    assert lines[0] != lines[2]
    assert lines[0][:2] != lines[1][2:]
    assert lines[3] is None
    expect(drawn.locator(".cross")).to_have_count(1)
    expect(drawn.locator("g.step title").first).to_have_text("out")
    drawn.evaluate("fidmMap.walk(svg, [])")
    expect(drawn.locator("g.step")).to_have_count(0)


def test_a_way_walked_often_never_lies_on_itself(drawn, scene):
    there = max(scene["neighbour"][0])
    steps = [{"from": 0, "to": there, "move": True}, {"from": there, "to": 0, "move": True}] * 9
    drawn.evaluate("steps => { window.made = fidmMap.walk(svg, steps); }", steps)
    lines = drawn.evaluate(
        "made.map(g => g.querySelector('.way')).map(l => ['x1','y1','x2','y2'].map(k => +l.getAttribute(k)))"
    )
    assert len({tuple(round(x, 6) for x in line) for line in lines}) == 18
    x, y = drawn.evaluate("fidmMap.centre(svg.fidmScene, 0)")
    cell = drawn.evaluate("fidmMap.CELL")
    assert all(max(abs(line[0] - x), abs(line[1] - y)) < cell / 2 for line in lines[::2])


def test_the_figure_moves_and_leaves(drawn):
    drawn.evaluate("fidmMap.figure(svg, 3)")
    first = drawn.locator(".figure").get_attribute("transform")
    drawn.evaluate("fidmMap.figure(svg, 4)")
    expect(drawn.locator(".figure")).to_have_count(1)
    expect(drawn.locator(".figure")).not_to_have_attribute("transform", first)
    drawn.evaluate("fidmMap.figure(svg, null)")
    expect(drawn.locator(".figure")).to_have_count(0)


def test_heavier_is_darker(drawn):
    colours = drawn.evaluate("[0, 1, 2, 3, 4, 5].map(v => fidmMap.heat(v, 5).match(/\\d+/g).map(Number))")
    light = [0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in colours]
    assert light == sorted(light, reverse=True)
    assert len(set(light)) == 6
    assert drawn.evaluate("fidmMap.heat(null, 5)") == "#bdbdbd"


def test_names_are_text_and_never_markup(page, scene):
    scene["labels"][0]["words"] = "<img src=x onerror=alert(1)>"
    page.set_content(HTML.format(css="", js=read_asset("map.js")))
    page.evaluate("scene => document.querySelector('main').append(fidmMap.draw(scene))", scene)
    expect(page.locator("img")).to_have_count(0)
    expect(page.locator(".name").first).to_contain_text("<img")


def test_json_in_a_page_cannot_end_its_element(page):
    said = "</script><script>window.bad = 1</script> & \u2028 \U0001f600 \u05e9\u05dc\u05d5\u05dd <!--"
    page.set_content(f'<script type="application/json" id="data">{script_json({"said": said})}</script>')
    assert page.evaluate("JSON.parse(document.getElementById('data').textContent).said") == said
    assert page.evaluate("window.bad === undefined")


def test_a_lone_surrogate_does_not_break_the_page():
    assert json.loads(script_json({"said": "a\ud800b"}))["said"] == "a\ufffdb"


def test_only_shared_files_can_be_read():
    assert all(read_asset(name) for name in ASSETS)
    with pytest.raises(ValueError, match="no shared file"):
        read_asset("../scene.py")
    assert csp_hash("x") != csp_hash("y")


def test_a_task_with_coordinates_has_a_dot_for_each_place_and_a_line_for_each_way(page):
    scene = map_scene(maze(1))
    page.set_content(HTML.format(css=read_asset("base.css"), js=read_asset("map.js")))
    page.evaluate(
        "scene => { window.svg = fidmMap.draw(scene); document.querySelector('main').append(svg); }", scene
    )
    expect(page.locator("circle.spot")).to_have_count(16)
    expect(page.locator("circle.spot.end")).to_have_attribute("data-cell", "15")
    expect(page.locator("circle.spot.start")).to_have_attribute("data-cell", "0")
    expect(page.locator("line.link")).to_have_count(24)
    expect(page.locator("rect")).to_have_count(0)
    assert page.locator(".name").all_text_contents() == [label["words"] for label in scene["labels"]]
    steps = [{"from": 0, "to": 1, "move": True, "colour": "#ff0000"}, {"from": 1, "to": 5, "move": True}]
    page.evaluate("steps => fidmMap.walk(svg, steps)", steps)
    way = page.locator(".way").first
    assert [float(way.get_attribute(name)) for name in ("x1", "x2")] == [20, 60]


def test_a_task_without_a_map_has_no_scene():
    task = fidm.TaskModel.from_arrays(
        [[-1, 1], [0, 2], [-1, -1]], [[0, -0.1], [-0.1, 1], [0, 0]], gamma=0.9, tau=0.1, name="plain"
    )
    with pytest.raises(fidm.TaskError, match="not drawn"):
        map_scene(task)


MAZE = """
format = 1
name = "maze"
title = "A maze"
[values]
gamma = 0.9
tau = 0.01
[rewards]
move = -0.1
target = 1.0
repeated = -0.5
non_target = -0.5
[costs]
"~" = -0.3
[map]
one_way = { ">" = "E" }
drawing = '''
S~.
.>G
'''
[sections.goal]
symbol = "G"
reach = "arrive"
[[phases]]
name = "all"
targets = ["goal"]
[rules]
bumps = "stay"
diagonal = "free"
"""


def test_mazes_show_doors_prices_bumps_and_diagonal_ways(page):
    scene = map_scene(fidm.compile_task(fidm.parse_task(MAZE)))
    page.set_content(HTML.format(css=read_asset("base.css"), js=read_asset("map.js")))
    page.evaluate("s => { window.svg = fidmMap.draw(s); document.querySelector('main').append(svg); }", scene)
    expect(page.locator(".door")).to_have_count(1)
    expect(page.locator(".price")).to_have_count(1)
    steps = [
        {"from": 0, "to": 0, "move": True, "way": "N", "colour": "#ff0000"},
        {"from": 0, "to": 1, "move": True, "way": "E"},
        {"from": 1, "to": 5, "move": True, "way": "SE"},
        {"from": 5, "to": 5, "move": False, "way": "PAY"},
    ]
    page.evaluate("steps => { window.made = fidmMap.walk(svg, steps); }", steps)
    bar, crossed = (page.evaluate(f"made[{i}].querySelector('.cross').getAttribute('d')") for i in (0, 3))
    assert bar == "M27 4L13 4"
    assert crossed.count("M") == 2
    ways = page.evaluate(
        "[1, 2].map(i => made[i].querySelector('.way')).map(l => ['x1','y1'].map(k => +l.getAttribute(k)))"
    )
    assert ways[0] == [20, 24]
    aside = 0.1 * 40 / 2**0.5
    assert ways[1] == pytest.approx([60 - aside, 20 + aside])


def test_hidden_cells_are_hatched(page):
    hidden = MAZE.replace('diagonal = "free"', 'phase_change = "goals"\nreveal = "on_entering"')
    hidden = hidden.replace("[map]", '[hidden]\n"~" = { open = 0.5 }\n[map]')
    scene = map_scene(fidm.compile_task(fidm.parse_task(hidden)))
    page.set_content(HTML.format(css=read_asset("base.css"), js=read_asset("map.js")))
    page.evaluate("s => { window.svg = fidmMap.draw(s); document.querySelector('main').append(svg); }", scene)
    expect(page.locator(".hidden-cell")).to_have_count(len(scene["hidden"]))
    assert page.locator(".hidden-cell").first.get_attribute("d").count("M") == 8
