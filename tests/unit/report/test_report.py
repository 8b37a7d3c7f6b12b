"""The report of a study: what it says of people, that it is one safe file, and that it leads back to nobody."""

from __future__ import annotations

import base64
import csv
import html.parser
import json
import math
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from classifications import with_tables, without_language

import fidm
from fidm.channels import parameter_words
from fidm.cohort import PROBLEM_SCHEMA
from fidm.errors import DataError
from fidm.fit.profile import STATUSES
from fidm.folder import StudyFolder
from fidm.grounding.ground import ground
from fidm.grounding.review.apply import read_proposed
from fidm.grounding.review.audit import sample_audit
from fidm.grounding.review.trail import Decision, Outcome, Trail
from fidm.grounding.review.verdicts import segment_key
from fidm.grounding.store import write_grounding
from fidm.pages import csp_hash
from fidm.present.numbers import (
    FLAGS,
    cell_text,
    estimate_text,
    in_one_way,
    number_text,
    percent_text,
    rounded,
    sentence,
)
from fidm.report import parts, sections_model
from fidm.report.opening import (
    ReportOptions,
    draw_names,
    open_for_report,
    read_key,
    rename,
    reviewer_names,
    segment_reviews,
    write_key,
)
from fidm.report.parts import scatter, text_column, with_interval
from fidm.report.people import people_parts, places_among, shared_part
from fidm.report.report import build_report, laid_out, write_report
from fidm.report.sections_model import (
    classification_section,
    groups_section,
    localisation_section,
    parameters_section,
    reliability_section,
)
from fidm.report.sections_study import audit_tables, grounding_section, method_section, overview, task_section
from fidm.simulate.talk import simulate_talks
from fidm.talk import Transcripts

EVIL = "</script><script>alert(1)</script><!-- 🛒 שלום & “so”"
IDS = ("Ann-Lee", "陳大文", "<b>7</b>", "x 4", "Zeta-5", "Zeta-6", "Zeta-7", "Zeta-8")
SIZE_PER_PERSON = 75_000


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Eight people with odd names who talk English; one of them is excluded, and something nasty is said."""
    talks = simulate_talks(fidm.load_task("grocery"), 8, seed=4, language="en")
    transcripts = []
    for name, item in zip(IDS, talks.transcripts, strict=True):
        turns = list(item.turns)
        turns[0] = replace(turns[0], text=EVIL, speaker="Dr Nobody-Known")
        transcripts.append(replace(item, participant=name, turns=tuple(turns), source=f"{name}-tape.cha"))
    folder = tmp_path_factory.mktemp("report") / "secret-clinic"
    folder.mkdir()
    pl.DataFrame(
        {
            "participant": IDS,
            "split": ["train", "test"] * 4,
            "diagnosis": ["normal", "mci"] * 4,
            "age_years": range(71, 79),
            "nickname": [f"nick{i}name" for i in range(8)],
            "excluded": [None] * 7 + ["is the sister of Ann-Lee"],
        }
    ).write_csv(folder / "participants.csv")
    write_grounding(
        folder, ground(Transcripts(tuple(transcripts)), fidm.load_task("grocery")), tasks=["grocery"]
    )
    cohort = fidm.read_cohort(folder)
    fidm.Model(fidm.load_task("grocery")).fit(cohort).save(folder / "fit.json")
    return folder


@pytest.fixture(scope="module")
def opened(study):
    return open_for_report(study, ReportOptions(workers=1))


@pytest.fixture(scope="module")
def built(study):
    return build_report(study, classify=False)


@pytest.fixture(scope="module")
def hidden(study, tmp_path_factory):
    folder = tmp_path_factory.mktemp("hidden")
    write_key(folder / "key.csv", {name: f"P{i:03d}" for i, name in enumerate(reversed(IDS), start=1)})
    return write_report(study, folder / "page.html", classify=False, deidentify=True, key=folder / "key.csv")


class Elements(html.parser.HTMLParser):
    """The elements of a page, and the text of its scripts and styles."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found, self.inside = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside.append([tag, dict(attrs), ""])

    def handle_data(self, data):
        if self.inside and self.cdata_elem is not None:
            self.inside[-1][2] += data


# ---------------------------------------------------------------------- people


def test_a_persons_steps_are_the_evidence_and_lead_to_the_words(opened):
    known = opened.known
    moves = pl.read_parquet(opened.folder / "grounding" / "moves.parquet")
    turns = pl.read_parquet(opened.folder / "grounding" / "turns.parquet")
    for person in people_parts(known):
        (episode,) = person["episodes"]
        steps = episode["steps"]
        assert len({len(column) for column in steps.values()}) == 1
        own = known.found.actions.filter(participant=person["id"])
        acted = [name or "OUT" for name in own["action"].to_list()]  # evidence leaves leaving out
        assert steps["action"] == acted == moves.filter(participant=person["id"])["action"].to_list()
        assert acted[-1] == "OUT"
        assert steps["counts"] == own["counts"].to_list()
        expected = own["unexpectedness"].to_list()
        assert [one is None for one in steps["unexpectedness"]] == [one is None for one in expected]
        pairs = [pair for pair in zip(steps["unexpectedness"], expected, strict=True) if pair[1] is not None]
        assert [a for a, _ in pairs] == pytest.approx([b for _, b in pairs], rel=6e-6)
        said = {one["turn"]: one["text"] for one in episode["turns"]}
        assert list(said.values()) == turns.filter(participant=person["id"])["text"].to_list()
        mine = moves.filter(participant=person["id"])
        assert steps["turn"] == mine["turn"].to_list()
        assert steps["from"] == mine["word_start"].to_list()
        spoken = [
            said[turn][a:b] for turn, a, b in zip(steps["turn"], steps["from"], steps["to"], strict=True)
        ]
        assert all(spoken)


def test_cells_follow_each_other_on_the_map(opened):
    scene = shared_part(opened.known)["scenes"][0]
    for person in people_parts(opened.known):
        steps = person["episodes"][0]["steps"]
        assert person["episodes"][0]["scene"] == 0
        assert steps["cell"][1:] == steps["next_cell"][:-1]
        for cell, after, action in zip(steps["cell"], steps["next_cell"], steps["action"], strict=True):
            if action in ("N", "S", "E", "W"):
                assert scene["neighbour"][cell]["NSEW".index(action)] == after
            elif after != -1:
                assert after == cell


def test_segments_have_their_effort_their_steps_and_their_turns(opened):
    found = opened.known.found
    for person in people_parts(opened.known):
        episode = person["episodes"][0]
        own = {row["segment"]: row for row in found.segments.filter(participant=person["id"]).to_dicts()}
        assert {one["segment"] for one in episode["segments"]} == set(own)
        for one in episode["segments"]:
            row = own[one["segment"]]
            assert set(one["effort"]) == {c for c in found.channels if row[f"{c}_observed"] is not None}
            for channel, cells in one["effort"].items():
                for part, value in cells.items():
                    assert value == pytest.approx(row[f"{channel}_{part}"], rel=6e-6)
            if one["steps"] is not None:
                first, last = one["steps"]
                assert episode["steps"]["segment"][first : last + 1] == [one["segment"]] * (last + 1 - first)
            spoken = [turn for turn in episode["turns"] if turn["segment"] == one["segment"]]
            assert spoken
            assert all(one["first_turn"] <= turn["turn"] <= one["last_turn"] for turn in spoken)
            assert all(turn["role"] == "participant" for turn in spoken)


def test_fewer_than_ten_people_have_no_place_among_them(opened):
    assert {row["percentile"] for one in people_parts(opened.known) for row in one["profile"]} == {None}
    assert all(row["p10"] is row["p90"] is None for row in shared_part(opened.known)["parameters"])


def test_the_profile_has_its_place_among_the_others(opened, monkeypatch):
    monkeypatch.setattr("fidm.report.people.FEWEST_FOR_SHARES", 2)
    profile = opened.known.profile
    people = list(people_parts(opened.known))
    for k, name in enumerate(profile.parameters):
        rows = [person["profile"][k] for person in people]
        assert [row["parameter"] for row in rows] == [name] * len(people)
        assert [row["estimate"] for row in rows] == [rounded(value) for value in profile.estimate[:, k]]
        order = np.argsort(profile.estimate[:, k], kind="stable")
        places = np.array([row["percentile"] for row in rows])
        assert (np.diff(places[order]) >= 0).all()
        assert places.mean() == pytest.approx(50, abs=0.1)
        value = profile.estimate[:, k]
        below = [np.mean([(v > o) + (v == o) / 2 for o in np.delete(value, i)]) for i, v in enumerate(value)]
        assert places == pytest.approx(100 * np.array(below), abs=1e-3)  # the share of the others below
        things = "steps" if k == 0 else "paused segments" if name == "pause" else "segments"
        assert all(re.fullmatch(rf"{row['n']} {things.rstrip('s')}s?", row["rests_on"]) for row in rows)
        assert all((row["said"] is None) == (row["status"] == "ok") for row in rows)


def test_nobody_has_a_place_where_people_may_not_be_distinguishable():
    rng, who = np.random.default_rng(3), np.repeat(np.arange(12), 9)
    count = 1 + rng.poisson(0.8, 108)
    spoken = rng.lognormal(rng.normal(0, 0.5, 12)[who], 0.2)
    table = pl.DataFrame(
        {
            "participant": [f"P{j}" for j in who],
            "segment": np.arange(108),
            "n_turns": count,
            "duration_s": spoken,
        }
    )
    channels = (
        fidm.channels.NegativeBinomial("turns", "n_turns", design=()),
        fidm.channels.LogNormal("duration", "duration_s", design=()),
    )
    profile = fidm.fit_effort(table, channels).profile(table)
    assert np.isfinite(profile.estimate).all()
    turns, duration = np.isnan(places_among(profile)).T
    assert turns.all()
    assert not duration.any()


def test_the_lapse_rate_is_said_to_be_the_most_probable_one(opened):
    fit = opened.known.fit
    shares = fit.prior.plausible.weight[fit.prior.plausible.lapse == 0]
    (shared,) = (one for one in parameters_section(opened)["tables"] if one["id"] == "population")
    assert "the most probable one" in shared["note"]
    assert f"has a probability of {percent_text(float(shares.sum()))} (" in shared["note"]
    given = replace(fit.prior.plausible, lapse=np.full_like(fit.prior.plausible.lapse, 0.1))
    assert math.isnan(replace(fit.prior, plausible=given).no_lapse)
    assert math.isnan(replace(fit.prior, plausible=None).no_lapse)


def test_people_are_listed_as_they_stand_in_the_page(opened):
    shared = shared_part(opened.known, chosen=["Zeta-5", "Ann-Lee"])
    assert [(one["n"], one["id"]) for one in shared["people"]] == [(1, "Zeta-5"), (2, "Ann-Lee")]
    assert shared["people"][1]["label"] == "normal"
    assert shared["people"][1]["values"]["action_sensitivity"] == rounded(
        opened.known.profile.action_sensitivity[0]
    )
    assert ["age (years)", 71] in next(people_parts(opened.known))["facts"]


# ---------------------------------------------------------------------- sections


def test_every_figure_has_its_table(built):
    for section in built.data["sections"]:
        names = {table["id"] for table in section["tables"]}
        for figure in section["figures"]:
            assert figure["table"] in names
            assert figure["svg"].startswith("<svg")
            assert figure["alt"]
        for table in section["tables"]:
            assert all(len(row) == len(table["columns"]) for row in table["rows"])
            assert table["rows"]
    ids = [t["id"] for s in built.data["sections"] for t in (*s["tables"], *s["figures"])]
    assert len(set(ids)) == len(ids)


def test_who_is_left_out_is_said(opened):
    said = " ".join(overview(opened)["paragraphs"])
    assert "7 participants with 7 episodes" in said
    assert "1 participant excluded" in said
    (who,) = [one["rows"] for one in overview(opened)["tables"] if one["id"] == "excluded"]
    assert [reason for _, reason in who] == ["is the sister of Ann-Lee"]
    groups = next(table for table in overview(opened)["tables"] if table["id"] == "groups")
    assert sorted(map(tuple, groups["rows"])) == [("mci", "test", 3, 3), ("normal", "train", 4, 4)]


def test_the_task_is_checked(opened):
    found = task_section(opened)
    assert "can be used" in found["paragraphs"][0]
    values = next(table for table in found["tables"] if table["id"] == "values-0")
    assert len(values["rows"]) == opened.known.tasks[0].grid.grid.n_cells
    assert {figure["id"] for figure in found["figures"]} == {"map-0", "value-0"}


def test_nobody_has_audited_it_until_somebody_has(opened, study):
    tables, said = audit_tables(opened)
    assert not tables
    assert said[0].startswith("Nobody has audited")
    sheet = sample_audit(study, 3, seed=5)
    try:
        tables, said = audit_tables(opened)
        assert not tables
        assert "audit-5.csv" in said[0]
        rows = list(csv.DictReader(sheet.read_text("utf-8-sig").splitlines()))
        with sheet.open("w", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows({**row, "verdict": "ok"} for row in rows)
        tables, said = audit_tables(opened)
        assert said == []
        row = tables[0]["rows"][0]
        assert row[:3] == ["audit-5.csv", 3, 1.0]
        assert row[3] < 0.5 < row[4] == 1.0
    finally:
        sheet.unlink()


def test_reviewers_and_their_agreement_are_told_and_can_be_hidden(opened, study):
    trail = Trail(study)
    nothing = Outcome("NONE", ())
    try:
        for reviewer, kind in (("Zoë", "accept"), ("Abe", "reject")):
            trail.append(
                Decision(
                    reviewer=reviewer, kind=kind, participant="Zeta-5", episode="1", segment="1", turns="2",
                    words="0" * 64, task=opened.known.tasks[0].fingerprint, start=0, old=nothing,
                    new=nothing if kind == "accept" else None, comment="a comment nobody may read",
                )
            )  # fmt: skip
        tables, said = audit_tables(opened)
        assert "2 decisions by 2 people" in said[0]
        assert tables[0]["id"] == "agreement"
        assert tables[0]["rows"][0][:4] == ["Abe", "Zoë", 1, 0.0]
        known = replace(opened.known, is_deidentified=True)
        tables, said = audit_tables(replace(opened, known=known))
        text = json.dumps([tables, said])
        assert "reviewer 1" in text
        for secret in (b"a", b"b", b"c", b"d"):
            tables, said = audit_tables(replace(opened, known=known, secret=secret))
            assert tables[0]["rows"][0][:2] == [
                "reviewer 1",
                "reviewer 2",
            ]  # and not who comes first in the alphabet
        assert "Abe" not in text
        assert "comment" not in text
    finally:
        for path in (study / "grounding").glob("review*"):
            path.unlink()


def test_who_decided_and_why_stands_with_the_segment(opened, study):
    task = opened.known.tasks[0]
    proposed = read_proposed(study, task)
    dialog = next(one for one in proposed.dialogs if one.transcript.participant == "Zeta-5")
    first, second = dialog.segments[:2]
    nothing = Outcome("NONE", ())

    def decide(one, who, kind, comment=""):
        _, episode, turns, words = segment_key(dialog, one)
        Trail(study).append(
            Decision(
                reviewer=who, kind=kind, participant="Zeta-5", episode=episode,
                segment=str(one.segment.number), turns=turns, words=words, task=task.fingerprint, start=0,
                old=nothing, new=None, comment=comment,
            )
        )  # fmt: skip

    try:
        decide(first, "Zoë", "reject", "coughs <b>only</b>")
        decide(second, "Abe", "reject")
        decide(second, "Abe", "withdraw")
        found = segment_reviews(study, opened.known.tasks, task.fingerprint)
        names, secret = {"Zeta-5": "P009"}, b"drawn"
        hidden = segment_reviews(study, opened.known.tasks, task.fingerprint, names=names, secret=secret)
    finally:
        for path in (study / "grounding").glob("review*"):
            path.unlink()
    (made,) = found.pop(("Zeta-5", "1", "1"))
    assert found == {}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made.pop("at"))
    assert made == {
        "reviewer": "Zoë", "kind": "reject", "words": "rejected", "settles": False, "in_force": True,
        "comment": "coughs <b>only</b>",
    }  # fmt: skip
    (other,) = hidden[("P009", "1", "1")]
    number = reviewer_names(["Abe", "Zoë"], hide=True, secret=secret)["Zoë"]
    assert (other["reviewer"], other["at"], other["comment"]) == (number, None, None)
    known = replace(opened.known, reviews={("Zeta-5", "1", "1"): [made]})
    (person,) = people_parts(known, chosen=["Zeta-5"])
    reviews = [segment["reviews"] for segment in person["episodes"][0]["segments"]]
    assert reviews == [[made], *([[]] * (len(reviews) - 1))]


def test_the_words_became_moves(opened):
    found = grounding_section(opened)
    statuses = next(table for table in found["tables"] if table["id"] == "statuses")
    assert sum(row[1] for row in statuses["rows"]) == opened.grounded.height
    assert "grounder “rules”" in found["paragraphs"][0]


def test_estimates_stand_in_a_table(opened):
    profile = opened.known.profile
    profile = replace(profile, n=np.minimum(profile.n, 2))  # few, whatever else is said of them
    found = parameters_section(replace(opened, known=replace(opened.known, profile=profile)))
    estimates = next(table for table in found["tables"] if table["id"] == "estimates")
    rows = {row[0]: row for row in estimates["rows"]}
    for i, name in enumerate(profile.participants):
        assert rows[name][2] == pytest.approx(profile.estimate[i, 0], rel=1e-5)
        assert rows[name][3:5] == pytest.approx([profile.low[i, 0], profile.high[i, 0]], rel=1e-5)
        assert rows[name][5] == STATUSES[profile.status[i, 0]]
    shown = laid_out(estimates)
    assert len(shown["columns"]) == 2 + len(profile.parameters)
    letters = {words: letter for letter, words in shown["marks"]}
    cells = {row[0]["text"]: row[2:] for row in shown["rows"]}
    for i, name in enumerate(profile.participants):
        flags = [{FLAGS.get(STATUSES[code])} - {None} for code in profile.status[i]]
        flags = [
            own | ({FLAGS["few_observations"]} if few else set())
            for own, few in zip(flags, profile.is_few[i], strict=True)
        ]
        assert [set(filter(None, cell["mark"].split(","))) for cell in cells[name]] == [
            {letters[flag] for flag in own} for own in flags
        ]
        eta, low, high = (
            number_text(rounded(x[i, 0])) for x in (profile.estimate, profile.low, profile.high)
        )
        assert (cells[name][0]["text"], cells[name][0]["more"]) == (eta, f"({low} to {high})")
    assert letters


def test_flagged_estimates_are_marked_in_the_scatter(opened):
    profile = replace(opened.known.profile, status=np.zeros_like(opened.known.profile.status))
    ax = scatter(profile, channel="duration", groups=None)
    assert not [line for line in ax.lines if line.get_marker() == "x"]
    status = profile.status.copy()
    status[2, 0] = status[4, 1] = 1
    ax = scatter(replace(profile, status=status), channel="duration", groups=None)
    (crosses,) = [line for line in ax.lines if line.get_marker() == "x"]
    assert crosses.get_xdata().tolist() == profile.action_sensitivity[[2, 4]].tolist()
    assert crosses.get_ydata().tolist() == profile["duration"][[2, 4]].tolist()
    assert any("(2)" in text.get_text() for text in ax.texts)


def test_changes_are_on_the_scale_of_their_error_and_only_where_reliability_allows(opened, monkeypatch):
    few = reliability_section(opened)["tables"][0]
    assert all(cell is None for row in few["rows"] for cell in row[3:])  # these are fewer than 10 people
    monkeypatch.setattr("fidm.experiments.reliability.FEWEST_FOR_SHARES", 5)
    found = reliability_section(opened)
    shown = found["tables"][0]
    names = [column["name"] for column in shown["columns"]]
    seen = set()
    for row in (dict(zip(names, row, strict=True)) for row in shown["rows"]):
        is_sure = row["low"] is not None and row["low"] > 0.5
        is_known = row["reliability"] is not None and row["reliability"] >= 0.5 and is_sure
        given = row["mdc"] is not None
        seen.add(given)
        assert given == (row["mdc_shrunk"] is not None)
        if given:
            assert is_known
            assert row["mdc"] == pytest.approx(1.96 * np.sqrt(2) * row["sem"], rel=1e-3)
            assert row["mdc_shrunk"] < row["mdc"]
    assert False in seen
    said = " ".join(found["paragraphs"])
    assert not re.search(r"[ (]\.\d", said)
    assert len(laid_out(shown)["columns"]) == 8
    assert "participants resampled 1,000 times" in shown["note"]


def test_the_estimates_shown_are_called_by_their_method(opened):
    by_likelihood = replace(opened.known, profile=replace(opened.known.profile, method="mle"))
    for known, shown in ((opened.known, "empirical Bayes"), (by_likelihood, "maximum likelihood")):
        (found,) = reliability_section(replace(opened, known=known))["tables"]
        assert f"This report shows estimates by {shown}." in found["note"]


def test_no_interval_of_localisation_has_its_reason(opened):
    found = localisation_section(opened)
    rows = found["tables"][0]["rows"]
    assert all(row[4] is None for row in rows)
    assert "fewer than 10 people" in found["paragraphs"][-1]
    assert "q_gap" not in " ".join(found["paragraphs"])


def test_one_thing_has_one_name(opened, built):
    words = {name: parameter_words(name) for name in opened.known.profile.parameters}
    sections = {section["id"]: section for section in built.data["sections"]}
    for name in ("spread", "flags"):
        shown = next(table for table in sections["parameters"]["tables"] if table["id"] == name)
        assert [row[0] for row in shown["rows"]] == list(words.values())
    reliable = sections["reliability"]["tables"][0]
    assert {row[0] for row in reliable["rows"]} == set(words.values())
    assert [one["words"] for one in built.data["shared"]["parameters"]] == list(words.values())
    goals = next(table for table in sections["task"]["tables"] if table["id"] == "goals-0")
    places = next(table for table in sections["task"]["tables"] if table["id"] == "places-0")
    assert "egg and tofu" in {row[0] for row in goals["rows"]} & {row[0] for row in places["rows"]}
    assert "N is up" in " ".join(sections["task"]["paragraphs"])
    groups = next(table for table in sections["overview"]["tables"] if table["id"] == "groups")
    assert [column["words"] for column in groups["columns"]] == ["diagnosis", "split", "participants",
                                                               "with an estimate of η"]  # fmt: skip
    assert built.data["shared"]["label"] == "diagnosis"


def test_sentences_of_the_package_are_written_as_the_report_writes():
    assert in_one_way("r is -.12 (.05 to .9), 95% of 3.5") == "r is −0.12 (0.05 to 0.9), 95 % of 3.5"
    assert in_one_way("odd-even, P-7, 0:12-0:15") == "odd-even, P-7, 0:12-0:15"


def test_an_interval_stands_in_the_cell_of_its_number():
    columns = [text_column("who"), *with_interval("x", flag="x_status", few="x_few")]
    rows = [
        ("a", 1.0, 0.5, 2.0, "ok", False),
        ("b", None, 3.0, None, "no_maximum", True),
        ("c", None, None, None, "ok", False),
        ("d", 1.0, 0.5, 2.0, "few_observations", True),
    ]
    shown = parts.table("t", "T", columns, rows, brackets="95 % intervals")
    assert shown["note"] == "In brackets: 95 % intervals."
    assert parts.table("t", "T", columns, rows[2:3], brackets="95 % intervals")["note"] == ""
    shown = laid_out(shown)
    assert [column["name"] for column in shown["columns"]] == ["who", "x"]
    assert [(row[1]["text"], row[1]["more"], row[1]["mark"]) for row in shown["rows"]] == [
        ("1.00", "(0.500 to 2.00)", ""),
        ("∞", "(from 3.00)", "a,b"),
        ("–", "", ""),
        ("1.00", "(0.500 to 2.00)", "a"),
    ]
    assert shown["marks"] == [("a", "few observations"), ("b", "every choice was a best one")]


def test_what_cannot_be_told_says_why(opened, monkeypatch):
    few = classification_section(opened)
    assert few["paragraphs"][0].startswith("People's status")
    assert "More people are needed" in few["paragraphs"][0]
    assert len(few["paragraphs"]) == 1
    monkeypatch.setattr("fidm.classify.question.FEWEST_IN_CLASS", 1)
    several = classification_section(opened)["paragraphs"]
    assert "Use fewer folds" in several[0]
    assert "(--folds)" in several[1]
    off = classification_section(replace(opened, asked=ReportOptions(classify=False)))
    assert "left out" in " ".join(off["paragraphs"])
    nobody = replace(opened, known=replace(opened.known, label=None), asked=ReportOptions(label="status"))
    missing = classification_section(nobody)
    assert "column 'status'" in missing["paragraphs"][0]
    one = replace(opened, known=replace(opened.known, cohort=opened.known.cohort[:1]))
    assert "one person" in reliability_section(one)["paragraphs"][0]
    assert "cannot be told" in localisation_section(one)["paragraphs"][0]


def test_classification_is_told_with_its_checks(opened, monkeypatch):
    whole = without_language(notes=("a note",))
    asked = []
    monkeypatch.setattr(sections_model, "classify", lambda *_, **more: asked.append(more) or whole)
    found = classification_section(opened)
    assert asked[0]["language"].encoders == {}
    scores = next(table for table in found["tables"] if table["id"] == "scores")
    names = [column["name"] for column in scores["columns"]]
    for metric in ("auc", "balanced_accuracy"):
        own = whole.scores.filter(setting="binary", metric=metric)
        for key, name in (("value", metric), ("low", f"{metric}_low"), ("paper", f"{metric}_paper")):
            shown = [row[names.index(name)] for row in scores["rows"]]
            assert [value for value in shown if value is not None] == pytest.approx(
                own[key].drop_nulls().to_list(), rel=1e-5
            )
    shown = laid_out(scores)["rows"][0][names.index("auc")]
    assert re.fullmatch(r"0\.\d{3} \(0\.\d{3} to 0\.\d{3}\)", f"{shown['text']} {shown['more']}")
    assert [figure["id"] for figure in found["figures"]] == ["score-bars", "roc", "calibration"]
    said = " ".join(found["paragraphs"])
    settings = whole.record.settings
    assert f"{settings['folds']}-fold cross-validation of 332 people" in said
    assert "then 68 others once." in said
    assert "A note." in said
    assert re.search(
        r"Checks: labels scrambled .* a mean AUC of 0\.\d{3}( to 0\.\d{3})? \(0\.5 expected\)", said
    )
    assert "−0.0 " not in said
    assert "−0.000" not in said
    roc = next(figure["svg"] for figure in found["figures"] if figure["id"] == "roc")
    assert re.search(r"0\.\d{3} \(0\.\d{3} to 0\.\d{3}\)", roc)
    assert "AUC (%)" not in roc
    broken = whole.checks.with_columns(passed=pl.lit(value=False))
    whole = with_tables(whole, checks=broken)
    monkeypatch.setattr(sections_model, "classify", lambda *_, **more: whole)
    monkeypatch.setattr(sections_model, "_class_figures", lambda found: [])
    said = " ".join(classification_section(opened)["paragraphs"])
    assert "10 of 10 checks failed: do not trust" in said


# ---------------------------------------------------------------------- page


def test_the_page_holds_everything_and_asks_nobody(built):
    page = Elements(built.html)
    assert not re.search(r"https?://(?!www\.w3\.org/)", built.html)  # only names of formats
    for tag, attributes in page.found:
        assert not any(name.startswith("on") for name in attributes), tag
        assert "style" not in attributes, tag
        for name in ("src", "href"):
            value = attributes.get(name)
            assert value is None or value.startswith(("#", "data:image/svg+xml;base64,")), value
        assert tag not in ("link", "iframe", "object", "embed", "form", "base")
    pictures = [a for tag, a in page.found if tag == "img"]
    assert len(pictures) == sum(len(section["figures"]) for section in built.data["sections"])
    assert all(one["alt"] for one in pictures)
    assert base64.b64decode(pictures[0]["src"].partition(",")[2]).startswith(b"<svg")


def test_only_the_pages_own_scripts_run(built):
    page = Elements(built.html)
    policy = next(a["content"] for tag, a in page.found if a.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == "'none'"
    assert "unsafe" not in policy
    assert "connect-src" not in rules
    scripts = [text for tag, a, text in page.inside if tag == "script" and "type" not in a]
    styles = [text for tag, _, text in page.inside if tag == "style"]
    assert rules["script-src"].split() == [csp_hash(text) for text in scripts]
    assert rules["style-src"].split() == [csp_hash(text) for text in styles]
    assert len(scripts) == 6


def test_data_in_the_page_are_the_reports_and_nothing_said_is_markup(built):
    page = Elements(built.html)
    data = {a["id"]: text for tag, a, text in page.inside if a.get("type") == "application/json"}
    assert json.loads(data.pop("shared")) == built.data["shared"]
    assert [json.loads(text) for text in data.values()] == built.data["people"]
    assert list(data) == [f"data-{n}" for n in range(1, 8)]
    assert built.data["people"][0]["episodes"][0]["turns"][0]["text"] == EVIL
    assert "alert(1)" not in re.sub(
        r'<script type="application/json".*?</script>', "", built.html, flags=re.S
    )
    assert "<b>7</b>" not in built.html
    opened = [a for tag, a in page.found if tag == "details" and a.get("class") == "person"]
    assert [(a["id"], a["data-n"]) for a in opened] == [(f"person-{n}", str(n)) for n in range(1, 8)]


def test_the_statement_stands_above_and_below(built):
    header, _, rest = built.html.partition("</header>")
    assert "Research use only, not a diagnosis." in header
    assert "Research use only, not a diagnosis." in rest[rest.index("<footer") :]


def test_a_person_takes_little_room(built):
    sizes = [len(json.dumps(one, ensure_ascii=False).encode()) for one in built.data["people"]]
    assert max(sizes) < SIZE_PER_PERSON


def test_files_are_their_owners_alone(built, tmp_path):
    page, data = built.write(tmp_path / "my report.html")
    assert (page.stat().st_mode & 0o777, data.stat().st_mode & 0o777) == (0o600, 0o600)
    assert page.read_text("utf-8") == built.html
    assert json.loads(data.read_text("utf-8"))["people"] == built.data["people"]
    built.write(page)
    with pytest.raises(DataError, match=r"\.html"):
        built.write(tmp_path / "report.pdf")
    (tmp_path / "fit.json").write_text("{}")
    with pytest.raises(DataError, match="is no report"):
        built.write(tmp_path / "fit.html")
    assert not (tmp_path / "fit.html").exists()
    (tmp_path / "home.html").write_text("<!doctype html><title>mine</title>")
    with pytest.raises(DataError, match=r"home\.html: is"):
        built.write(tmp_path / "home.html")
    assert "mine" in (tmp_path / "home.html").read_text()
    assert not (tmp_path / "home.json").exists()


# ---------------------------------------------------------------------- nobody is named


def test_a_deidentified_report_leads_back_to_nobody(hidden, study, built):
    page, data, key = hidden
    texts = [page.read_text("utf-8"), data.read_text("utf-8")]
    for encoded in re.findall(r"base64,([A-Za-z0-9+/=]+)", texts[0]):
        texts.append(base64.b64decode(encoded).decode())
    turns = pl.read_parquet(study / "grounding" / "turns.parquet")
    said = [text for text in turns["text"] if len(text.split()) > 2 or "script" in text]
    assert len(said) > 100
    forbidden = {*IDS, *said, "nick", "sister", "tape", "secret-clinic", str(study), "Nobody-Known", "alert"}
    for text in texts:
        found = [one for one in forbidden if one in text or json.dumps(one)[1:-1] in text]
        assert found == []
    whole = json.loads(texts[1])
    assert "dialogs_sha256" not in texts[1]
    assert "dialogs_sha256" in json.dumps(built.data)
    facts = {fact[0] for person in whole["people"] for fact in person["facts"]}
    assert facts == {"segments behind effort"}
    turns_shown = [turn for person in whole["people"] for turn in person["episodes"][0]["turns"]]
    assert all(turn["text"] is None and turn["speaker"] is None for turn in turns_shown)
    assert any(turn["start_s"] is not None for turn in turns_shown)
    names = read_key(key)
    assert key.stat().st_mode & 0o777 == 0o600
    assert page.stat().st_mode & 0o044
    assert set(names) == set(IDS)
    for person in built.data["people"]:  # the numbers are those of the same person
        other = next(one for one in whole["people"] if one["id"] == names[person["id"]])
        assert other["profile"] == person["profile"]
        mine, theirs = person["episodes"][0]["steps"], other["episodes"][0]["steps"]
        assert theirs["unexpectedness"] == mine["unexpectedness"]
        assert theirs["turn"] == mine["turn"]


def test_everything_is_in_the_order_of_the_new_names(hidden, study):
    whole = json.loads(hidden[1].read_text("utf-8"))
    expected = [f"P{i:03d}" for i in range(2, 9)]  # the key turns the study's order round; P001 is excluded
    assert [one["id"] for one in whole["people"]] == expected
    assert [one["id"] for one in whole["shared"]["people"]] == expected
    parameters = next(section for section in whole["sections"] if section["id"] == "parameters")
    estimates = next(table for table in parameters["tables"] if table["id"] == "estimates")
    assert [row[0] for row in estimates["rows"]] == expected
    at = [column["name"] for column in estimates["columns"]].index("duration")
    svg = next(figure["svg"] for figure in parameters["figures"] if figure["id"] == "scatter")
    groups = [
        [float(y) for y in re.findall(r'y="([\d.]+)" style="[^"]*opacity: 0\.85', drawn)]
        for drawn in re.findall(r"<g clip-path[^>]*>(.*?)</g>", svg, re.S)
    ]
    found = {len(dots): np.argsort([-y for y in dots]).tolist() for dots in groups if dots}
    assert sorted(found) == [3, 4]
    for label, n in (("mci", 3), ("normal", 4)):  # SVG counts downwards
        assert found[n] == np.argsort([row[at] for row in estimates["rows"] if row[1] == label]).tolist()
    chosen = build_report(
        study, classify=False, deidentify=True, key=hidden[2], participants=["Ann-Lee", "Zeta-5"]
    )
    assert [one["id"] for one in chosen.data["people"]] == ["P004", "P008"]


def test_people_move_with_all_that_is_theirs():
    cohort = fidm.simulate_cohort(fidm.load_task("errands"), 4, seed=1)
    problems = pl.DataFrame({"participant": ["lost"], "problem": ["p"]}).select(
        *(pl.col(n) if n in ("participant", "problem") else pl.lit(None, kind).alias(n)
          for n, kind in PROBLEM_SCHEMA.items())
    )  # fmt: skip
    names = {name: f"P{n:03d}" for name, n in zip(cohort.ids, (1000, 3, 12, 7), strict=True)}
    moved = rename(cohort.with_problems(problems), {**names, "lost": "P999"})
    assert moved.ids.to_list() == ["P003", "P007", "P012", "P1000"]
    assert moved.problems["participant"].to_list() == ["P999"]
    for old, new in names.items():
        (mine,), (theirs,) = cohort.traces(old), moved.traces(new)
        assert mine.state.tolist() == theirs.state.tolist()


def test_reviewers_are_numbered_in_an_order_nobody_can_guess():
    names = ["Abe", "Bea", "Cyd", "Zoë"]
    orders = {tuple(reviewer_names(names, hide=True, secret=bytes([i])).items()) for i in range(12)}
    assert len(orders) > 3
    assert all(dict(one).keys() == set(names) for one in orders)
    assert reviewer_names(names, hide=False, secret=b"x") == {name: name for name in names}


@pytest.mark.parametrize("name", ["page.html", "page.json", "sub/../page.html"])
def test_a_key_is_not_the_report_itself(study, tmp_path, name):
    (tmp_path / "sub").mkdir()
    with pytest.raises(DataError, match="the key and the report"):
        write_report(study, tmp_path / "page.html", deidentify=True, key=tmp_path / name)


def test_names_are_kept_by_a_key_and_new_people_get_new_ones(tmp_path):
    first = draw_names(["a", "b", "c"])
    assert sorted(first.values()) == ["P001", "P002", "P003"]
    write_key(tmp_path / "key.csv", first)
    second = draw_names(["c", "d", "a"], key=tmp_path / "key.csv")
    assert second == {**first, "d": "P004"}
    orders = {tuple(sorted(draw_names(list("abcdefgh")).items())) for _ in range(20)}
    assert len(orders) > 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("who,what\na,P001\n", "needs the columns"),
        ("participant,shown_as\na,P001\nb,P001\n", "names somebody twice"),
        ("participant,shown_as\na,Ann\n", "not P001"),
        (f"participant,shown_as\na,P{'1' * 5000}\n", "not P001"),
        ("participant,shown_as\na,P１\n", "not P001"),
    ],
)
def test_a_file_that_is_no_key_is_refused(tmp_path, text, message):
    (tmp_path / "key.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        draw_names(["a"], key=tmp_path / "key.csv")


def test_a_key_without_hiding_is_refused(study, tmp_path):
    with pytest.raises(DataError, match="de-identified"):
        build_report(study, key=tmp_path / "key.csv")


# ---------------------------------------------------------------------- numbers that are none


def test_what_is_not_finite_is_null_and_nothing_is_minus_zero(opened):
    known = opened.known
    behind, said = known.behind, known.behind.words
    actions = behind.actions.with_columns(
        unexpectedness=pl.when(pl.col("step") == 2).then(float("inf")).otherwise(-0.0),
        probability=pl.when(pl.col("step") == 2).then(0.0).otherwise(1.0),
    )
    untimed = {"start_s": pl.lit(float("nan")), "end_s": pl.lit(float("inf"))}
    words = replace(
        said, turns=said.turns.with_columns(**untimed), segments=said.segments.with_columns(**untimed)
    )
    odd = replace(known, behind=replace(behind, actions=actions, words=words))
    (person,) = people_parts(odd, chosen=["Zeta-5"])
    text = json.dumps(person, allow_nan=False)
    assert not re.search(r"-0\.0[,\]}]", text)
    episode = person["episodes"][0]
    assert (episode["steps"]["unexpectedness"][1], episode["steps"]["probability"][1]) == (None, 0.0)
    assert episode["steps"]["unexpectedness"][0] == 0.0
    spoken = [*episode["turns"], *episode["segments"]]
    assert {(one["start_s"], one["end_s"]) for one in spoken} == {(None, None)}


def test_nothing_in_a_report_is_minus_zero(built):
    assert not re.search(r"-0\.0[,\]}]", json.dumps(built.data, separators=(",", ":")))


def test_how_many_a_median_is_of_is_said(opened, monkeypatch):
    profile = opened.known.profile
    estimate = profile.estimate.copy()
    estimate[2, 0] = np.inf
    endless = replace(opened, known=replace(opened.known, profile=replace(profile, estimate=estimate)))
    spread = shared_part(endless.known)["parameters"][0]
    assert (spread["n"], spread["n_infinite"]) == (6, 1)
    assert spread["median"] is None  # of six people
    shown = next(table for table in parameters_section(endless)["tables"] if table["id"] == "spread")
    assert [column["name"] for column in shown["columns"]][:3] == ["parameter", "n", "median"]
    assert [row[1] for row in shown["rows"]] == [7] * len(profile.parameters)
    assert shown["rows"][0][2:5] == [None] * 3  # seven people have no tenth of their number, nor a middle
    assert "infinite" in shown["note"]
    monkeypatch.setattr("fidm.fit.profile.FEWEST_FOR_SHARES", 7)
    for endless_side, shown_as in ((np.inf, "∞"), (-np.inf, "−∞")):
        estimate[:, 0] = endless_side
        all_so = replace(opened, known=replace(opened.known, profile=replace(profile, estimate=estimate)))
        shown = next(table for table in parameters_section(all_so)["tables"] if table["id"] == "spread")
        assert shown["rows"][0][2:5] == [shown_as] * 3
    tops = opened.known.found.counted["unexpectedness"].to_numpy()
    linear = shared_part(opened.known)["unexpectedness"]
    assert [linear["p90"], linear["p99"]] == [rounded(one) for one in np.quantile(tops, (0.9, 0.99))]


def test_an_infinite_estimate_is_shown_as_one(opened):
    known = opened.known
    status = known.profile.status.copy()
    status[0, 0] = STATUSES.index("no_maximum")
    numbers = {name: getattr(known.profile, name).copy() for name in ("estimate", "high")}
    for values in numbers.values():
        values[0, 0] = np.inf
    person = next(
        people_parts(replace(known, profile=replace(known.profile, **numbers, status=status, method="mle")))
    )
    own = person["profile"][0]
    assert (own["estimate"], own["high"]) == (None, None)
    assert "lower bound" in own["said"]
    assert estimate_text(own["estimate"], own["low"], own["high"], own["status"]) == "∞"


def test_whoever_has_no_estimate_has_no_place_and_is_told_why(opened):
    known = opened.known
    names = known.profile.parameters
    pause, turns = names.index("pause"), names.index("turns")
    status = known.profile.status.copy()
    status[0, [0, pause]] = STATUSES.index("no_observation")
    status[:, turns] = STATUSES.index("alike")
    status[1, 0] = STATUSES.index("at_random")
    empty = np.isin(status, [STATUSES.index("no_observation"), STATUSES.index("alike")])
    numbers = {
        name: np.where(empty, np.nan, getattr(known.profile, name)) for name in ("estimate", "low", "high")
    }
    counts = np.where(empty, 0, known.profile.n)
    profile = replace(
        known.profile, **numbers, status=status, n=counts, random=np.full(len(known.profile), 0.97)
    )
    odd = replace(known, profile=profile, fit=replace(known.fit, alike=("turns",)))
    first, second, *_ = people_parts(odd)
    own = {one["parameter"]: one for one in first["profile"]}
    assert own["action_sensitivity"]["said"] == "Not estimated: what was said awaits review."
    assert own["pause"]["said"] == "Not estimated: no paused segments."
    assert {own[name]["percentile"] for name in ("action_sensitivity", "pause", "turns")} == {None}
    assert own["turns"]["said"] == "Not estimated: there are no measurable individual differences."
    assert "probability 97.0 %" in second["profile"][0]["said"]
    listed = shared_part(odd)["people"][0]
    assert listed["flags"][0] == "action sensitivity η: not estimated: what was said awaits review"
    assert not any("turn" in flag for flag in listed["flags"])
    assert listed["values"]["action_sensitivity"] is None
    section = parameters_section(replace(opened, known=odd))
    tables = {table["id"]: table for table in section["tables"]}
    assert "turns" not in [column["name"] for column in tables["estimates"]["columns"]]
    assert "alike" not in [column["name"] for column in tables["flags"]["columns"]]
    assert sum("nobody has an estimate" in text for text in section["paragraphs"]) == 1


# ---------------------------------------------------------------------- what is said is so


def test_what_counts_is_said_as_it_is(opened):
    settings = {"seed": 1}
    said = method_section(opened, settings=settings)
    text = " ".join(said["paragraphs"])
    assert "left no choice" not in text
    assert "one legal action" in text
    assert "nor do actions" in text
    later = (
        "stated after a segment that needs review or was rejected, until the place and what is completed are "
        "known again"
    )
    assert f"of segments that need review, or {later}; such steps are hatched" in text
    half = replace(opened, provenance={**opened.provenance, "weighing": {"doubtful": 0.5}})
    text = " ".join(method_section(half, settings=settings)["paragraphs"])
    assert "those of segments that need review with weight 0.5" in text
    assert f"those {later} with weight 0.5" in text
    none = replace(opened, provenance={})
    assert later not in " ".join(method_section(none, settings=settings)["paragraphs"])


@pytest.mark.parametrize(
    ("weighing", "words"),
    [({"doubtful": 0.0}, "do not count in"), ({"doubtful": 0.5}, "count with weight 0.5 in"),
     ({"doubtful": 1}, "count like all others."), (None, None)],
)  # fmt: skip
def test_moves_in_doubt_count_as_the_grounding_says(opened, weighing, words):
    how = {**opened.provenance, "weighing": weighing}
    said = grounding_section(replace(opened, provenance=how))["paragraphs"][0]
    start = "Moves of segments that need review"
    assert (start in said) == (words is not None)
    assert words is None or f"{start} {words}" in said


def test_how_often_people_were_drawn_stands_below_tables_with_intervals_alone(built):
    tables = {table["id"]: table for section in built.data["sections"] for table in section["tables"]}
    for name in ("reliability-table", "localisation-table"):
        assert "resampled" not in tables[name]["note"]


def test_groups_by_the_split_itself(opened):
    known = replace(opened.known, label="split")
    groups = next(one for one in overview(replace(opened, known=known))["tables"] if one["id"] == "groups")
    assert [row[:2] for row in groups["rows"]] == [["test", 3], ["train", 4]]


def test_what_effort_rests_on_is_said_of_everybody(opened):
    for said in (grounding_section(opened), method_section(opened, settings={})):
        assert "Effort counts the moves of every segment that has any" in " ".join(said["paragraphs"])
    assert "Effort" not in grounding_section(replace(opened, grounded=None))["paragraphs"][0]
    shown = set()
    for person in people_parts(opened.known):
        used = [
            (one, episode["steps"]["inferred"][one["steps"][0] : one["steps"][1] + 1] if one["steps"] else [])
            for episode in person["episodes"]
            for one in episode["segments"]
            if one["n_moves"] is not None
        ]
        waiting = sum(one["status"] == "needs_review" for one, _ in used)
        share = sum(sum(filled) for _, filled in used) / sum(one["n_moves"] for one, _ in used)
        await_ = "awaits" if waiting == 1 else "await"
        assert dict(person["facts"])["segments behind effort"] == (
            f"{len(used)}, of which {waiting} {await_} review; {percent_text(share)} of their moves filled in "
            "by the planner"
        )
        shown |= {waiting > 0, share > 0}
    assert True in shown


def test_the_other_way_is_said_to_be_a_fit_of_its_own(opened):
    name, profile = "action_sensitivity_all_moves", opened.known.profile
    columns = {part: profile.wide[f"action_sensitivity{part}"] for part in ("", "_low", "_high", "_status")}
    other = pl.DataFrame({f"{name}{part}": values for part, values in columns.items()})
    by_likelihood = replace(profile, method="mle")
    for own, way, told in ((profile, other, True), (profile, None, False), (by_likelihood, other, False)):
        known = replace(opened.known, profile=own, other_way=way)
        tables = parameters_section(replace(opened, known=known))["tables"]
        note = next(one["note"] for one in tables if one["id"] == "estimates")
        assert ("a fit of its own" in note) == told


def test_from_how_many_of_this_study_each_parameter_was_learned_is_said(opened):
    assert opened.source.startswith("learned from 7 participants of this study")
    known, learners = opened.known, opened.study.part()[0].ids
    n = np.where(known.profile.n > 0, known.profile.n, 1)
    rows = np.flatnonzero(known.profile.participants.is_in(learners.implode()).to_numpy())
    all_known = replace(
        known,
        fit=replace(known.fit, n_people=len(rows), n_learned=len(rows)),
        profile=replace(known.profile, n=n),
    )
    n = n.copy()
    n[rows[0], 0], n[rows[:2], known.profile.parameters.index("pause")] = 0, 0
    fewer = replace(all_known, profile=replace(known.profile, n=n))
    told = "Learned from fewer of them: action sensitivity η from 3, pause length θ from 2."
    for own, is_told in ((all_known, False), (fewer, True), (replace(fewer, fit=known.fit), False)):
        said = parameters_section(replace(opened, known=own))["paragraphs"]
        assert (told in said) == is_told
    alone = replace(fewer, fit=replace(fewer.fit, prior=replace(fewer.fit.prior, sd=np.nan)))
    said = parameters_section(replace(opened, known=alone))["paragraphs"]
    assert "Learned from fewer of them: pause length θ from 2." in said  # of η nothing was learned
    elsewhere = replace(opened, known=fewer, asked=ReportOptions(use=opened.folder / "fit.json"))
    assert told not in parameters_section(elsewhere)["paragraphs"]
    foreign = opened.study.fit(opened.folder / "fit.json", name_file=False)[1]
    assert foreign == "learned earlier from 7 participants"


def test_groups_say_how_many_have_an_estimate_of_sensitivity(opened):
    profile = opened.known.profile
    estimate = profile.estimate.copy()
    estimate[opened.known.cohort.participants["split"].index_of("test"), 0] = np.nan
    known = replace(opened.known, label="split", profile=replace(profile, estimate=estimate))
    groups = next(one for one in overview(replace(opened, known=known))["tables"] if one["id"] == "groups")
    assert groups["columns"][-1]["words"] == "with an estimate of η"
    assert groups["rows"] == [["test", 3, 2], ["train", 4, 4]]


def test_what_an_interval_of_sensitivity_cannot_say_is_said(opened):
    known, prior = opened.known, opened.known.fit.prior
    by_likelihood = replace(known, profile=replace(known.profile, method="mle"))
    some_at_random, alone = (
        replace(known, fit=replace(known.fit, prior=replace(prior, **change)))
        for change in ({"random": 0.1}, {"sd": np.nan})
    )
    for own, is_told in ((known, True), (by_likelihood, False), (some_at_random, False), (alone, False)):
        said = parameters_section(replace(opened, known=own))["paragraphs"]
        assert any("never reaches 0" in text for text in said) == is_told


def compared(by, adjust=()):
    """A comparison of made-up people in three groups, one of which did less."""
    task = fidm.load_task("errands")
    people = fidm.Cohort.concat(
        [
            fidm.simulate_cohort(task, 24, seed=5),
            fidm.simulate_cohort(task, 12, seed=5, first=24, max_steps=9),
        ]
    )
    about = people.participants.with_columns(
        pl.Series(by, ["mci", "normal"] * 12 + ["a dementia of any kind"] * 12),
        age=pl.Series(np.random.default_rng(1).normal(70, 7, 36)),
    )
    return fidm.compare(
        task, people.with_participants(about), by=by, adjust=adjust, reference="normal", channels=()
    )


def test_groups_are_those_of_the_comparison_that_is_kept(opened, monkeypatch):
    found = compared("diagnosis", ["age"])
    monkeypatch.setattr(StudyFolder, "find_comparison", lambda self: found)
    made = groups_section(opened)
    said = " ".join(made["paragraphs"])
    assert made["title"] == "Groups"
    assert "by diagnosis, adjusted for age." in said
    assert "The groups did not do equally much" in said
    assert said.count(" as high in ") + said.count("No clear difference in action") == found.table.height == 2
    assert "All differences together, p of each parameter: η " in said
    assert said.count("Reference: normal.") == 1
    rests, first, second = made["tables"]
    assert rests["rows"] == [list(row) for row in found.groups.drop("inferred").iter_rows()]
    assert [first["title"], second["title"]] == found.table["contrast"].to_list()
    names = [column["name"] for column in first["columns"]]
    row = dict(zip(names, first["rows"][0], strict=True))
    for name in ("factor_low", "p_holm", "auc", "unadjusted", "auc_unadjusted", "n_people"):
        assert row[name] == pytest.approx(found.table[name][0], rel=1e-5)
    (drawn,) = made["figures"]
    assert drawn["table"] == first["id"]


def test_groups_that_were_not_compared_can_be(opened):
    (said,) = groups_section(opened)["paragraphs"]
    assert "fidm compare STUDY --by diagnosis" in said


def test_a_deidentified_report_compares_people_by_their_status_alone(opened, monkeypatch):
    known = replace(opened.known, is_deidentified=True, label="diagnosis")
    for by, is_shown in (("diagnosis", True), ("clinic", False)):
        found = replace(compared(by), gaps=("Ann-Lee has no data.",))
        monkeypatch.setattr(StudyFolder, "find_comparison", lambda self, found=found: found)
        made = groups_section(replace(opened, known=known))
        assert bool(made["tables"]) == is_shown
        assert "Ann-Lee" not in json.dumps(made)
        assert ("clinic" in json.dumps(made)) is False


def test_nobody_is_told_to_compare_groups_by_estimates(opened):
    for method, is_drawn in (("eb", True), ("mle", False)):
        profile = replace(opened.known.profile, method=method)
        known = replace(opened.known, profile=profile, label="split")
        said = " ".join(parameters_section(replace(opened, known=known))["paragraphs"])
        assert "Do not compare groups by these estimates" in said
        assert ("come out too small" in said) == is_drawn


# ---------------------------------------------------------------------- odd studies


def test_a_study_without_dialogs_and_with_several_tasks_and_episodes(tmp_path):
    tasks = [fidm.load_task("errands"), fidm.load_task("grocery_small")]
    cohort = fidm.simulate_cohort(tasks, 6, seed=1)
    fidm.write_cohort(cohort, tmp_path / "s", tasks=["errands", "grocery_small"])
    opened = open_for_report(tmp_path / "s", ReportOptions())
    (person,) = people_parts(opened.known, chosen=[cohort.ids[3]])
    assert [(one["task"], one["scene"]) for one in person["episodes"]] == [
        ("errands", 0),
        ("grocery_small", 1),
    ]
    for i, trace in enumerate(cohort.traces(cohort.ids[3])):
        steps, size = person["episodes"][i]["steps"], tasks[i].grid.grid.n_cells
        acted = [cell for cell, action in zip(steps["cell"], steps["action"], strict=True) if action != "OUT"]
        assert acted == (trace.state[:-1] % size).tolist()
    episode = person["episodes"][0]
    assert episode["turns"] == []
    assert set(episode["steps"]["turn"]) == {None}
    assert episode["segments"][0]["effort"]
    assert episode["segments"][0]["program"] is None
    assert grounding_section(opened)["paragraphs"][0].startswith("The steps of")
    assert len(task_section(opened)["figures"]) == 4


def test_several_episodes_on_a_task_with_a_map_and_one_without(tmp_path, monkeypatch):
    tasks = (replace(fidm.load_task("errands"), grid=None), fidm.load_task("grocery_small"))
    cohort = fidm.simulate_cohort(tasks, 3, seed=1)
    folder = tmp_path / "s"
    fidm.write_cohort(cohort, folder, tasks=["errands", "grocery_small"])
    monkeypatch.setattr("fidm.folder.study_tasks", lambda *_: tasks)  # no task file is without a map
    found = build_report(folder, classify=False, deidentify=True)
    json.dumps(found.data, allow_nan=False)
    for person in found.data["people"]:
        assert [one["scene"] for one in person["episodes"]] == [None, 0]
        assert [one["turns"] for one in person["episodes"]] == [[], []]
        assert set(person["episodes"][0]["steps"]["cell"]) == {-1}
        assert min(person["episodes"][1]["steps"]["cell"]) >= 0
    assert len(found.data["shared"]["scenes"]) == 1
    sections = {section["id"]: section for section in found.data["sections"]}
    assert [one["id"] for one in sections["task"]["figures"]] == ["map-1", "value-1"]


def test_one_person_without_segments(tmp_path):
    task = fidm.load_task("errands")
    cohort = fidm.simulate_cohort(task, 1, seed=1)
    bare = fidm.Cohort.from_traces(cohort.traces(cohort.ids[0]))
    fidm.write_cohort(bare, tmp_path / "s", tasks=["errands"])
    found = build_report(tmp_path / "s")
    (person,) = found.data["people"]
    assert person["episodes"][0]["segments"] == []
    assert person["profile"][0]["percentile"] is None
    assert found.data["shared"]["channels"] == []
    sections = {section["id"]: section for section in found.data["sections"]}
    assert not any("speech" in text or "effort" in text for text in sections["parameters"]["paragraphs"])
    assert sections["overview"]["paragraphs"][0].startswith("1 participant with 1 trial and ")
    assert "one person" in sections["reliability"]["paragraphs"][0]
    assert "one by one" in sections["method"]["paragraphs"][-1]


def test_trials_on_many_tasks_are_told_once_and_without_speech(tmp_path):
    rng = np.random.default_rng(2)
    to = np.array([[1, 2], [-1, -1], [-1, -1]])
    tasks = tuple(
        fidm.TaskModel.from_arrays(to, np.where(to >= 0, rng.normal(size=to.shape), 0.0), gamma=0.9, tau=0.1,
                                   name=f"pair {i}")
        for i in range(6)
    )  # fmt: skip
    values = [fidm.solve(task) for task in tasks]
    cohort = fidm.Cohort.from_traces(
        fidm.walk(tasks[k % 6], values[k % 6], 3.0, seed=100 * j + k, label=f"P{j}")
        for j in range(5)
        for k in range(12)
    )
    fidm.write_cohort(cohort, tmp_path / "s", tasks=tasks)
    found = build_report(tmp_path / "s", classify=False)
    sections = {section["id"]: section for section in found.data["sections"]}
    assert not {"grounding", "localisation"} & set(sections)
    assert sections["overview"]["paragraphs"][0] == (
        "5 participants with 60 trials and 60 choices; 6 tasks: pair 0, pair 1, … pair 5."
    )
    assert len(sections["task"]["paragraphs"]) == 2
    assert all(text.startswith("All 6 tasks: ") for text in sections["task"]["paragraphs"])
    assert [one["id"] for one in sections["task"]["tables"]] == ["tasks", "findings"]
    shown = json.dumps([section["paragraphs"] for section in found.data["sections"]])
    for word in ("speech", "segment", "moves", "route", "sitting tells"):
        assert word not in shown
    assert found.data["shared"]["has_speech"] is False


def test_people_with_problems_are_counted_not_shown(tmp_path):
    cohort = fidm.simulate_cohort(fidm.load_task("errands"), 4, seed=1)
    fidm.write_cohort(cohort, tmp_path / "s", tasks=["errands"])
    steps = pl.read_parquet(tmp_path / "s" / "steps.parquet")
    bad = steps.with_columns(
        action=pl.when(pl.col("participant") == cohort.ids[0]).then(99).otherwise(pl.col("action"))
    )
    bad.write_parquet(tmp_path / "s" / "steps.parquet")
    with pytest.raises(DataError):
        open_for_report(tmp_path / "s", ReportOptions())
    opened = open_for_report(tmp_path / "s", ReportOptions(skip_bad=True))
    found = overview(opened)
    assert "1 participant left out" in " ".join(found["paragraphs"])
    assert found["tables"][-1]["id"] == "left-out"
    assert tuple(found["tables"][-1]["rows"][0][2:4]) == (1, "everything")
    assert len(list(people_parts(opened.known))) == 3


def test_chosen_people_only(study):
    with pytest.raises(DataError, match="no participant 'Nemo'"):
        build_report(study, classify=False, participants=["Nemo"])


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (0.98765, None, "0.988"),
        (-12.0, None, "−12.0"),
        (1234.5, None, "1,235"),
        (999.96, None, "1,000"),
        (9.996, None, "10.0"),
        (-2.25, None, "−2.25"),
        (0.0625, None, "0.0625"),
        (12.25, None, "12.3"),
        (19.0, None, "19.0"),
        (1e-7, None, "1.00e−7"),
        (1e300, None, "1.00e300"),
        (-0.00001, "%", "0.0 %"),
        (0.0003, "%", "< 0.1 %"),
        (0.0, None, "0"),
        (127.0, None, "127"),
        (0.5, "%", "50.0 %"),
        (None, "%", "–"),
        (float("nan"), None, "–"),
        (False, None, "no"),
        ("<i>", None, "<i>"),
        (7, "s", "7"),
    ],
)
def test_cells_are_written_one_way(value, unit, said):
    assert cell_text(value, unit) == said


def test_sentences():
    assert sentence("what is this") == "What is this."
    assert sentence("") == ""


def test_what_is_not_clear_is_said_in_one_paragraph(opened, monkeypatch):
    found = compared("diagnosis", ["age"])
    row = found.table.row(0, named=True) | {
        "factor_low": 0.9,
        "factor": 1.0,
        "factor_high": 1.1,
        "p_holm": 1.0,
    }
    rows = [row | {"parameter": name} for name in ("duration", "turns")]
    alone = {"parameter": "pause", "factor_low": 0.5, "factor": 0.7, "factor_high": 0.9, "p_holm": 0.2}
    table = pl.DataFrame([*rows, row | alone], schema=found.table.schema)
    monkeypatch.setattr(StudyFolder, "find_comparison", lambda self: replace(found, table=table))
    said = groups_section(opened)["paragraphs"][1:3]
    assert said[0].startswith(
        "Pause length θ: no clear difference after correction for 3 tests (Holm p = 0.200)"
    )
    assert said[1].startswith("No clear difference in speech duration θ and turn count θ (")
