"""People who are left out on purpose: by a reason in the table of participants, in every kind of study."""

from __future__ import annotations

import json

import polars as pl
import pytest

import fidm
from fidm.cli.main import main
from fidm.errors import DataError
from fidm.io.columns import count_reasons, excluded_people, say_reasons
from fidm.io.study import Study, StudyWriter
from fidm.io.tables import tables_of

REASON = "did not complete"


@pytest.fixture(scope="module")
def cohort():
    return fidm.simulate_cohort(fidm.load_task("errands"), 12, seed=1)


def with_column(cohort, values):
    return cohort.with_participants(
        cohort.participants.with_columns(
            excluded=pl.Series(values), split=pl.Series((["train", "test"] * 6)[: len(cohort)])
        )
    )


@pytest.fixture
def study(tmp_path, cohort):
    marked = with_column(cohort, [None, REASON, "", "  ", "withdrew", *[None] * 6, REASON])
    fidm.write_cohort(marked, tmp_path / "study", tasks=["errands"])
    return tmp_path / "study"


OUT = {"P0000002", "P0000005", "P0000012"}


def test_whoever_has_a_reason_is_left_out_of_everything_read(study, cohort):
    found = Study(study)
    assert found.excluded().rows() == [
        ("P0000002", REASON),
        ("P0000005", "withdrew"),
        ("P0000012", REASON),
    ]
    read = fidm.read_cohort(study)
    assert set(cohort.ids) - set(read.ids) == OUT
    assert len(read) == 9
    assert "excluded" not in read.participants.columns
    assert set(found.participants()["participant"]) == set(read.ids)
    kept = cohort.select(read.ids.to_list())
    assert (read.state == kept.state).all()
    assert read.segments.height == kept.segments.height


def test_nobody_is_excluded_without_the_column_or_the_table(tmp_path, cohort):
    fidm.write_cohort(cohort, tmp_path / "plain", tasks=["errands"])
    assert Study(tmp_path / "plain").excluded().rows() == []
    (tmp_path / "plain" / "participants.parquet").unlink()
    assert Study(tmp_path / "plain").excluded().rows() == []
    assert len(fidm.read_cohort(tmp_path / "plain")) == 12
    assert excluded_people(None).columns == ["participant", "reason"]


def test_what_is_wrong_with_an_excluded_person_stops_nothing_and_rows_keep_their_numbers(study):
    steps = pl.read_parquet(study / "steps.parquet")
    broken = steps.with_columns(
        action=pl.when(pl.col("participant") == "P0000002").then(99).otherwise(pl.col("action"))
    )
    broken.write_parquet(study / "steps.parquet")
    assert len(fidm.read_cohort(study)) == 9
    worse = broken.with_columns(
        action=pl.when(pl.col("participant") == "P0000003").then(99).otherwise(pl.col("action"))
    )
    worse.write_parquet(study / "steps.parquet")
    row = worse["participant"].index_of("P0000003") + 1
    with pytest.raises(DataError, match=f"steps, row {row}, P0000003"):
        fidm.read_cohort(study)


@pytest.mark.parametrize(
    "values",
    [
        [True, *[False] * 11],
        [True, *[None] * 11],
        ["TRUE", *["False"] * 11],
        ["yes", "no", *[""] * 10],
    ],
)
def test_true_and_false_are_understood(tmp_path, cohort, values):
    fidm.write_cohort(with_column(cohort, values), tmp_path / "study", tasks=["errands"])
    assert Study(tmp_path / "study").excluded().rows() == [("P0000001", "no reason given")]
    assert len(fidm.read_cohort(tmp_path / "study")) == 11


@pytest.mark.parametrize("values", [[None] * 12, [False] * 12, [""] * 12])
def test_an_empty_column_excludes_nobody(tmp_path, cohort, values):
    fidm.write_cohort(with_column(cohort, values), tmp_path / "study", tasks=["errands"])
    assert len(fidm.read_cohort(tmp_path / "study")) == 12


@pytest.mark.parametrize("values", [[1, *[0] * 11], [0.5, *[None] * 11]])
def test_a_column_of_numbers_is_refused(tmp_path, cohort, values):
    fidm.write_cohort(with_column(cohort, values), tmp_path / "study", tasks=["errands"])
    with pytest.raises(DataError, match="holds numbers"):
        fidm.read_cohort(tmp_path / "study")
    with pytest.raises(DataError, match="holds numbers"):
        Study(tmp_path / "study").participants()
    assert main(["fit", str(tmp_path / "study")]) == 2


NOTHING = ["NA", "N/A", "n/a", "n.a.", "#N/A", "null", "NULL", "nan", "NaN", "<NA>", "-", ".", " - "]
NOT_OUT = ["false", "False.", "false ", "FALSE", "no", "No."]


@pytest.mark.parametrize("word", NOTHING + NOT_OUT)
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_words_for_nothing_and_for_false_mean_that_somebody_takes_part(tmp_path, cohort, word, ending):
    fidm.write_cohort(cohort, tmp_path / "study", tasks=["errands"])
    people = pl.DataFrame({"participant": cohort.ids, "excluded": [REASON, *[word] * 11]})
    (tmp_path / "study" / "participants.parquet").unlink()
    if ending == "csv":
        people.write_csv(tmp_path / "study" / "participants.csv")
    else:
        people.write_parquet(tmp_path / "study" / "participants.parquet")
    assert Study(tmp_path / "study").excluded().rows() == [("P0000001", REASON)]
    assert len(fidm.read_cohort(tmp_path / "study")) == 11


@pytest.mark.parametrize("word", ["true", "True.", "TRUE ", "yes", "Yes."])
def test_words_for_true(word):
    people = pl.DataFrame({"participant": ["A"], "excluded": [word]})
    assert excluded_people(people).rows() == [("A", "no reason given")]


@pytest.mark.parametrize(
    "reason", ["ill", "NA in the MoCA", "not included by the clinic", "病咗", "COVID-19."]
)
def test_any_other_words_are_a_reason(reason):
    people = pl.DataFrame({"participant": ["A", "B"], "excluded": [reason, None]})
    assert excluded_people(people).rows() == [("A", reason)]


UNCLEAR = [
    "none", "None", "none.", "y", "n", "N", "t", "f", "non", "included", "include", "Not excluded", "keep",
    "kept", "in", "out", "x", "X", "0", "1", "0/1", "12.5", "--", "..", "?",
]  # fmt: skip


@pytest.mark.parametrize("odd", UNCLEAR)
def test_what_could_mean_either_is_refused(odd):
    people = pl.DataFrame({"participant": ["A", "B"], "excluded": [REASON, odd]})
    with pytest.raises(DataError, match="row 2, B") as caught:
        excluded_people(people)
    assert len(caught.value.problems) == 1


@pytest.mark.parametrize("odd", ["0", "--", "none", "n", "12.5"])
def test_a_cell_that_is_no_reason_is_refused_without_showing_it(tmp_path, cohort, odd):
    values = [None, REASON, odd, *[None] * 9]
    fidm.write_cohort(with_column(cohort, values), tmp_path / "study", tasks=["errands"])
    for strict in (True, False):
        with pytest.raises(DataError) as caught:
            fidm.read_cohort(tmp_path / "study", strict=strict)
        assert "participants, row 3, P0000003" in str(caught.value)
        assert len(caught.value.problems) == 1
        assert repr(odd) not in str(caught.value)


def test_a_csv_file_of_participants(tmp_path, cohort):
    folder = tmp_path / "study"
    folder.mkdir()
    for name, table in tables_of(cohort).items():
        table.write_csv(folder / f"{name}.csv")
    lines = [f"P{i:07d},{'moved away' if i == 4 else ''}" for i in range(1, 13)]
    (folder / "participants.csv").write_text("participant,excluded\n" + "\n".join(lines) + "\n", "utf-8")
    (folder / "study.toml").write_text('schema = 1\ntasks = ["errands"]\n', "utf-8")
    assert Study(folder).excluded().rows() == [("P0000004", "moved away")]
    assert len(fidm.read_cohort(folder)) == 11
    (folder / "participants.csv").write_text(
        "participant,excluded\n" + "\n".join(f"P{i:07d},{'true' if i < 3 else 'false'}" for i in range(1, 13))
    )
    assert len(fidm.read_cohort(folder)) == 10


def test_a_study_in_parts_whose_columns_differ(tmp_path, cohort):
    with StudyWriter(tmp_path / "study", tasks=["errands"]) as writer:
        writer.add(with_column(cohort[:4], [True, False, False, False]))
        writer.add(with_column(cohort[4:8], [None, "ill", None, None]))
        writer.add(cohort[8:])
    study = Study(tmp_path / "study")
    assert study.excluded().rows() == [("P0000001", "no reason given"), ("P0000006", "ill")]
    assert [len(batch) for batch in study.batches()] == [3, 3, 4]
    assert study.participants().height == 10
    assert "excluded" not in study.participants().columns


def test_tables_in_memory_are_read_in_the_same_way(cohort):
    tables = tables_of(with_column(cohort, [REASON, *[None] * 11]))
    assert len(fidm.make_cohort(**tables, tasks=fidm.load_task("errands"))) == 11


def test_everybody_excluded(tmp_path, cohort, capsys):
    fidm.write_cohort(with_column(cohort, [REASON] * 12), tmp_path / "study", tasks=["errands"])
    assert len(fidm.read_cohort(tmp_path / "study")) == 0
    assert main(["fit", str(tmp_path / "study")]) == 2
    assert "has nobody whose data can be used" in capsys.readouterr().err


def test_fit_does_not_learn_from_them_and_says_so(study, capsys):
    assert main(["fit", str(study)]) == 0
    out = capsys.readouterr().out
    assert "9 participants, empirical Bayes" in out
    assert "3 participants excluded: did not complete (2), withdrew (1)" in out
    assert main(["fit", str(study), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["participants"] == 9
    assert said["excluded"] == {REASON: 2, "withdrew": 1}
    # the split has six people each; P0000005 is of the one, P0000002 and P0000012 are of the other
    assert said["learned_from"].items() >= {"part": "split 'train'", "participants": 5}.items()
    assert set(pl.read_parquet(study / "profile.parquet")["participant"]).isdisjoint(OUT)


def test_a_fit_is_the_same_as_if_they_had_never_been_there(study, tmp_path):
    assert main(["fit", str(study), "--split", "all"]) == 0
    fidm.write_cohort(fidm.read_cohort(study), tmp_path / "without", tasks=["errands"])
    assert main(["fit", str(tmp_path / "without"), "--split", "all"]) == 0
    read = [pl.read_parquet(place / "profile.parquet") for place in (study, tmp_path / "without")]
    assert read[0].equals(read[1])


def test_the_sentence_lists_the_commonest_reasons():
    people = pl.DataFrame({"participant": [str(i) for i in range(9)], "reason": list("aabcdefgg")})
    reasons = count_reasons(people)
    assert list(reasons.items())[:3] == [("a", 2), ("g", 2), ("b", 1)]
    assert (
        say_reasons(reasons)
        == "9 participants excluded: a (2), g (2), b (1), c (1), d (1), other reasons (2)"
    )
    assert say_reasons({"ill": 1}) == "1 participant excluded: ill (1)"
