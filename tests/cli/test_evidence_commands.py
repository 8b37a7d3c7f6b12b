"""``fidm evidence`` and ``fidm localize``: what they print, what they write, and how they refuse."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from cyclopts import App

import fidm
from fidm.cli.evidence import evidence, file_name, localize
from fidm.grounding.ground import ground
from fidm.grounding.store import write_grounding
from fidm.simulate.talk import simulate_talks

app = App(result_action="return_value")
app.command(evidence)
app.command(localize)


def run(*arguments):
    return app([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def cohort():
    return fidm.simulate_cohort(fidm.load_task("grocery_small"), 25, seed=1, wrong_moves=0.05)


@pytest.fixture(scope="module")
def fit(cohort):
    return fidm.Model(fidm.load_task("grocery_small")).fit(cohort)


@pytest.fixture
def study(tmp_path, cohort, fit):
    """A study with its fit, so that not every test learns it again."""
    fidm.write_cohort(cohort, tmp_path / "study", tasks=["grocery_small"])
    fit.save(tmp_path / "study" / "fit.json")
    return tmp_path / "study"


@pytest.fixture(scope="module")
def talks():
    return simulate_talks(fidm.load_task("grocery"), 8, seed=4, language="en")


@pytest.fixture(scope="module")
def grounded(talks):
    return ground(talks.transcripts, fidm.load_task("grocery"))


@pytest.fixture
def spoken(tmp_path, grounded):
    write_grounding(tmp_path / "spoken", grounded, tasks=["grocery"])
    return tmp_path / "spoken"


@pytest.fixture(scope="module")
def learned(talks, tmp_path_factory):
    """A fit in a file, the quickest there is, for tests that do not care what was learned."""
    path = tmp_path_factory.mktemp("learned") / "fit.json"
    model = fidm.Model(fidm.load_task("grocery"))
    model.fit(talks.cohort, method="mle", population="pooled").save(path)
    return path


def test_evidence_is_shown_and_written(study, cohort, capsys):
    assert run("evidence", study, "--top", 4) == 0
    out = capsys.readouterr().out
    assert "Evidence for 25 participants" in out
    assert "had a probability below 5%" in out
    assert "duration residual" in out
    assert "Most unexpected actions" in out
    assert "Research use only, not a diagnosis." in out
    folder = study / "results"
    actions = pl.read_parquet(folder / "evidence-actions.parquet")
    assert actions.height == cohort.n_steps
    assert pl.read_parquet(folder / "evidence-segments.parquet").height == cohort.n_segments
    top = pl.read_csv(folder / "evidence-top.csv")
    assert top["unexpectedness"][0] == pytest.approx(actions["unexpectedness"].max())
    for name in ("evidence.png", "evidence.pdf", "evidence-summary.csv", "evidence-people.csv"):
        assert (folder / name).stat().st_size > 100
    said = json.loads((folder / "evidence.json").read_text("utf-8"))
    assert said["experiment"] == "evidence"
    assert said["result"]["n_steps"] == cohort.n_steps
    rows = [line for line in out.splitlines() if line.strip().startswith("P00000")]
    assert len(rows) == 4
    assert "median" in out
    assert "below 0" in out
    assert not [line for line in out.splitlines() if line.rstrip().endswith(" paper")]


def test_one_person_is_shown_without_words_where_there_are_none(study, capsys):
    assert run("evidence", study, "--participant", "P0000003") == 0
    out = capsys.readouterr().out
    assert "P0000003: η" in out
    assert "segments in duration" in out
    assert "the figure shows P0000003" in out
    assert "said" not in out
    for ending in ("png", "pdf"):
        assert (study / "results" / f"evidence-P0000003.{ending}").stat().st_size > 1000
        assert not (study / "results" / f"evidence.{ending}").exists()


def residual_rows(out):
    """The rows of each table of segments, by channel."""
    found, channel = {}, None
    for line in out.splitlines():
        if line.startswith("Heaviest segments in "):
            channel = line.removeprefix("Heaviest segments in ").split(",")[0]
            found[channel] = []
        elif channel and line.strip() and line.split()[0] == "1":
            found[channel].append(float(line.split()[5]))
    return found


@pytest.mark.usefixtures("no_pictures")
def test_as_many_segments_as_asked_for_and_only_heavy_ones(study, capsys):
    run("evidence", study, "--participant", "P0000003", "--top", 2)
    few = residual_rows(capsys.readouterr().out)
    assert len(few["duration"]) == 2
    run("evidence", study, "--participant", "P0000003", "--top", 500)
    shown = residual_rows(capsys.readouterr().out)
    segments = pl.read_parquet(study / "results" / "evidence-segments.parquet")
    own = segments.filter(pl.col("participant") == "P0000003")
    for channel in ("duration", "characters"):
        values = own[f"{channel}_residual"].drop_nulls()
        assert 2 < len(shown[channel]) == (values > math.log(1.25)).sum() < len(values)


@pytest.mark.usefixtures("no_pictures")
def test_only_actions_that_were_not_a_best_one_are_shown(study, capsys):
    run("evidence", study, "--participant", "P0000003", "--top", 5000)
    out = capsys.readouterr().out
    actions = pl.read_parquet(study / "results" / "evidence-actions.parquet")
    own = actions.filter((pl.col("participant") == "P0000003") & pl.col("counts"))
    table = out.split("Most unexpected actions")[1].split("Heaviest segments")[0]
    shown = [line for line in table.splitlines() if "%" in line]
    assert 0 < len(shown) == (own["q_gap"] > 1e-8).sum() < own.height


@pytest.mark.usefixtures("no_pictures")
def test_who_always_did_the_best_is_said_to_have_no_worse_action(tmp_path, fit, capsys):
    task = fidm.load_task("grocery_small")
    fit.save(tmp_path / "fit.json")
    best = fidm.walk(task, fidm.solve(task), 1e6, seed=1, label="best")
    fidm.write_cohort(fidm.Cohort.from_traces([best]), tmp_path / "one", tasks=["grocery_small"])
    for more in ((), ("--participant", "best")):
        assert run("evidence", tmp_path / "one", "--use", tmp_path / "fit.json", *more) == 0
        out = capsys.readouterr().out
        assert "every counted action was a best one" in out
        assert "Most unexpected actions" not in out


@pytest.mark.usefixtures("no_pictures")
def test_who_has_no_steps_has_no_figure_and_no_sensitivity(tmp_path, cohort, capsys):
    first, last = cohort.step_offsets[cohort.episode_offsets[2:4]]
    kept = np.r_[:first, last : cohort.n_steps]
    offsets = cohort.step_offsets.copy()
    offsets[cohort.episode_offsets[3] :] -= last - first
    silent = replace(
        cohort,
        step_offsets=offsets,
        state=cohort.state[kept],
        action=cohort.action[kept],
        segment=cohort.segment[kept],
    )
    fidm.write_cohort(silent, tmp_path, tasks=["grocery_small"])
    assert run("evidence", tmp_path, "--participant", cohort.ids[2]) == 0
    assert f"{cohort.ids[2]}: η not estimated, 0 counted actions" in capsys.readouterr().out
    assert not list((tmp_path / "results").glob("*.png"))


def test_nothing_is_said_of_pauses_that_were_not_recorded(tmp_path, cohort, capsys):
    who = cohort.ids[0]
    table = cohort.segment_table()
    unknown = table.with_columns(pause_s=pl.when(pl.col("participant") != who).then("pause_s"))
    fidm.write_cohort(cohort.with_segments(unknown), tmp_path / "study", tasks=["grocery_small"])
    assert run("evidence", tmp_path / "study", "--participant", who) == 0
    out = capsys.readouterr().out
    assert "! pause and pause presence: not estimated: not recorded" in out
    assert "in pause" not in out
    assert "in duration" in out


def test_actions_not_counted_are_told_by_cause(spoken, capsys):
    run("evidence", spoken)
    out = capsys.readouterr().out
    actions = pl.read_parquet(spoken / "results" / "evidence-actions.parquet")
    n = actions.filter(pl.col("inferred") & pl.col("q_gap").is_not_null()).height
    assert f"{n:,} inferred" in out
    assert "no choice" in out


def test_a_file_name_is_safe_and_its_own():
    assert file_name("P0000003") == "P0000003"
    odd = [file_name(name) for name in ("a/b", "a:b", "../a", "A 1", "x" * 300)]
    assert len(set(odd)) == 5
    assert not [name for name in odd if {"/", ":", " "} & set(name) or len(name) > 80]


@pytest.mark.usefixtures("no_pictures")
def test_rows_lead_back_to_the_dialogs(spoken, talks, capsys):
    who = talks.cohort.ids[2]
    assert run("evidence", spoken, "--participant", who, "--top", 3) == 0
    out = capsys.readouterr().out
    assert "said" in out
    actions = pl.read_parquet(spoken / "results" / "evidence-actions.parquet")
    moves = pl.read_parquet(spoken / "grounding" / "moves.parquet")
    turns = pl.read_parquet(spoken / "grounding" / "turns.parquet")
    keys = ["participant", "episode", "step"]
    columns = [*keys, "turn", "word_start", "word_end"]
    assert actions.select(columns).sort(keys).equals(moves.select(columns).sort(keys))
    timed = actions.join(turns, on=["participant", "episode", "turn"], how="left")
    assert (timed["turn_start_s"] == timed["start_s"]).all()
    segments = pl.read_parquet(spoken / "results" / "evidence-segments.parquet")
    grounded = pl.read_parquet(spoken / "grounding" / "segments.parquet")
    joined = segments.join(grounded, on=["participant", "episode", "segment"], how="left", suffix="_there")
    for name in ("first_turn", "last_turn", "start_s", "end_s"):
        assert joined[name].equals(joined[f"{name}_there"], check_names=False)
    top = actions.filter((pl.col("participant") == who) & pl.col("counts"))
    first = top.sort("unexpectedness", descending=True).row(0, named=True)
    text = turns.filter(pl.col("participant") == who, pl.col("turn") == first["turn"])["text"][0]
    words = " ".join(text[first["word_start"] : first["word_end"]].split())
    assert words[:20] in out


def test_no_file_holds_what_was_said(spoken, talks):
    who = talks.cohort.ids[2]
    run("evidence", spoken, "--participant", who)
    run("localize", spoken, "--bootstrap", 20)
    turns = pl.read_parquet(spoken / "grounding" / "turns.parquet")
    phrases = {text for text in turns["text"].to_list() if len(text) > 12}
    assert len(phrases) > 20
    for path in (spoken / "results").iterdir():
        if path.suffix == ".parquet":
            table = pl.read_parquet(path)
            held = "\n".join(
                value for name, kind in table.schema.items() if kind in (pl.String, pl.Enum, pl.Categorical)
                for value in table[name].cast(pl.String).drop_nulls().unique().to_list()
            )  # fmt: skip
        else:
            held = path.read_bytes().decode("utf-8", errors="replace")
        assert not [phrase for phrase in phrases if phrase in held], path.name


@pytest.mark.usefixtures("no_pictures")
def test_json_holds_no_words_either(spoken, talks, capsys):
    assert run("evidence", spoken, "--participant", talks.cohort.ids[2], "--json") == 0
    out = capsys.readouterr().out
    said = json.loads(out)["result"]
    who = talks.cohort.ids[2]
    assert said["participant"] == who
    actions = pl.read_parquet(spoken / "results" / "evidence-actions.parquet")
    own = actions.filter((pl.col("participant") == who) & pl.col("counts"))
    assert said["n_actions"] == own.height
    assert [row["unexpectedness"] for row in said["most_unexpected"]] == (
        own["unexpectedness"].sort(descending=True).head(10).to_list()
    )
    segments = pl.read_parquet(spoken / "results" / "evidence-segments.parquet")
    named = segments.filter(pl.col("participant") == who)["segment"].to_list()
    assert [row["segment"] for row in said["segments"]] == named
    assert {row["participant"] for row in said["most_unexpected"] + said["segments"]} == {who}
    assert (
        json.loads((spoken / "results" / "evidence.json").read_text("utf-8"))["result"]["n_participants"] == 8
    )
    turns = pl.read_parquet(spoken / "grounding" / "turns.parquet")
    assert not [text for text in turns["text"].to_list() if len(text) > 12 and text in out]


@pytest.mark.usefixtures("no_pictures")
def test_a_grounding_of_other_steps_is_not_joined(spoken, capsys):
    path = spoken / "grounding" / "moves.parquet"
    pl.read_parquet(path).with_columns(action=pl.lit("N")).write_parquet(path)
    assert run("evidence", spoken) == 0
    assert "study's grounding" in capsys.readouterr().out
    assert "turn" not in pl.read_parquet(spoken / "results" / "evidence-actions.parquet").columns


def kept(column, kind):
    return pl.col(column).cast(kind)


DAMAGES = {
    "turns without text": ("turns", lambda table: table.drop("text"), "no column 'text'"),
    "turns without times": ("turns", lambda table: table.drop("start_s"), "no column 'start_s'"),
    "turn as text": ("turns", lambda table: table.with_columns(kept("turn", pl.String)), "'turn' does not"),
    "text empty": ("turns", lambda table: table.with_columns(text=pl.lit(None)), "'text' has empty cells"),
    "times as words": ("turns", lambda table: table.with_columns(end_s=pl.lit("SECRET")), "hold numbers"),
    "a turn twice": ("turns", lambda table: pl.concat([table, table]), "has a turn twice"),
    "no word_start": ("moves", lambda table: table.drop("word_start"), "no column 'word_start'"),
    "no action": ("moves", lambda table: table.drop("action"), "no column 'action'"),
    "step as text": ("moves", lambda table: table.with_columns(kept("step", pl.String)), "'step' does not"),
    "step as words": ("moves", lambda table: table.with_columns(step=pl.lit("SECRET")), "whole numbers"),
    "action a number": ("moves", lambda table: table.with_columns(action=pl.lit(3)), "'action' does not"),
    "too large": ("moves", lambda table: table.with_columns(turn=pl.lit(2**40)), "too large"),
    "below 0": ("moves", lambda table: table.with_columns(word_start=pl.lit(-4)), "below 0"),
    "a move twice": ("moves", lambda table: pl.concat([table, table]), "has a step twice"),
    "person a number": ("segments", lambda table: table.with_columns(participant=pl.lit(7)), "hold text"),
    "no turns": ("segments", lambda table: table.drop("turns"), "no column 'turns'"),
    "turns empty": ("segments", lambda table: table.with_columns(turns=pl.lit(None)), "empty cells"),
    "turns a list": ("segments", lambda table: table.with_columns(turns=pl.lit([1])), "'turns' does not"),
    "turns as words": ("segments", lambda table: table.with_columns(turns=pl.lit("SECRET")), "list numbers"),
    "a segment twice": ("segments", lambda table: pl.concat([table, table[:1]]), "has a segment twice"),
    "nothing": ("segments", lambda table: pl.DataFrame(), "no column 'participant'"),
}


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_grounding_is_told_and_not_used(spoken, talks, learned, capsys, damage):
    name, change, words = DAMAGES[damage]
    path = spoken / "grounding" / f"{name}.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    assert run("evidence", spoken, "--use", learned, "--participant", talks.cohort.ids[2], "--top", 3) == 0
    said = capsys.readouterr()
    assert f"! grounding/{name}.parquet cannot be used: it" in said.out
    assert words in said.out
    assert "Run fidm ground" in said.out
    assert "words are shown here only" not in said.out
    assert "SECRET" not in said.out + said.err
    study = fidm.read_cohort(spoken)
    segments = pl.read_parquet(spoken / "results" / "evidence-segments.parquet")
    actions = pl.read_parquet(spoken / "results" / "evidence-actions.parquet")
    assert (segments.height, actions.height) == (study.n_segments, study.n_steps)
    assert "turn" not in actions.columns


@pytest.mark.usefixtures("no_pictures")
def test_a_grounding_that_cannot_be_read_is_told_and_not_used(spoken, talks, learned, capsys):
    place = spoken / "grounding"
    whole = (place / "turns.parquet").read_bytes()
    (place / "turns.parquet").write_bytes(whole[: len(whole) // 2])
    assert run("evidence", spoken, "--use", learned) == 0
    assert "grounding/turns.parquet cannot be used: it cannot be read" in capsys.readouterr().out
    (place / "turns.parquet").unlink()
    assert run("evidence", spoken, "--use", learned, "--participant", talks.cohort.ids[2], "--json") == 0
    said = capsys.readouterr()
    assert "grounding/turns.parquet cannot be used: it is not there" in said.err
    json.loads(said.out)
    place.rename(spoken / "elsewhere")
    place.write_text("", "utf-8")
    assert run("evidence", spoken, "--use", learned) == 0
    assert "grounding cannot be used: it is no folder" in capsys.readouterr().out


@pytest.mark.usefixtures("no_pictures")
def test_other_types_that_mean_the_same_are_understood(spoken, talks, capsys):
    for name, change in (
        ("moves", {"step": pl.Int64, "action": pl.Categorical}),
        ("segments", {"start_s": pl.Float32, "first_turn": pl.UInt8}),
    ):
        path = spoken / "grounding" / f"{name}.parquet"
        pl.read_parquet(path).cast(change).write_parquet(path)
    assert run("evidence", spoken, "--participant", talks.cohort.ids[2]) == 0
    out = capsys.readouterr().out
    assert "cannot be used" not in out
    assert "words are shown here only" in out


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device"), r"results: cannot be written: No space left on device\."),
        (OSError("failed"), r"results: cannot be written\. Is the disk full\?"),
        (pl.exceptions.ComputeError("failed"), r"results: cannot be written\. Is the disk full\?"),
    ],
)
def test_a_full_disk(study, monkeypatch, error, words):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(pl.DataFrame, "write_parquet", fail)
    with pytest.raises(fidm.DataError, match=words):
        run("evidence", study)
    assert not list((study / "results").iterdir())


@pytest.mark.usefixtures("no_pictures")
def test_a_fit_of_the_study_or_of_elsewhere_is_used(study, cohort, tmp_path, capsys):
    task = fidm.load_task("grocery_small")
    fidm.Model(task).fit(cohort[:20]).save(study / "fit.json")
    assert run("evidence", study) == 0
    assert "learned from 20 participants of this study" in capsys.readouterr().out
    fidm.Model(task).fit(cohort[:15], method="mle").save(tmp_path / "other.json")
    out = tmp_path / "there"
    assert run("localize", study, "--use", tmp_path / "other.json", "--out", out, "--bootstrap", 20) == 0
    assert json.loads((out / "localize.json").read_text("utf-8"))["settings"]["method"] == "mle"


def test_a_study_without_segments_has_evidence_from_actions(tmp_path, cohort, capsys):
    bare = fidm.Cohort.from_traces(trace for name in cohort.ids.to_list() for trace in cohort.traces(name))
    fidm.write_cohort(bare, tmp_path / "bare", tasks=["grocery_small"])
    assert run("evidence", tmp_path / "bare") == 0
    out = capsys.readouterr().out
    assert "choices" in out.splitlines()[0]
    assert "segment" not in out.partition("Wrote")[0]
    assert "Most unexpected actions" in out


def test_localization_stands_beside_the_papers(study, cohort, capsys):
    assert run("localize", study, "--bootstrap", 50) == 0
    out = capsys.readouterr().out
    assert "0.902 [0.877, 0.925]" in out
    assert "5.95" in out
    assert "Q gap alone" in out
    assert out.count("top tenth") == 4
    assert out.count("pooled over people:") == 5  # four tables and a note
    assert "there by construction" in out
    assert "Research use only, not a diagnosis." in out
    folder = study / "results"
    table = pl.read_csv(folder / "localize.csv")
    assert table["score"].to_list() == ["unexpectedness", "q_gap"] * 4
    assert f"{table['auc'][0]:.3f} [" in out
    assert f"{table['pooled_enrichment'][0]:.2f}" in out
    assert pl.read_csv(folder / "localize-people.csv")["participant"].n_unique() == len(cohort)
    for name in ("localize.png", "localize.pdf"):
        assert (folder / name).stat().st_size > 1000


@pytest.mark.usefixtures("no_pictures")
def test_localization_as_json(study, capsys):
    assert run("localize", study, "--bootstrap", 20, "--seed", 3, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["seed"] == 3
    assert {row["anchor"] for row in said["result"]["anchors"]} >= {"route_divergence", "bypass"}
    assert all("pooled_enrichment" in row for row in said["result"]["anchors"])


@pytest.mark.usefixtures("no_pictures")
def test_one_person_has_no_interval(tmp_path, study, cohort, fit, capsys):
    fit.save(tmp_path / "fit.json")
    run("localize", study, "--bootstrap", 20)
    people = pl.read_csv(study / "results" / "localize-people.csv").drop_nulls("auc")
    who = people.filter(pl.col("anchor") == "route_divergence")["participant"][0]
    fidm.write_cohort(cohort.select([who]), tmp_path / "one", tasks=["grocery_small"])
    capsys.readouterr()
    assert run("localize", tmp_path / "one", "--use", tmp_path / "fit.json") == 0
    assert "1 of 1 person has both kinds: too few to judge." in " ".join(capsys.readouterr().out.split())
    written = pl.read_csv(tmp_path / "one" / "results" / "localize.csv")
    assert written["auc"].null_count() == written["pooled_enrichment"].null_count() == 8
    assert run("evidence", tmp_path / "one", "--use", tmp_path / "fit.json") == 0


def test_what_cannot_be_is_refused(study, tmp_path):
    with pytest.raises(fidm.DataError, match="--top is 0"):
        run("evidence", study, "--top", 0)
    with pytest.raises(fidm.DataError, match="no participant 'P9'"):
        run("evidence", study, "--participant", "P9")
    with pytest.raises(fidm.DataError, match=r"'7' among the 25 people\. Similar ids: P0000007"):
        run("evidence", study, "--participant", "7")
    with pytest.raises(fidm.DataError, match="Similar ids: P0000012"):
        run("evidence", study, "--participant", "p0000012")
    with pytest.raises(fidm.DataError, match=r"^bootstrap is 0"):
        run("localize", study, "--bootstrap", 0)
    with pytest.raises(fidm.DataError, match=r"Write 0\.95"):
        run("localize", study, "--level", 95)
    assert not (study / "results").exists()


@pytest.mark.usefixtures("no_pictures")
def test_the_page_fits_in_eighty_columns(study, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    run("localize", study, "--bootstrap", 20)
    rows = [line for line in capsys.readouterr().out.splitlines() if "AUC within a person" in line]
    assert len(rows) == 4
    assert "0.902 [0.877, 0.925]" in rows[0]
    assert max(map(len, rows)) <= 80


@pytest.mark.usefixtures("no_pictures")
def test_tables_of_words_fit_in_eighty_columns(spoken, talks, learned, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    run("evidence", spoken, "--use", learned, "--participant", talks.cohort.ids[2], "--top", 4)
    everybody = capsys.readouterr().out
    run("evidence", spoken, "--use", learned, "--top", 4)
    lines = (everybody + capsys.readouterr().out).splitlines()
    rules = [line.rstrip() for line in lines if "────" in line]
    assert len(rules) > 5
    assert max(map(len, rules)) <= 80
    heads = [line.split() for line in lines if "−log p" in line]
    assert heads[0] == ["episode", "step", "segment", "action", "best", "p", "−log", "p", "said"]
    assert any(
        line.split()[:6] == ["episode", "segment", "moves", "observed", "expected", "residual"]
        for line in lines
    )
