"""Which task talk is about, by the places that it names."""

import pytest

import fidm
from fidm.grounding.rules.language import better_task, task_fit
from fidm.io.talk import Transcript, Turn
from fidm.simulate.talk import simulate_talks
from fidm.tasks.spec import builtin_tasks


def talk(*texts: str, language: str = "", role: str = "participant") -> Transcript:
    turns = tuple(Turn("P", float(i), i + 1.0, text, role) for i, text in enumerate(texts))
    return Transcript("p1", turns, language=language)


@pytest.mark.parametrize("language", ["en", "yue", "zh"])
@pytest.mark.parametrize("task", builtin_tasks())
def test_talk_fits_the_task_it_is_about(task, language):
    talks = simulate_talks(fidm.load_task(task), 4, seed=2, language=language).transcripts
    fit = task_fit(talks)
    assert fit[task] > 0.9
    assert better_task(fit, task) is None
    strangers = [name for name in fit if name.split("_")[0] != task.split("_")[0]]
    assert all(better_task(fit, name) is not None for name in strangers)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("I saw my sister last weekend, we talked about her new job at the school, then back home", "en"),
        ("the owl points at a mountain with two lakes on the left side of the picture", "en"),
        ("我尋日同個女去咗公園行,天氣好好,之後返屋企睇電視", "yue"),
        ("昨天我跟女儿去了公园散步，天气很好，后来我们回家看电视", "zh"),
        ("ich gehe nach rechts", "klingon"),
        ("", "en"),
    ],
)
def test_talk_about_something_else_fits_none(text, language):
    fit = task_fit([talk(text, language=language)])
    assert all(better_task(fit, name) is None for name in fit)


def test_all_turns_count_where_nobody_is_the_participant():
    said = ("go to the bank", "then to the pharmacy")
    assert task_fit([talk(*said, role="other")]) == task_fit([talk(*said)])


def test_many_dialogs_are_looked_at_in_part_and_order_is_kept():
    one = talk("the bank, then the pharmacy", language="en")
    assert list(task_fit([one] * 500, ["grocery", "errands"])) == ["grocery", "errands"]
    assert task_fit([]) == dict.fromkeys(builtin_tasks(), 0.0)


def test_ground_warns_of_the_wrong_task(tmp_path):
    from fidm.defaults import GroundOptions
    from fidm.line import ground_study
    from fidm.simulate.twin import simulate_study

    study = tmp_path / "study"
    simulate_study(study, task="grocery", n=6, seed=1, language="en", formats=("jsonl",), dialogs=True)
    assert not ground_study(study, GroundOptions()).meant_task
    found = ground_study(study, GroundOptions(task="errands"))
    assert found.meant_task == "grocery"
    assert f"fidm ground {study} --task grocery" in found.warnings[0]
