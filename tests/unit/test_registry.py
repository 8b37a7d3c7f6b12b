"""One registry for every seam: what comes with fidm, and what a made-up package adds, found and used by name."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from made_up import toy_study

import fidm
from fidm.channels import Channel, Gamma, channel_words, paper_channels
from fidm.cli.main import main
from fidm.errors import DataError, FitError, GroundingError, TaskError
from fidm.grounding.rules.language import languages
from fidm.grounding.settings import GroundingFile
from fidm.io.dialogs import formats, write
from fidm.registry import (
    ACTION_MODELS,
    CHANNELS,
    DATASETS,
    FORMATS,
    GROUNDERS,
    LANGUAGES,
    REANALYSES,
    SEAMS,
    TASKS,
    TRANSCRIBERS,
)
from fidm.talk import Transcript, Turn

STUDIES = ("justhink", "map-task", "space-adventure")

BUILT_IN = [
    (
        CHANNELS,
        (
            "gamma", "negative_binomial", "poisson", "log_normal", "bernoulli", "generalized_gamma", "weibull",
            "shifted_negative_binomial", "truncated_negative_binomial", "zero_inflated_negative_binomial",
            "zero_inflated_poisson",
        ),
    ),
    (
        ACTION_MODELS,
        (
            "softmax", "lapse", "stickiness", "no_way_back", "discounting", "depth", "nearest_goal",
            "chosen_goal", "random",
        ),
    ),
    (FORMATS, ("chat", "elan", "textgrid", "srt", "vtt", "whisper", "csv", "jsonl")),
    (GROUNDERS, ("rules", "llm", "hybrid")),
    (TRANSCRIBERS, ("faster-whisper", "whisper.cpp", "pocketsphinx")),
    (LANGUAGES, ("en", "yue", "zh")),
    (TASKS, ("errands", "grocery", "grocery_small")),
    (DATASETS, STUDIES),
    (REANALYSES, STUDIES),
]  # fmt: skip

CODE = '''
"""A package of a lab that has one of everything."""

from dataclasses import dataclass
from typing import ClassVar

from fidm.channels import Gamma
from fidm.grounding.base import Proposal
from fidm.grounding.route.program import Instruction
from fidm.io.formats.base import Format, RawFile, RawTurn


@dataclass(frozen=True)
class Spoken(Gamma):
    """Seconds spoken, under another name."""

    kind: ClassVar[str] = "spoken"
    label: str = "time spoken"
    unit: str = "s"


class Arrows:
    """Read arrows: every one is a square."""

    name = "arrows"

    def provenance(self):
        return {"grounder": self.name}

    def ground(self, segment, context):
        program = tuple(Instruction("MOVE", "left", 1, span=(i, i + 1)) for i, x in enumerate(segment.text) if x == "←")
        return Proposal.of([(program, 1.0)], () if program else ("no_arrows",), self.name)

    def close(self):
        pass


def read_text(text, options):
    rows = [line.split("|") for line in text.splitlines()]
    return RawFile([RawTurn(who, float(start), float(end), said) for who, start, end, said in rows])


def write_text(transcript):
    return "".join(f"{turn.speaker}|{turn.start_s}|{turn.end_s}|{turn.text}\\n" for turn in transcript)


PIPED = Format("piped", "Piped text", (".pipe", ".csv"), ("times",), read_text, write_text)
'''

GERMAN = """
format = 1
language = "xx-de"
name = "German"
spaced = true
[numbers]
3 = ["drei"]
[words]
UP = ["hoch"]
LEFT = ["links"]
UNIT = ["Felder"]
"""

ENTRY_POINTS = {
    "fidm.channels": "spoken = lab_package:Spoken",
    "fidm.formats": "piped = lab_package:PIPED",
    "fidm.grounders": "arrows = lab_package:Arrows",
    "fidm.languages": "xx-de = lab_package.german",
    "fidm.tasks": "museum = lab_package.tasks",
}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put the lab's package into reach, with these entry points, as if it had been installed."""

    def installed(**entry_points: str) -> Path:
        site = tmp_path / "site"
        for folder in ("german", "tasks"):
            (site / "lab_package" / folder).mkdir(parents=True)
        (site / "lab_package" / "__init__.py").write_text(CODE, "utf-8")
        (site / "lab_package" / "german" / "words.toml").write_text(GERMAN, "utf-8")
        text = fidm.builtin_text("errands").replace('name = "errands"', 'name = "museum"')
        (site / "lab_package" / "tasks" / "museum.toml").write_text(text, "utf-8")
        monkeypatch.syspath_prepend(site)  # before the next line, whose path it would otherwise put back
        toy_study.install(site / "info", monkeypatch, **(entry_points or ENTRY_POINTS))
        return site / "lab_package"

    yield installed
    for name in [name for name in sys.modules if name.partition(".")[0] == "lab_package"]:
        del sys.modules[name]


# ---- What comes with fidm.


@pytest.mark.parametrize(("catalogue", "names"), BUILT_IN, ids=[one.group for one, _ in BUILT_IN])
def test_everything_that_comes_with_fidm_is_there_and_can_be_loaded(catalogue, names):
    assert set(names) <= set(catalogue.names())
    assert tuple(catalogue.loaded()) == catalogue.names()
    assert catalogue.ignored() == ()
    assert names[0] in catalogue
    with pytest.raises(DataError, match=f"There is no {catalogue.what} .*Did you mean {names[0]}"):
        catalogue.find(f"{names[0]}x")


def test_a_file_for_each_language_and_each_task_is_all_it_takes():
    package = Path(fidm.__file__).parent
    assert set(LANGUAGES.names()) == {one.parent.name for one in package.glob("languages/*/words.toml")}
    assert set(TASKS.names()) == {one.stem for one in package.glob("tasks/builtin/*.toml")}


def test_the_registry_stands_at_the_bottom_and_imports_nothing_heavy():
    code = (
        "import sys, fidm.registry as r; r.CHANNELS.built_in, 'gamma' in r.CHANNELS\n"
        "print(*(x for x in sys.modules if x.startswith('fidm.')))\n"
        "print([x for x in ('numpy', 'polars', 'importlib.metadata') if x in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["fidm.errors fidm.registry", "[]"]


# ---- What another package adds.


def test_a_channel_of_another_package_is_found_by_a_saved_fit(install, tmp_path):
    package = install()
    task = fidm.load_task("errands")
    cohort = fidm.simulate_cohort(task, 12, seed=1)
    fit = fidm.Model(task, channels=[CHANNELS.find("spoken")("duration", "duration_s")]).fit(cohort)
    fit.save(tmp_path / "fit.json")
    again = fidm.load_fit(tmp_path / "fit.json")
    assert type(again.channels[0]).__module__ == package.name
    assert again.profile(cohort).estimate.tolist() == fit.profile(cohort).estimate.tolist()
    assert channel_words(again.channels[0]) == ("time spoken", "s", "segments")
    assert "label" not in json.loads((tmp_path / "fit.json").read_text("utf-8"))["channels"][0]


def test_a_saved_fit_names_channels_and_never_runs_a_module(install, tmp_path, monkeypatch):
    install()
    task = fidm.load_task("errands")
    channels = [Gamma("duration", "duration_s")]
    fit = fidm.Model(task, channels=channels).fit(fidm.simulate_cohort(task, 12, seed=1))
    fit.save(tmp_path / "fit.json")
    text = (tmp_path / "fit.json").read_text("utf-8")
    (tmp_path / "fit.json").write_text(text.replace('"gamma"', '"lab_package:Spoken"'), "utf-8")
    with pytest.raises(FitError, match="Give its class"):
        fidm.load_fit(tmp_path / "fit.json")
    assert "lab_package" not in sys.modules


def test_a_class_is_also_named_by_its_module(install):
    install()
    assert CHANNELS.resolve("lab_package:Spoken").kind == "spoken"
    assert CHANNELS.resolve("gamma") is Gamma
    with pytest.raises(DataError, match=r"\(lab_package:Arrows\)"):
        CHANNELS.resolve("lab_package:Arrows")
    with pytest.raises(DataError, match="'lab_package:Nobody' of the package"):
        CHANNELS.resolve("lab_package:Nobody")


def test_a_channel_says_what_it_is_called_and_saved_fits_do_not_repeat_it():
    assert [channel_words(one).name for one in paper_channels()] == [
        channel_words(one.name).name for one in paper_channels()
    ]
    own = Gamma("gaze", "gaze_s", label="gaze duration", unit="ms", rests_on="gazes")
    assert channel_words(own) == ("gaze duration", "ms", "gazes")
    assert channel_words(Gamma("gaze_time", "gaze_s")) == ("gaze time", "s", "segments")
    assert own == Gamma("gaze", "gaze_s")
    assert own.to_dict() == Gamma("gaze", "gaze_s").to_dict()
    assert repr(own) == repr(Gamma("gaze", "gaze_s"))
    assert isinstance(own, Channel)


def test_a_format_of_another_package_is_read_by_its_suffix_or_its_name(install, tmp_path):
    install()
    dialog = Transcript("P1", (Turn("PAR", 0.0, 2.0, "go left", role="participant"),))
    write(dialog, tmp_path / "talks.pipe")
    assert [turn.text for turn in fidm.read(tmp_path)[0]] == ["go left"]
    (tmp_path / "talks.pipe").rename(tmp_path / "talks.csv")
    assert [turn.text for turn in fidm.read(tmp_path / "talks.csv", format="piped")[0]] == ["go left"]
    with pytest.raises(DataError):  # the suffix is that of a format of fidm, which comes first
        fidm.read(tmp_path / "talks.csv")
    assert formats()[-1].name == "piped"


def test_a_task_of_another_package_is_loaded_by_name_wherever_tasks_are_named(install, tmp_path, capsys):
    package = install()
    task = fidm.load_task("museum")
    assert task.name == "museum"
    assert fidm.builtin_tasks()[-1] == "museum"
    fidm.write_cohort(fidm.simulate_cohort(task, 6, seed=1), tmp_path / "study", tasks=["museum"])
    assert main(["fit", str(tmp_path / "study"), "--json"]) == 0
    assert fidm.load_fit(tmp_path / "study" / "fit.json").tasks.names == ("museum",)
    assert main(["task", "copy", "museum", str(tmp_path / "mine.toml")]) == 0
    (package / "tasks" / "museum.toml").write_text(fidm.builtin_text("errands"), "utf-8")
    with pytest.raises(TaskError, match="name = 'errands'"):
        fidm.load_task("museum")
    (package / "tasks" / "museum.toml").unlink()
    with pytest.raises(DataError, match=r"file museum.toml"):
        fidm.load_task("museum")


def test_a_language_of_another_package_is_read_by_the_rules(install):
    install()
    assert languages()[-1] == "xx-de"
    task = fidm.load_task("grocery")
    said = Turn("PAR", 0.0, 2.0, "links hoch drei Felder", role="participant")
    grounded = fidm.ground([Transcript("P1", (said,), language="xx-de")], task)
    assert [task.actions[action] for action in grounded.cohort.action] == ["W", "N", "N", "N"]


def test_a_grounder_of_another_package_is_named_on_the_command_line(install, tmp_path, capsys):
    install(**{**ENTRY_POINTS, "fidm.grounders": "arrows = lab_package:Arrows\nnothing = lab_package:dict"})
    study = tmp_path / "study"
    (study / "talks").mkdir(parents=True)
    write(Transcript("P1", (Turn("PAR", 0.0, 2.0, "←", role="participant"),)), study / "talks" / "P1.jsonl")
    assert main(["ground", str(study), "--task", "grocery", "--by", "arrows", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["provenance"]["grounder"] == "arrows"
    assert report["steps"] == 1
    (study / "grounding.toml").write_text('by = "arrows"\n', "utf-8")
    assert main(["ground", str(study), "--json"]) == 0
    assert main(["ground", str(study), "--samples", "3"]) == 2
    assert "--samples is for" in capsys.readouterr().err
    assert main(["ground", str(study), "--by", "arows"]) == 2
    assert "Did you mean arrows?" in capsys.readouterr().err
    assert not (study / "grounding" / "answers").exists()
    with pytest.raises(DataError, match="'nothing' of the package toy"):
        GroundingFile(by="nothing").grounder(cache=None)


def test_what_makes_no_grounder_is_refused(install):
    install(**{"fidm.grounders": "nothing = builtins:dict"})
    with pytest.raises(GroundingError, match="'nothing' makes"):
        GroundingFile(by="nothing").grounder(cache=None)


# ---- What is wrong with some.


def test_a_broken_package_is_named_and_stops_nothing_else(install, tmp_path, caplog):
    install(
        **{"fidm.formats": "gone = lab_package.nowhere:FORMAT\nother = lab_package:PIPED\nbad = lab package"}
    )
    for name, said in (
        ("gone", "'gone' of the package toy cannot be loaded: No module named"),
        ("bad", "'bad' of the package toy cannot be loaded"),
        ("other", "'other' of the package toy leads to a format whose name is 'piped'"),
    ):
        with pytest.raises(DataError, match=said):
            FORMATS.find(name)
    write(Transcript("P1", (Turn("PAR", 0.0, 2.0, "go left", role="participant"),)), tmp_path / "P1.csv")
    with caplog.at_level(logging.WARNING):
        assert len(fidm.read(tmp_path / "P1.csv")) == 1
    assert len({record.getMessage() for record in caplog.records}) == 3


def test_no_package_replaces_what_comes_with_fidm(install):
    install(**{"fidm.tasks": "grocery = lab_package.tasks", "fidm.channels": "gamma = lab_package:Spoken"})
    assert fidm.load_task("grocery").name == "grocery"
    assert CHANNELS.find("gamma") is Gamma
    [said] = TASKS.ignored()
    assert "'grocery' of the package toy is ignored" in said
    assert CHANNELS.ignored("poisson") == ()


# ---- Listing them.


def test_list_names_everything_with_its_package(install, capsys):
    lines = "spoken = lab_package:Spoken\ngone = lab_package.nowhere:Gone\ngamma = lab_package:Spoken"
    install(
        **{**ENTRY_POINTS, "fidm.channels": lines, "fidm.datasets": "numbers = made_up.toy_study:DATASET"}
    )
    assert main(["list", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert list(found) == list(SEAMS)
    described = {
        (seam, one["name"]): (one["what"], one["package"])
        for seam, listed in found.items()
        for one in listed["entries"]
    }
    assert described["channels", "spoken"] == ("Seconds spoken, under another name.", "toy")
    assert described["formats", "piped"] == ("Piped text (.pipe, .csv)", "toy")
    assert described["grounders", "arrows"] == ("Read arrows: every one is a square.", "toy")
    assert described["languages", "xx-de"] == ("German", "toy")
    assert described["tasks", "museum"] == (fidm.read_task("errands").title, "toy")
    assert described["datasets", "numbers"] == ("Named numbers", "toy")
    assert described["tasks", "grocery"][1] == "fidm"
    assert described["datasets", "justhink"][1] == "fidm-studies"
    assert all(what for what, _ in described.values())
    problems = found["channels"]["problems"]
    assert [("'gone'" in one, "is ignored" in one) for one in problems] == [(True, False), (False, True)]
    assert main(["list", "channels"]) == 0
    shown = capsys.readouterr().out
    assert "spoken" in shown
    assert "'gone' of the package toy" in shown
    assert "grocery" not in shown


def test_list_is_quick_because_it_imports_little():
    code = (
        "import sys; from fidm.cli.main import main; main(['list'])\n"
        "print([x for x in ('matplotlib', 'torch', 'transformers', 'scipy.stats') if x in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
