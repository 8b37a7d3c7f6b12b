"""Task files: every mistake is an error that names its key or line, and all are reported at once."""

from __future__ import annotations

from importlib import resources

import pytest

import fidm
from fidm.tasks.spec import line_of

TEXT = (resources.files("fidm.tasks") / "builtin" / "grocery_small.toml").read_text("utf-8")


def problems(text: str) -> str:
    with pytest.raises(fidm.TaskError) as caught:
        fidm.compile_task(fidm.parse_task(text, source="t.toml"))
    assert str(caught.value)
    return str(caught.value)


def test_the_unchanged_text_is_fine():
    assert fidm.parse_task(TEXT).name == "grocery_small"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("tau = 0.05", "tau = 0.05\ntauu = 1", ["values.tauu (line 11): is not a known key", "Did you mean 'tau'"]),
        ("tau = 0.05", "tau = inf", ["values.tau (line 10)"]),
        ("tau = 0.05", "tau = nan", ["values.tau (line 10)"]),
        ("tau = 0.05", "tau = 0", ["values.tau (line 10): should be greater than or equal to 0.000000001, not 0"]),
        ("tau = 0.05", "", ["values.tau (line 8): is missing"]),
        ("gamma = 0.98", "gamma = 1.0", ["values.gamma (line 9): should be less than 1"]),
        ("gamma = 0.98", 'gamma = "high"', ["values.gamma (line 9): should be a valid number, not 'high'"]),
        ("gamma = 0.98", "gamma = true", ["values.gamma (line 9)"]),
        ('normaliser = "sum"', 'normaliser = "median"', ["values.normaliser (line 11)", "'sum', 'mean' or 'max'"]),
        ("move = -0.02", "move = 1e400", ["rewards.move (line 14)"]),
        ("move = -0.02", "move = -1e300", ["rewards.move (line 14)"]),
        ("#V...#..B##", "#V...#..B#", ["map.drawing, row 2 (line 23): has 10 cells, the widest row has 11"]),
        ("#V...#..B##", "#V..?#..B##", ["map.drawing, row 2 (line 23): has '?' at column 5"]),
        ("#V...#..B##", "#V.. #..B##", ["map.drawing, row 2 (line 23): has ' ' at column 5"]),
        ("#P.X...S.##", "#P.X...S.#S", ["map.start (line 36): is 'S', which is on the map 2 times"]),
        ("#P.X...S.##", "#P.X......#", ["map.start (line 36): is 'S', which is not on the map"]),
        ('symbol = "M"', 'symbol = "V"', ["sections.vegetables.symbol and sections.meat.symbol", "both use the symbol 'V'"]),
        ('symbol = "M"', 'symbol = "#"', ["map.wall and sections.meat.symbol", "both use the symbol '#'"]),
        ('symbol = "M"', 'symbol = "MM"', ["sections.meat.symbol (line 43): is 'MM'; a symbol is one printable"]),
        ('symbol = "M"', 'symbol = " "', ["sections.meat.symbol (line 43)"]),
        ('symbol = "M"', 'symbol = "Q"', ["sections.meat.symbol (line 43): is 'Q', which is not on the map"]),
        ("#.#M.#.#.##", "#.#.##.#.##\n#######M###", ["sections.meat", "cannot be reached"]),
        ('"meat", "egg_tofu"', '"meet", "egg_tofu"', ["phases.shopping.targets", "names 'meet', which is no section", "Did you mean 'meat'"]),
        ('targets = ["bakery"]', 'targets = ["meat"]', ["phases.bakery.targets", "names 'meat', which is a target of 'shopping' already"]),
        ('targets = ["bakery"]', "targets = []", ["phases.bakery", "has no targets"]),
        ('name = "bakery"', 'name = "shopping"', ["phases.1.name (line 69)", "is called 'shopping' like an earlier phase"]),
        ("[sections.meat]", "[sections.Meat]", ["sections.Meat"]),
        ("format = 1", "format = 2", ["format (line 1): is 2; this version reads format 1"]),
        ('action = "PAY"', 'action = "N"', ["movement and finish.action", "give the same action 'N'"]),
        ('buy = "per_section"', 'buy = "sometimes"', ["rules.buy", "'per_section' or 'single'"]),
        ('symbol = "M"', 'symbol = "M"\nrequires = ["egg_tofu"]\n[sections.eggs]\nsymbol="e"', ["sections.eggs.symbol", "not on the map"]),
        ('symbol = "M"', 'symbol = "M"\nrequires = ["drinks"]', ["sections.meat.requires", "names 'drinks', which is no target"]),
        ('symbol = "M"', 'symbol = "M"\nrequires = ["meat"]', ["sections.meat.requires", "names the section itself"]),
    ],
)  # fmt: skip
def test_each_mistake_is_named(old, new, words):
    assert old in TEXT
    said = problems(TEXT.replace(old, new, 1))
    for word in words:
        assert word in said, said


def test_all_mistakes_of_a_file_are_reported_together():
    text = TEXT.replace("tau = 0.05", "tau = -1").replace("move = -0.02", "moves = 3")
    said = problems(text)
    assert "it has 3 problems" in said
    assert "values.tau" in said
    assert "rewards.moves" in said
    assert "rewards.move " in said


def test_sections_that_wait_for_each_other_are_caught():
    text = TEXT.replace('symbol = "M"', 'symbol = "M"\nrequires = ["seasoning"]')
    text = text.replace('symbol = "G"', 'symbol = "G"\nrequires = ["meat"]')
    assert "meat, seasoning can never" in problems(text)


def test_a_target_that_waits_for_a_later_phase_is_caught():
    text = TEXT.replace('symbol = "M"', 'symbol = "M"\nrequires = ["bakery"]')
    text = text.replace('early_target = "marks"', 'early_target = "illegal"')
    assert "can never be" in problems(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is missing"),
        ("a = ", "not valid TOML"),
        ("a = 1\na = 2", "not valid TOML"),
        ("a = " + "[" * 5_000, "nested too deeply"),
        ("a = " + "9" * 5_000, "not valid TOML"),
        ("\x00", "not valid TOML"),
    ],
)
def test_hostile_texts_are_errors_not_tracebacks(text, words):
    assert words in problems(text)


def test_files_that_cannot_be_read_say_why(tmp_path):
    with pytest.raises(fidm.TaskError, match=r"no such file.*Did you mean 'grocery'"):
        fidm.read_task("grocry")
    with pytest.raises(fidm.TaskError, match="cannot be read"):
        fidm.read_task(tmp_path)
    (tmp_path / "latin.toml").write_bytes("name = 'é'".encode("latin-1"))
    with pytest.raises(fidm.TaskError, match="not UTF-8"):
        fidm.read_task(tmp_path / "latin.toml")
    with pytest.raises(fidm.TaskError, match="no ordinary file"):
        fidm.read_task("/dev/zero")
    with pytest.raises(fidm.TaskError, match="cannot be read"):
        fidm.read_task("a\0b")
    (tmp_path / "bom.toml").write_text(TEXT, encoding="utf-8-sig")
    assert fidm.read_task(tmp_path / "bom.toml") == fidm.parse_task(TEXT)
    with pytest.raises(fidm.TaskError):
        fidm.read_task("x" * 5_000)


def test_a_task_of_too_many_states_is_refused_before_memory_is(monkeypatch):
    sections = "".join(f'[sections.s{i}]\nsymbol = "{chr(0x4E00 + i)}"\n' for i in range(30))
    names = ", ".join(f'"s{i}"' for i in range(30))
    row = "".join(chr(0x4E00 + i) for i in range(30))
    text = f"""
format = 1
name = "many"
title = "Too many targets"
[values]
gamma = 0.9
tau = 0.1
[rewards]
move = -1
target = 1
repeated = -2
non_target = -2
[map]
drawing = '''
{row}
S.............................
'''
{sections}
[[phases]]
name = "one"
targets = [{names}]
"""
    monkeypatch.setattr("fidm.tasks.compile.MAX_STATES", 200_000)
    assert "200,000 in all" in problems(text)


def test_more_targets_than_a_state_can_hold_are_refused():
    sections = "".join(f'[sections.s{i}]\nsymbol = "{chr(0x4E00 + i)}"\n' for i in range(61))
    names = ", ".join(f'"s{i}"' for i in range(61))
    head = TEXT.split("[map]", 1)[0]
    drawing = "".join(chr(0x4E00 + i) for i in range(61)) + "\n" + "S" + "." * 60
    text = f'{head}[map]\ndrawing = """\n{drawing}\n"""\n{sections}\n[[phases]]\nname = "a"\ntargets = [{names}]\n'
    assert "phases (line" in problems(text)
    assert "61 targets; 60 can" in problems(text)


def test_windows_line_ends_change_nothing():
    assert fidm.parse_task(TEXT.replace("\n", "\r\n")) == fidm.parse_task(TEXT)


def test_lines_are_found():
    assert line_of(TEXT, "values.tau") == 10
    assert line_of(TEXT, "sections.meat.symbol") == 43
    assert line_of(TEXT, "phases.1.targets") == line_of(TEXT, "phases.bakery.targets")
    assert line_of(TEXT, "nowhere.at.all") is None


def test_lines_are_not_looked_for_inside_strings():
    text = 'description = """\ntau = 1\n[values]\n"""\n[values]\ntau = 2\n[[phases]]\nname = "a"\n[[phases]]\nname = "b"\n'
    assert line_of(text, "values.tau") == 6
    assert line_of(text, "phases.b.targets") == 9
    assert line_of('[map]\ndrawing = """\n\n\n##\n#\n"""', "map.drawing, row 2") == 6
    assert line_of('[map]\ndrawing = "##\\n#"', "map.drawing, row 2") == 2
    assert line_of("[map]\ndrawing = '''##\n#'''", "map.drawing, row 2") == 3
