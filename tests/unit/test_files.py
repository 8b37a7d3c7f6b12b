"""Locks between processes."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import filelock
import pytest

from fidm.files import locked

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
