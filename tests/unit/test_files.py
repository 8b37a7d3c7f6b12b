"""Locks between processes, and folders that are whole."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import filelock
import pytest

from fidm.errors import DataError
from fidm.files import WRITING, contents, is_interrupted, locked, recover_folder, whole_folder

HOLDS = """
import sys
from pathlib import Path
from fidm.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_lock_is_waited_for_and_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDS, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        for wait_s in (0.0, 0.05):
            with pytest.raises(TimeoutError), locked(path, wait_s=wait_s, only_reads=True):
                pass
        os.kill(other.pid, signal.SIGKILL)
    with locked(path, wait_s=0.0):
        pass
    assert path.read_bytes() == b""


def test_whoever_only_reads_needs_no_lock_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)
    with locked(tmp_path / "lock", only_reads=True):
        pass
    with pytest.raises(OSError, match="Read-only"), locked(tmp_path / "lock"):
        pass


OLD = {"a.csv": "old", "b/1": "old", "b/2": "old", "kept/mine": "old", "kept/own": "old", "notes": "old"}
NEW = {"a.parquet": "new", "b": "new", "c/1": "new", "kept/own": "new"}
GONE = ["a.csv", "b", "absent", "kept/mine"]
AFTER = {**NEW, "notes": "old"}


def fill(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return folder


def found(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in files}


def replace_files(folder: Path) -> None:
    with whole_folder(folder, replaced=lambda: GONE) as place:
        fill(place, NEW)


def test_new_files_appear_together_and_others_stay(tmp_path: Path) -> None:
    replace_files(fill(tmp_path / "there", OLD))
    assert found(tmp_path / "there") == AFTER
    replace_files(tmp_path / "deep" / "not yet there")
    assert found(tmp_path / "deep" / "not yet there") == NEW
    with pytest.raises(KeyError), whole_folder(tmp_path / "failed", replaced=list) as place:
        fill(place, NEW)
        raise KeyError
    assert sorted(contents(tmp_path)) == ["deep", "there"]


def moments(monkeypatch: pytest.MonkeyPatch, copies: Path, folder: Path, do: Any) -> list[Path]:
    """What the folder was like whenever a file was about to be moved, as a kill at that moment leaves it."""
    really, seen = os.replace, []

    def replace(source: Any, target: Any) -> None:
        seen.append(copies / str(len(seen)))
        shutil.copytree(folder, seen[-1])
        really(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", replace)
        do(folder)
    return seen


def test_whenever_a_writer_is_killed_everything_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if whoever puts it back is killed."""
    stopped = moments(monkeypatch, tmp_path / "once", fill(tmp_path / "study", OLD), replace_files)
    assert len(stopped) == 9
    for n, folder in enumerate(stopped):
        assert is_interrupted(folder)
        for again in moments(monkeypatch, tmp_path / f"twice-{n}", folder, recover_folder):
            assert recover_folder(again)
            assert found(again) == OLD
        assert found(folder) == OLD
        assert not is_interrupted(folder)
        assert not recover_folder(folder)


@pytest.mark.parametrize("error", [OSError(13, "Permission denied"), KeyboardInterrupt()])
@pytest.mark.parametrize("at", range(9))
def test_whatever_goes_wrong_while_files_are_replaced_the_old_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, error: BaseException
) -> None:
    really, left = os.replace, [at]

    def replace(source: Any, target: Any) -> None:
        left[0] -= 1
        if left[0] == -1:
            raise error
        really(source, target)

    folder = fill(tmp_path / "study", OLD)
    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises((DataError, KeyboardInterrupt)):
        replace_files(folder)
    assert found(folder) == OLD


def test_what_is_being_written_and_what_is_not_ours_stays(tmp_path: Path) -> None:
    fill(tmp_path, {f"{WRITING}of-somebody/precious": "old"})
    with whole_folder(tmp_path, replaced=list) as place:
        replace_files(tmp_path)
        assert place.is_dir()
        (place.parent / "old").mkdir()
        with pytest.raises(DataError, match="another process"):
            recover_folder(tmp_path)
        (place.parent / "old").rmdir()
    assert found(tmp_path) == {**NEW, f"{WRITING}of-somebody/precious": "old"}


def test_who_comes_second_is_refused(tmp_path: Path) -> None:
    def refuse() -> list[str]:
        if contents(tmp_path):
            raise DataError("exists already.")
        return []

    with pytest.raises(DataError, match="exists"), whole_folder(tmp_path, replaced=refuse) as place:
        fill(place, {"b": "second"})
        replace_files(tmp_path)
    assert found(tmp_path) == NEW
