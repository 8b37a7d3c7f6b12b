"""The trail of decisions: nothing in it can be changed unseen, and nothing that was told is lost."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fidm.errors import DataError, GroundingError
from fidm.grounding.review import trail as decisions
from fidm.grounding.review.trail import (
    FILE,
    HEAD,
    LOCK,
    NOTHING_YET,
    Decision,
    Outcome,
    Sample,
    Trail,
    verify_trail,
    words_hash,
)

OLD = Outcome("MOVE left 1", ("W",))


def decision(reviewer: str = "Ann", **more: Any) -> Decision:
    values: dict[str, Any] = {
        "reviewer": reviewer, "kind": "accept", "participant": "P1", "episode": "1", "segment": "1",
        "turns": "1", "words": words_hash("left"), "task": "t", "start": 3, "old": OLD, "new": OLD,
    }  # fmt: skip
    return Decision(**{**values, **more})


def file(study: Path) -> Path:
    return study / "grounding" / FILE


def filled(study: Path, n: int = 3) -> Trail:
    trail = Trail(study)
    for i in range(n):
        trail.append(decision(segment=str(i + 1)))
    return trail


def test_what_is_added_is_there_and_read_back(tmp_path: Path) -> None:
    trail = Trail(tmp_path)
    assert (trail.entries, trail.head) == ((), NOTHING_YET)
    one = trail.append(
        decision(kind="edit", new=Outcome("NONE", ()), comment="家 ok", settles=True, sample="s")
    )
    two = trail.append(
        Sample(reviewer="Bo", name="audit-1-2", seed=1, n=2, dialogs=(("P1", "1"), ("P2", "1")))
    )
    assert (one.number, two.number) == (1, 2)
    assert one.at.endswith("Z")
    assert len(one.at) == 20
    again = Trail(tmp_path)
    assert again.entries == trail.entries == (one, two)
    assert (again.decisions, again.samples, again.head) == ((one,), (two,), trail.head)
    assert [again.place_of(head) for head in (NOTHING_YET, trail.head, "f" * 64)] == [0, 2, None]


def test_each_line_holds_the_hash_of_the_exact_bytes_of_the_one_before(tmp_path: Path) -> None:
    import hashlib

    trail = filled(tmp_path)
    lines = file(tmp_path).read_bytes().splitlines()
    wanted = [NOTHING_YET, *(hashlib.sha256(line).hexdigest() for line in lines)]
    assert [json.loads(line)["previous"] for line in lines] == wanted[:-1]
    assert trail.head == wanted[-1]
    assert (tmp_path / "grounding" / HEAD).read_text() == f"{wanted[-1]}\n"


def test_only_the_owner_can_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        filled(tmp_path)
    finally:
        os.umask(before)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "grounding").iterdir()}
    assert modes == dict.fromkeys((FILE, HEAD, LOCK), 0o600)
    assert stat.S_IMODE((tmp_path / "grounding").stat().st_mode) == 0o700


def test_two_trails_of_one_study_see_what_the_other_added(tmp_path: Path) -> None:
    one, other = Trail(tmp_path), Trail(tmp_path)
    one.append(decision("Ann"))
    assert other.append(decision("Bo")).number == 2
    assert one.refresh() == 1
    assert one.refresh() == 0
    assert one.entries == other.entries


def test_texts_are_cleaned_and_cut(tmp_path: Path) -> None:
    trail = Trail(tmp_path)
    made = trail.append(
        decision("  A\x1b[31mn\nn\u202e " + "x" * 200, comment="a\nb\x00\ud800\u2028c" + "y" * 5000)
    )
    assert made.reviewer == ("A[31mnn " + "x" * 200)[:80]
    assert made.comment == ("a b c" + "y" * 5000)[:2000]
    assert Trail(tmp_path).entries == (made,)
    assert len(file(tmp_path).read_bytes().splitlines()) == 1


@pytest.mark.parametrize("name", ["", "  ", "\u202e\x00"])
def test_a_decision_needs_a_reviewer(tmp_path: Path, name: str) -> None:
    with pytest.raises(GroundingError, match="reviewer"):
        Trail(tmp_path).append(decision(name))
    assert not file(tmp_path).exists()


def test_a_check_that_fails_adds_nothing_and_sees_what_others_added(tmp_path: Path) -> None:
    one, other = Trail(tmp_path), Trail(tmp_path)
    other.append(decision("Bo"))

    def refuse() -> None:
        assert len(one.entries) == 1
        raise GroundingError("changed meanwhile")

    with pytest.raises(GroundingError, match="meanwhile"):
        one.append(decision(), check=refuse)
    assert verify_trail(tmp_path).n_entries == 1


# ------------------------------------------------------------------ changes are found


def test_every_single_changed_byte_is_found(tmp_path: Path) -> None:
    filled(tmp_path, 2)
    whole = file(tmp_path).read_bytes()
    assert verify_trail(tmp_path).is_whole
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] = changed[place] ^ 1
        file(tmp_path).write_bytes(changed)
        assert verify_trail(tmp_path).problems, place


def lines_of(study: Path) -> list[bytes]:
    return file(study).read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_removed_swapped_repeated_and_foreign_lines_are_found(tmp_path: Path, n: int) -> None:
    filled(tmp_path, n)
    whole = lines_of(tmp_path)
    wrong = [whole[:i] + whole[i + 1 :] for i in range(n)]
    wrong += [
        [*whole[:i], whole[j], *whole[i + 1 : j], whole[i], *whole[j + 1 :]]
        for j in range(n)
        for i in range(j)
    ]
    wrong += [[*whole[: i + 1], *whole[i:]] for i in range(n)]
    wrong += [[*whole[:i], b"\n", *whole[i:]] for i in range(n + 1)]
    wrong += [[*whole, b'{"entry":"decision"}\n'], [*whole, b"[]\n"], [b"[" * 100_000 + b"\n"]]
    for lines in wrong:
        file(tmp_path).write_bytes(b"".join(lines))
        assert verify_trail(tmp_path).problems
        with pytest.raises(GroundingError, match="changed from outside"):
            Trail(tmp_path)


def test_a_trail_that_is_gone_is_found(tmp_path: Path) -> None:
    trail = filled(tmp_path)
    file(tmp_path).unlink()
    assert verify_trail(tmp_path).problems
    for use in (trail.refresh, lambda: Trail(tmp_path)):
        with pytest.raises(GroundingError, match="not there any more"):
            use()


def test_a_trail_that_was_written_again_from_the_start_needs_an_expected_head(tmp_path: Path) -> None:
    """Who can write the whole folder can make a new chain; the head somebody wrote down tells."""
    head = filled(tmp_path).head
    for name in (FILE, HEAD):
        (tmp_path / "grounding" / name).unlink()
    filled(tmp_path, 2)
    assert verify_trail(tmp_path).is_whole
    assert "expected" in verify_trail(tmp_path, expect=head).problems[0]
    assert verify_trail(tmp_path, expect=f" {Trail(tmp_path).head.upper()}\n").is_whole
    assert verify_trail(tmp_path, expect=NOTHING_YET).problems


def test_an_earlier_head_is_still_in_a_trail_that_went_on(tmp_path: Path) -> None:
    head = filled(tmp_path).head
    filled(tmp_path)
    found = verify_trail(tmp_path, expect=head)
    assert (found.is_whole, found.n_entries) == (True, 6)


def test_the_head_the_tables_were_made_with_must_be_there(tmp_path: Path) -> None:
    trail = filled(tmp_path)
    provenance = tmp_path / "grounding" / "provenance.json"
    provenance.write_text(json.dumps({"review": {"head": trail.head}}))
    assert verify_trail(tmp_path).is_whole
    provenance.write_text(json.dumps({"review": {"head": "0f" * 32}}))
    assert "tables" in verify_trail(tmp_path).problems[0]


def test_nothing_is_whole(tmp_path: Path) -> None:
    found = verify_trail(tmp_path)
    assert (found.n_entries, found.head, found.problems, found.notes) == (0, NOTHING_YET, (), ())
    with pytest.raises(DataError, match="not a folder"):
        verify_trail(tmp_path / "nowhere")


# ------------------------------------------------------------------ killed and crowded


def test_a_line_that_was_not_finished_is_put_aside(tmp_path: Path) -> None:
    filled(tmp_path, 2)
    for number in (1, 2):
        with file(tmp_path).open("ab") as lines:
            lines.write(b'{"previous":"ab')
        found = verify_trail(tmp_path)
        assert found.is_whole
        assert "not whole" in found.notes[0]
        assert Trail(tmp_path).append(decision("Bo")).number == 2 + number
        torn = tmp_path / "grounding" / f"review.torn-{number}"
        assert torn.read_bytes() == b'{"previous":"ab'
        assert stat.S_IMODE(torn.stat().st_mode) == 0o600
    assert "2 unfinished lines" in verify_trail(tmp_path).notes[0]
    assert len(Trail(tmp_path).entries) == 4


def test_a_last_line_that_somebody_was_told_of_is_never_put_aside(tmp_path: Path) -> None:
    trail = filled(tmp_path)
    file(tmp_path).write_bytes(file(tmp_path).read_bytes()[:-1])
    with pytest.raises(GroundingError, match="changed from outside"):
        Trail(tmp_path)
    with pytest.raises(GroundingError, match="shorter"):
        trail.append(decision())
    assert not list((tmp_path / "grounding").glob("review.torn-*"))


def test_a_process_killed_between_the_line_and_its_head_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trail = filled(tmp_path, 1)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(decisions, "_keep_head", killed)
    with pytest.raises(KeyboardInterrupt):
        trail.append(decision("Bo"))
    monkeypatch.undo()
    assert verify_trail(tmp_path).is_whole
    assert trail.append(decision("Cy")).number == 3
    assert [entry.reviewer for entry in Trail(tmp_path).entries] == ["Ann", "Bo", "Cy"]


def test_a_full_disk_is_a_sentence_and_the_trail_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trail = filled(tmp_path, 1)
    write = os.write
    monkeypatch.setattr(os, "write", lambda held, line: write(held, line[:40]))
    with pytest.raises(DataError, match="cannot be written"):
        trail.append(decision("Bo"))
    monkeypatch.undo()
    assert verify_trail(tmp_path).is_whole
    assert trail.append(decision("Bo")).number == 2
    assert verify_trail(tmp_path).n_entries == 2


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "grounding" / FILE).mkdir(parents=True)
    with pytest.raises(DataError, match="cannot be"):
        Trail(tmp_path)


WORKER = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from test_trail import decision
from fidm.grounding.review.trail import Trail
trail, how = Trail(sys.argv[1]), sys.argv[2]
if how == "half":
    write = os.write
    def half(held, line):
        write(held, line[: len(line) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    os.write = half
for _ in range(25 if how != "endless" else 10**6):
    print(trail.append(decision(how)).number, flush=True)
"""


def worker(study: Path, how: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(study), how, str(Path(__file__).parent)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_several_processes_and_a_killed_one_keep_the_chain_whole(tmp_path: Path) -> None:
    """One that finishes, one killed at any moment, one killed half-way through a line."""
    filled(tmp_path, 1)
    running = {how: worker(tmp_path, how) for how in ("Ann", "endless", "half")}
    told = 0
    stream = running["endless"].stdout
    assert stream is not None
    for _ in range(20):
        told = int(stream.readline())
    running["endless"].send_signal(signal.SIGKILL)
    output = {how: process.communicate(timeout=60)[0] for how, process in running.items()}
    assert running["half"].returncode == running["endless"].returncode == -signal.SIGKILL
    assert output["half"] == ""
    found = verify_trail(tmp_path)
    assert found.is_whole
    assert found.n_entries >= told
    by_number = {entry.number: entry.reviewer for entry in Trail(tmp_path).entries}
    assert len(output["Ann"].split()) == 25
    for how in ("Ann", "endless"):
        assert {by_number[int(line)] for line in output[how].split()} <= {how}
    assert Trail(tmp_path).append(decision()).number == found.n_entries + 1
    assert verify_trail(tmp_path).is_whole
    assert len(list((tmp_path / "grounding").glob("review.torn-*"))) == 1


def test_a_disk_that_is_full_for_the_head_alone_loses_and_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda held, line: write(held, line if len(line) > 65 else b""))
    trail = Trail(tmp_path)
    with pytest.raises(DataError, match="Nothing was decided"):
        trail.append(decision("Ann"))
    monkeypatch.undo()
    assert (tmp_path / "grounding" / FILE).read_bytes() == b""
    assert trail.append(decision("Ann")).number == 1
    assert sorted(path.name for path in (tmp_path / "grounding").iterdir()) == [HEAD, FILE, LOCK]
    assert verify_trail(tmp_path).is_whole


def test_an_empty_or_missing_head_is_a_note(tmp_path: Path) -> None:
    filled(tmp_path, 2)
    for content in (b"", None):
        (tmp_path / "grounding" / HEAD).unlink() if content is None else (
            tmp_path / "grounding" / HEAD
        ).write_bytes(content)
        found = verify_trail(tmp_path)
        assert found.is_whole
        assert "not there" in found.notes[0]


@pytest.mark.parametrize("name", [FILE, HEAD])
def test_a_link_out_of_the_study_is_never_followed(tmp_path: Path, name: str) -> None:
    study, other = tmp_path / "study", tmp_path / "other.txt"
    (study / "grounding").mkdir(parents=True)
    other.write_text("somebody else's")
    (study / "grounding" / name).symlink_to(other)
    with pytest.raises(DataError, match="it is a link"):
        Trail(study)
    with pytest.raises(DataError, match="it is a link"):
        verify_trail(study)
    assert other.read_text() == "somebody else's"


def test_a_pipe_in_place_of_the_trail_does_not_hang(tmp_path: Path) -> None:
    (tmp_path / "grounding").mkdir()
    os.mkfifo(tmp_path / "grounding" / FILE)
    with pytest.raises(DataError, match="it is no file"):
        verify_trail(tmp_path)
