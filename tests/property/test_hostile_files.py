"""Fuzzed task files: a usable task or a TaskError with a place, never anything else."""

from __future__ import annotations

from importlib import resources

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fidm
import fidm.tasks.compile as compile_module

TEXTS = [
    (resources.files("fidm.tasks") / "builtin" / f"{name}.toml").read_text("utf-8")
    for name in ("grocery_small", "errands")
]
SCALARS = st.one_of(
    st.sampled_from(
        ["inf", "-inf", "nan", "1e999", "-0.0", "9" * 40, "true", '""', '"#"', "[]", "{}", "[[]]", '["meat"]']
    ),
    st.sampled_from(["1979-05-27", "0x10", "'''\n'''", '"\\u0000"', '"\\U0001F6D2"', "{a = 1}", "[1, 'x']"]),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**30), 10**30).map(str),
    st.text(max_size=5).map(lambda t: '"' + t.encode("unicode_escape").decode().replace('"', "") + '"'),
)


def load(text: str) -> None:
    """Read and compile; anything but a TaskError with a message that names a place is a bug."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compile_module, "MAX_STATES", 100_000)
        try:
            model = fidm.compile_task(fidm.parse_task(text, source="fuzz.toml"))
            assert model.n_states > 0
        except fidm.TaskError as error:
            assert str(error).strip()
            assert all(problem.where and problem.what for problem in error.problems)


@settings(max_examples=300)
@given(st.sampled_from(TEXTS), st.data())
def test_one_value_replaced(text, data):
    lines = text.splitlines()
    keyed = [i for i, line in enumerate(lines) if " = " in line and '"""' not in line]
    i = data.draw(st.sampled_from(keyed))
    lines[i] = f"{lines[i].split(' = ')[0]} = {data.draw(SCALARS)}"
    load("\n".join(lines))


@settings(max_examples=300)
@given(st.sampled_from(TEXTS), st.data())
def test_lines_dropped_doubled_or_swapped(text, data):
    lines = text.splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        i = data.draw(st.integers(0, len(lines) - 1))
        j = data.draw(st.integers(0, len(lines) - 1))
        change = data.draw(st.sampled_from(["drop", "double", "swap"]))
        if change == "drop" and len(lines) > 1:
            del lines[i]
        elif change == "double":
            lines.insert(j, lines[i])
        else:
            lines[i], lines[j] = lines[j], lines[i]
    load("\n".join(lines))


@settings(max_examples=300)
@given(st.sampled_from(TEXTS), st.data())
def test_characters_changed(text, data):
    letters = list(text)
    for _ in range(data.draw(st.integers(1, 5))):
        i = data.draw(st.integers(0, len(letters) - 1))
        letters[i] = data.draw(st.one_of(st.sampled_from(list('#.SVMPBX"[]=\n\t 3')), st.characters()))
    load("".join(letters))


@settings(max_examples=200)
@given(st.text(max_size=300))
@example("[" * 3_000)
@example("a." * 2_000 + "b = 1")
@example("x = '''" + "\n" * 100)
def test_any_text(text):
    load(text)


@settings(max_examples=60)
@given(st.lists(st.text(alphabet="#.SVMEGBPXDK\u2028\x0b ", min_size=0, max_size=12), max_size=8))
def test_any_drawing(rows):
    head, rest = TEXTS[0].split('drawing = """', 1)
    tail = rest.split('"""', 1)[1]
    drawing = "\n".join(rows).encode("unicode_escape").decode().replace("\\n", "\n")
    load(f'{head}drawing = """\n{drawing}\n"""{tail}')
