"""What this machine has: found without importing much, and a broken package is said, not raised."""

from __future__ import annotations

import http.server
import importlib.metadata
import io
import json
import socket
import subprocess
import sys
import threading

import pytest

from fidm import doctor
from fidm.cli.main import main


@pytest.fixture(autouse=True)
def no_servers(monkeypatch):
    monkeypatch.setattr(doctor, "PORTS", {})


def found(part, name=""):
    return next(one for one in part() if one.name.startswith(name))


def gone(monkeypatch, *names, be="gone"):
    true = importlib.metadata.version

    def version(name):
        if name in names and be == "gone":
            raise importlib.metadata.PackageNotFoundError(name)
        return be if name in names else true(name)

    monkeypatch.setattr(doctor, "version", version)


@pytest.fixture
def served():
    """A server on loopback that says what a test wants; gives its port and what it was asked."""
    answers, asked = {"status": 200, "body": b"{}"}, []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(answers["status"])
            self.end_headers()
            self.wfile.write(answers["body"])

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1], answers, asked
    server.shutdown()
    server.server_close()


def test_a_machine_that_is_well(capsys):
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "✓ Python" in said
    assert "✓ extra speech" in said
    assert "extra dev" not in said
    assert "can do its work here" in said
    assert main(["doctor", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["can_work"] is True
    assert {one["status"] for one in told["checks"]} <= {"ok", "lacking"}


def test_what_is_not_ok_has_a_remedy():
    assert all(one.status == "ok" or one.remedy for one in doctor.examine().checks)


def test_it_imports_nothing_that_takes_long():
    ask = "import sys; from fidm.doctor import examine; examine(); print(*{'sklearn', 'torch', 'jax'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_missing_extra_says_how_to_install_it(monkeypatch, capsys):
    gone(monkeypatch, "rustling")
    one = found(doctor._extras, "extra speech")
    assert (one.status, one.remedy) == ("lacking", "pip install 'fidm[speech]'")
    assert "rustling>=0.9" in one.said
    assert main(["doctor"]) == 0
    assert "– extra speech" in capsys.readouterr().out


@pytest.mark.parametrize("be", ["gone", "0.1"])
def test_a_library_that_is_missing_or_too_old_is_a_problem(be, monkeypatch, capsys):
    gone(monkeypatch, "polars", be=be)
    assert "pip install -U 'polars>=" in found(doctor._libraries).remedy
    assert main(["doctor"]) == 1
    assert "✗ libraries" in capsys.readouterr().out


def test_a_broken_package_is_no_crash(monkeypatch):
    gone(monkeypatch, "torch", be=None)  # its folder is there, and no metadata
    assert found(doctor._extras, "extra language").status == "lacking"

    def unread(_):
        raise ValueError("no such field")

    monkeypatch.setattr(doctor, "metadata", unread)
    checks = {one.name: one for one in doctor.examine().checks}
    assert checks["extras"].status == "lacking"
    assert checks["terminal"].status == "ok"

    def refuse(name):
        raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(doctor.importlib, "import_module", refuse)
    one = found(doctor._compiled)
    assert (one.status, "NUMBA_CACHE_DIR" in one.remedy) == ("problem", True)


def test_without_its_metadata_fidm_says_so(monkeypatch):
    def nothing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    for name in ("version", "requires", "metadata"):
        monkeypatch.setattr(doctor, name, nothing)
    found = doctor.examine()
    assert found.can_work
    assert not any(one.name.startswith("extra ") for one in found.checks)


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b'{"data": [{"id": "qwen3"}, {"id": "gemma"}]}', "qwen3, gemma"),
        (200, b'{"data": []}', "names no model"),
        (200, b'{"data": [1]}', None),
        (200, b"<html>", None),
        (200, b"[" * 100_000, None),
        (302, b"", None),
        (500, b'{"data": [{"id": "a"}]}', None),
    ],
)
def test_a_server_of_language_models_is_found(status, body, said, served, monkeypatch):
    port, answers, asked = served
    answers.update(status=status, body=body)
    monkeypatch.setattr(doctor, "PORTS", {"Ollama": port})
    one = found(doctor._servers)
    assert asked == ["/v1/models"]
    assert (one.status == "ok") == (said is not None)
    assert said is None or said in one.said


def test_servers_are_looked_for_on_this_machine_alone(monkeypatch):
    asked = []

    def connect(address, *_, **__):
        asked.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", connect)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://192.0.2.1:3128")
    monkeypatch.setattr(doctor, "PORTS", {"Ollama": 11434, "vLLM": 8000})
    assert found(doctor._servers).status == "lacking"
    assert sorted(asked) == [("127.0.0.1", 8000), ("127.0.0.1", 11434)]


def test_a_silent_server_is_not_waited_for(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(doctor, "PORTS", {"Ollama": silent.getsockname()[1]})
        monkeypatch.setattr(doctor, "WAIT_S", 0.05)
        assert found(doctor._servers).status == "lacking"


def test_fonts_encoders_and_the_terminal(monkeypatch, tmp_path):
    monkeypatch.setattr("fidm.plot.style.chinese_families", lambda: ())
    assert "fonts-noto-cjk" in found(doctor._fonts).remedy
    monkeypatch.setattr("fidm.classify.encoder.encoders_here", lambda: ("hfl/chinese-macbert-base",))
    assert found(doctor._encoders).said == "hfl/chinese-macbert-base"
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert "UTF-8" in found(doctor._terminal).remedy


def test_a_folder_that_cannot_be_written(monkeypatch):
    def refuse(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(doctor.tempfile, "TemporaryFile", refuse)
    assert found(doctor._folder).said == "cannot be written: Permission denied"


def test_encoders_are_found_where_they_are_kept(monkeypatch, tmp_path):
    from huggingface_hub import constants

    from fidm.classify.encoder import encoders_here

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    assert encoders_here() == ()
    for name, files in (
        ("mine--bert", ("config.json", "vocab.txt", "model.safetensors")),
        ("half", ("config.json",)),
    ):
        folder = tmp_path / "hub" / f"models--{name}" / "snapshots" / "abc"
        folder.mkdir(parents=True)
        for file in files:
            (folder / file).write_text("{}")
    assert encoders_here() == ("mine/bert",)
