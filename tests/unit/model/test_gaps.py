"""Who has no data, whose episodes are copies, whose effort awaits review."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

import fidm
from fidm.cohort import Cohort
from fidm.model.gaps import Gaps, has_copies, named, only_in_doubt, with_data

TASK = fidm.load_task("errands")
PEOPLE = fidm.simulate_cohort(TASK, 4, seed=1)


def absent(*names: str) -> Cohort:
    return replace(
        PEOPLE[:0],
        participants=pl.DataFrame({"participant": names}),
        episode_offsets=np.zeros(len(names) + 1, dtype=np.int64),
    )


def twice(cohort: Cohort, change_s: float = 0.0) -> Cohort:
    """Everybody's episode once more as a second visit, the times of its segments changed by so much."""
    rows = [e for e in range(cohort.n_episodes) for _ in range(2)]
    parts = [cohort[[e]] for e in rows]
    again = np.arange(len(rows)) % 2
    for i, part in enumerate(parts):
        later = part.segments.with_columns(pl.col("duration_s") + change_s * again[i])
        parts[i] = replace(part, segments=later)
    whole = Cohort.concat([
        replace(part, participants=pl.DataFrame({"participant": [f"{rows[i]}-{again[i]}"]}))
        for i, part in enumerate(parts)
    ])  # fmt: skip
    return replace(
        whole,
        participants=cohort.participants.select("participant"),
        episode_offsets=np.arange(0, len(rows) + 1, 2),
        episodes=whole.episodes.with_columns(episode=pl.Series([str(1 + i) for i in again])),
    )


def test_people_without_an_episode_have_no_data_and_are_named() -> None:
    both = Cohort.concat([PEOPLE, absent("X1", "X2")])
    assert with_data(both).ids.to_list() == PEOPLE.ids.to_list()
    assert len(with_data(both[4:])) == 2
    assert Gaps.of(both).say("dialog") == ("2 participants have no dialog: X1, X2",)
    assert Gaps.of(both[:5]).say("episode") == ("1 participant has no episode: X1",)
    assert Gaps.of(PEOPLE).say("dialog") == ()
    assert Gaps.of(both[:5]) + Gaps.of(both[5:]) == Gaps.of(both)


def test_exact_copies_are_found_and_repetitions_are_not() -> None:
    assert has_copies(twice(PEOPLE)).all()
    assert not has_copies(twice(PEOPLE, change_s=0.001)).any()
    assert not has_copies(PEOPLE).any()
    bare = twice(PEOPLE)
    bare = replace(bare, segments=bare.segments.select("segment", "n_moves"))
    assert not has_copies(bare).any()  # the same way twice may be chance
    (said,) = Gaps.of(twice(PEOPLE)).say("dialog")
    assert said.startswith("4 participants have episodes that are exact copies of each other: ")
    assert said.endswith(
        ". A copy counts once more, so intervals are too narrow: delete the copied files and run fidm again"
    )


def test_effort_that_rests_on_doubtful_segments_alone_is_named() -> None:
    counts = np.diff(PEOPLE.segment_offsets)
    status = (
        ["needs_review"] * counts[0] + ["confident"] + ["needs_review"] * (PEOPLE.n_segments - counts[0] - 1)
    )
    doubted = replace(PEOPLE, segments=PEOPLE.segments.with_columns(status=pl.Series(status)))
    assert only_in_doubt(doubted).tolist() == [True, False, True, True]
    (said,) = Gaps.of(doubted[:2]).say("dialog")
    assert said == f"the effort of 1 participant rests only on segments that await review: {doubted.ids[0]}"


def test_only_the_first_of_many_are_named() -> None:
    assert named([str(i) for i in range(12)]) == "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"


def test_whoever_has_only_far_longer_segments_than_the_others_is_named():
    segments = pl.DataFrame(
        {
            "participant": ["a", "a", "b", "b", "c"],
            "segment": [1, 2, 1, 2, 1],
            "n_moves": [3, 12, 5, 16, 41],
            "duration_s": [2.0, 5.0, 3.0, 6.0, 41.0],
        }
    )
    (said,) = Gaps.of(fidm.Cohort.from_segments(segments)).say("episode")
    assert said.startswith("every segment of c has far more moves than any segment of the others")
    a_little = segments.with_columns(n_moves=pl.Series([3, 12, 5, 16, 20]))
    assert not Gaps.of(fidm.Cohort.from_segments(a_little)).longer
    among = segments.with_columns(n_moves=pl.Series([3, 12, 5, 44, 41]))
    assert not Gaps.of(fidm.Cohort.from_segments(among)).longer


def test_pauses_some_files_cannot_show_are_said_with_what_durations_are():
    segments = pl.DataFrame(
        {"participant": ["a", "b"], "segment": [1, 1], "duration_s": [2.0, 5.0], "pause_s": [None, 1.0]}
    )
    (said,) = Gaps.of(fidm.Cohort.from_segments(segments)).say("episode")
    assert said.endswith(": a; the others' leave pauses out, so the two cannot be compared in duration")
    included = segments.with_columns(pauses_included=True)
    (said,) = Gaps.of(fidm.Cohort.from_segments(included)).say("dialog")
    assert said.endswith(": a. To be comparable, the durations of all others include pauses, too")


def test_characters_left_out_for_their_script_are_said_with_what_to_do():
    segments = pl.DataFrame(
        {
            "participant": ["a", "b", "c", "d", "e"],
            "segment": [1, 1, 1, 1, 1],
            "n_moves": [3, 3, 3, 3, 3],
            "n_characters": [30, None, 31, None, None],
            "n_characters_any_script": [30, 11, 31, 12, 40],
            "script": ["Latin", "Han", "Latin", "Han", "Cyrillic"],
        }
    )
    cohort = fidm.Cohort.from_segments(segments)
    (said,) = Gaps.of(cohort[:4]).say("dialog")
    assert said == (
        "character counts of 2 participants are left out: those of b, d are in Chinese characters, and those "
        "of the other 2 in Latin letters, which cannot be compared. Fit the languages apart, or use the "
        "column n_characters_any_script with the design column script"
    )
    (said,) = Gaps.of(cohort).say("dialog")
    assert "of 3 participants are left out: those of b, d are in Chinese characters, those of e in C" in said
    assert Gaps.of(cohort[:2]) + Gaps.of(cohort[2:]) == Gaps.of(cohort)
    assert Gaps.of(cohort, columns=["n_characters_any_script"]).say("dialog") == ()
    assert Gaps.of(cohort[::2][:2]).say("dialog") == ()
    both = segments[:3].with_columns(participant=pl.Series(["a", "a", "c"]), segment=pl.Series([1, 2, 1]))
    (said,) = Gaps.of(fidm.Cohort.from_segments(both)).say("dialog")
    assert "of 1 participant are left out: those of a (in part) are in Chinese characters" in said
    assert "and those of the other 1 in Latin letters" in said
