"""How many later moves each review frees: as if every dialog were followed again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fidm
from fidm.cli.main import main
from fidm.grounding.dialog import GroundedDialog, Waiting, Weighing, follow_path
from fidm.grounding.ground import Grounded
from fidm.io.talk import Transcript, Turn
from fidm.model.gaps import forecast

STATUSES = ("confident", "needs_review", "needs_review", "reviewed", "rejected")


@pytest.fixture(scope="module")
def grounded() -> Grounded:
    task = fidm.load_task("grocery")
    return fidm.ground(fidm.simulate_talks(task, 12, seed=5, language="en").transcripts, task)


SAID = (
    "go left one square and up three squares",
    "go left",
    "go right one square",
    "go left",
    "take the seasoning",
)


def with_statuses(dialog: GroundedDialog, rng: np.random.Generator) -> GroundedDialog:
    """The same dialog in which some segments are doubted, read by hand or rejected."""
    names = rng.choice(STATUSES, size=len(dialog.segments)).tolist()
    return replace(
        dialog,
        segments=tuple(replace(one, status=name) for one, name in zip(dialog.segments, names, strict=True)),
    )


def slowly(dialog: GroundedDialog, accepted: set[int], grounded: Grounded, weighing: Weighing) -> list[int]:
    """The stated actions of each segment that count, by following the dialog with these segments reviewed."""
    segments = [
        replace(one, status="reviewed") if i in accepted else one for i, one in enumerate(dialog.segments)
    ]
    path = follow_path(replace(dialog, segments=tuple(segments)), grounded.terrain, weighing)
    found = [0] * len(segments)
    for (i, _), weight, filled_in in zip(path.source, path.weight, path.inferred, strict=True):
        found[i] += weight > 0 and not filled_in
    return found


@pytest.mark.parametrize("doubtful", [0.0, 0.5])
def test_it_is_what_following_the_dialog_again_gives(grounded: Grounded, doubtful: float) -> None:
    rng, weighing, n_freed = np.random.default_rng(3), Weighing(doubtful=doubtful), 0
    for dialog in grounded.dialogs:
        now = with_statuses(dialog, rng)
        waiting = Waiting(now, grounded.terrain, weighing)
        before = slowly(now, set(), grounded, weighing)
        assert waiting.counted() == before
        for i in waiting.doubted:
            after = slowly(now, {i}, grounded, weighing)
            assert waiting.counted([i]) == after
            assert waiting.frees(i) == sum(after[i + 1 :]) - sum(before[i + 1 :]) >= 0
            n_freed += waiting.frees(i)
        every = set(waiting.doubted)
        assert waiting.counted(every) == slowly(now, every, grounded, weighing)
    assert (n_freed > 0) == (doubtful == 0)


def test_a_doubtful_segment_frees_the_moves_up_to_the_next_named_place() -> None:
    turns = [
        Turn(who, 4.0 * i + more, 4.0 * i + more + 1, text, role=role)
        for i, text in enumerate(SAID)
        for who, more, text, role in (("PAR", 0, text, "participant"), ("ASS", 2, "okay", "assessor"))
    ]
    task = fidm.load_task("grocery")
    grounded = fidm.ground([Transcript("P1", tuple(turns), language="en")], task)
    (dialog,) = grounded.dialogs
    waiting = Waiting(dialog, grounded.terrain, Weighing())
    moves = grounded.segments["n_actions"].to_list()
    assert waiting.doubted == [1, 3]
    assert moves[2] <= waiting.frees(1) <= sum(moves[2:])
    assert waiting.frees(3) > 0  # whoever accepts it has seen where it begins


def test_ground_says_what_reviewing_the_first_would_raise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = tmp_path / "study"
    (study / "talks").mkdir(parents=True)
    for who in ("P1", "P2"):
        lines = ["speaker,start_s,end_s,text"]
        for i, text in enumerate(SAID):
            lines += [f"PAR,{4 * i},{4 * i + 1},{text}", f"INV,{4 * i + 2},{4 * i + 3},okay"]
        (study / "talks" / f"{who}.csv").write_text("\n".join(lines) + "\n", "utf-8")
    (study / "study.toml").write_text('schema = 1\ntasks = ["grocery"]\n', "utf-8")
    assert main(["ground", str(study), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    first, before = told["review_first"], told["forecast"]
    assert {one["segment"] for one in first["segments"]} == {"2", "4"}
    assert main(["ground", str(study)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    shares = [f"{n / before['actions']:.0%}" for n in (before["counted"], first["counted"])]
    assert f"from {shares[0]} to {shares[1]}" in shown

    from fidm.grounding.review.apply import read_proposed
    from fidm.grounding.review.trail import Trail
    from fidm.grounding.review.verdicts import decide, review_dialog

    proposed, trail = read_proposed(study), Trail(study)
    for one in first["segments"]:
        (dialog,) = [item for item in proposed.dialogs if item.transcript.participant == one["participant"]]
        segment = review_dialog(dialog, trail.decisions, proposed.terrain)[int(one["segment"]) - 1]
        trail.append(decide(dialog, segment, proposed.terrain, reviewer="Ann", kind="accept"))
    assert main(["ground", str(study), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["forecast"]["counted"] == first["counted"]
    assert forecast(fidm.read_cohort(study))["counted"] == first["counted"]
