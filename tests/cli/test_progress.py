"""Verbs that may take more than two seconds show how far they are, and how long it will yet take."""

from __future__ import annotations

import inspect
import io
import time
from pkgutil import resolve_name

import pytest
from rich.console import Console

from fidm.cli.main import VERBS, main
from fidm.present import terminal

QUICK = {"task list", "task copy", "list"}
"""Verbs that read a few small files."""


def functions():
    return {
        words: resolve_name(f"fidm.cli.{place}")
        for verbs in VERBS.values()
        for words, (place, _) in verbs.items()
    }


@pytest.fixture
def screen(monkeypatch):
    """A terminal whose text can be read."""
    text = io.StringIO()
    monkeypatch.setattr(
        terminal, "aside", lambda: Console(file=text, force_terminal=True, width=100, highlight=False)
    )
    return text


def test_every_verb_that_may_take_long_has_a_bar():
    without = {words for words, verb in functions().items() if "progress_bar(" not in inspect.getsource(verb)}
    assert without - QUICK == {"run"}  # whose bar is that of its steps
    assert "do_steps" in inspect.getsource(functions()["run"])


def test_the_time_left_is_shown(screen):
    with terminal.progress_bar("reading") as bars:
        for done in range(1, 8):
            bars.step("solving", done, 10)
            time.sleep(0.12)
    said = screen.getvalue()
    assert "reading" in said
    assert "solving" in said
    assert "7/10" in said
    assert "/s" in said  # the rate
    assert "0:00:0" in said.rpartition("/s")[2]  # the time left, after the rate


def test_an_interrupt_leaves_no_bar_and_the_cursor(screen, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("fidm.cli.task.progress_bar", terminal.progress_bar)
    monkeypatch.setattr("fidm.tasks.check.check_task", interrupted)
    assert main(["check", "errands"]) == 130
    said = screen.getvalue()
    assert said.rindex("\x1b[?25h") > said.rindex("\x1b[?25l")  # the cursor is shown again
    assert said.endswith("\x1b[2K")  # and the line is empty


def test_without_a_terminal_nothing_is_drawn(capfd):
    assert main(["task", "show", "errands"]) == 0
    assert capfd.readouterr().err == ""
