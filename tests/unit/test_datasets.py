"""Published data sets: where their files are, whether they are the published ones, and fetching them."""

from __future__ import annotations

import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import polars as pl
import pytest
from made_up import toy_study
from made_up.toy_study import DATASET, ELSEWHERE, FILES, HOME, REANALYSIS, install, write
from real_studies import differences

import fidm.datasets
from fidm.datasets import base, fetching
from fidm.datasets.fetching import address
from fidm.errors import DataError
from fidm.reanalyses import Expectation, Findings, find_study, study_names
from fidm.reanalyses.markdown import to_markdown
from fidm.reanalyses.page import to_html
from fidm.reanalyses.running import run_study, write_study
from fidm.reanalyses.told import tell
from fidm.record import Record
from fidm.report import parts

ROOT = Path(__file__).parents[2]

BUILT_IN = {
    "space-adventure": (640, "bf2de236ecee30f0"),
    "justhink": (53, "c4faf5624fc76ef9"),
    "map-task": (512, "2cbbbf32b8108f71"),
}
"""How many files each data set has, and a hash of their addresses, each of which was seen to exist."""


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    monkeypatch.delenv("FIDM_DATA", raising=False)


@pytest.fixture
def data(tmp_path):
    write(tmp_path / DATASET.folder)
    return tmp_path


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        path = unquote(self.path)
        self.server.asked.append(path)
        how = self.server.ways.get(path, "")
        content = self.server.files.get(path)
        if how == "once broken":
            self.server.ways[path] = ""
            how = "broken"
        if content is None or how == "404":
            self.send_error(404)
            return
        if how == "other":
            content = b"something else"
        self.send_response(200)
        self.send_header("Content-Length", str(len(content) + (9 if how == "broken" else 0)))
        self.end_headers()
        self.wfile.write(content[:5] if how == "broken" else content)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    """A server of this machine that has the published files; ``ways`` says which of them go wrong, and how."""
    monkeypatch.setattr(fetching, "WAIT_S", 0.0)
    found = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    found.files = {
        "/one/data/numbers.csv": FILES["numbers.csv"],
        "/one/data/more/a file.txt": FILES["more/a file.txt"],
        "/two/notes.txt": FILES["other/notes.txt"],
    }
    found.ways, found.asked = {}, []
    at = f"http://127.0.0.1:{found.server_port}"
    found.urls = {HOME: f"{at}/one", ELSEWHERE: f"{at}/two/"}
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def files_in(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# ---- Where files are.


def test_the_folder_is_named_by_argument_or_by_the_environment(data, monkeypatch):
    assert fidm.datasets.data_folder(data) == data
    with pytest.raises(DataError, match="--data"):
        fidm.datasets.data_folder()
    monkeypatch.setenv("FIDM_DATA", str(data))
    assert fidm.datasets.data_folder() == data
    assert fidm.datasets.dataset_folder(DATASET) == data / DATASET.folder
    monkeypatch.setenv("FIDM_DATA", str(data / "none"))
    with pytest.raises(DataError, match=r"no such folder .*FIDM_DATA"):
        fidm.datasets.data_folder()


def test_the_folder_may_be_the_data_set_s_own(data, tmp_path_factory):
    own = data / DATASET.folder
    assert fidm.datasets.dataset_folder(DATASET, own) == own
    with pytest.raises(DataError, match="fidm studies download numbers"):
        fidm.datasets.dataset_folder(DATASET, tmp_path_factory.mktemp("empty"))


# ---- Whether they are the published ones.


def test_verify_names_all_that_is_missing_or_changed_at_once(data):
    own = data / DATASET.folder
    (own / "what nobody knows.txt").write_text("does not matter")
    assert fidm.datasets.verify(DATASET, own).is_empty()
    (own / "numbers.csv").write_text("participant,named\nA,1\n")
    (own / "other/notes.txt").unlink()
    found = fidm.datasets.verify(DATASET, own)
    assert dict(found.iter_rows()) == {"numbers.csv": "changed", "other/notes.txt": "missing"}


def test_whoever_has_the_whole_archive_needs_no_single_files(tmp_path):
    archive = b"all of them"
    manifest = {"all.tar.gz": hashlib.sha256(archive).hexdigest(), **DATASET.manifest}
    packed = replace(DATASET, manifest=manifest, archives=("all.tar.gz",))
    own = tmp_path / packed.folder
    write(own)
    assert fidm.datasets.verify(packed, own).is_empty()
    for path in FILES:
        (own / path).unlink()
    assert set(fidm.datasets.verify(packed, own)["path"]) == set(FILES)
    (own / "all.tar.gz").write_bytes(archive)
    assert fidm.datasets.verify(packed, own).is_empty()
    (own / "all.tar.gz").write_bytes(b"something else")
    assert fidm.datasets.verify(packed, own).rows() == [("all.tar.gz", "changed")]
    (own / "numbers.csv").write_bytes(FILES["numbers.csv"])
    assert set(fidm.datasets.verify(packed, own)["path"]) == set(FILES) - {"numbers.csv"}


def test_load_refuses_changed_files_unless_told_otherwise(data):
    steps = []
    found = fidm.datasets.load(DATASET, data, on_progress=lambda *step: steps.append(step))
    assert found.verified
    assert found.notes == ("Nobody was left out.",)
    assert ("reading", 0, 1) in steps
    (data / DATASET.folder / "numbers.csv").write_text("participant,named\nMallory,666\n")
    with pytest.raises(DataError) as caught:
        fidm.datasets.load(DATASET, data)
    assert [problem.where for problem in caught.value.problems] == ["numbers.csv"]
    assert "verified=False" in str(caught.value)
    assert "Mallory" not in str(caught.value)
    changed = fidm.datasets.load(DATASET, data, verified=False)
    assert not changed.verified
    assert "not the files as published (1 changed)" in changed.notes[-1]
    assert changed.cohort.ids.to_list() == ["Mallory"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("abc  file", "Line 1"),
        ("# a remark\n" + "0" * 64 + " file", "Line 2"),
        (2 * ("0" * 64 + "  file\n"), "again"),
        ("0" * 64 + "  ../file", "outside"),
        ("0" * 64 + "  /etc/passwd", "outside"),
    ],
)
def test_a_manifest_that_cannot_be_read_says_where(text, what):
    with pytest.raises(DataError, match=what):
        base.parse_manifest(text)


# ---- Fetching them.


def test_download_fetches_what_is_missing_and_checks_it(tmp_path, server):
    steps = []
    folder = fidm.datasets.download(
        DATASET, tmp_path / "new", base_urls=server.urls, on_progress=lambda *step: steps.append(step)
    )
    assert folder == tmp_path / "new" / DATASET.folder
    assert files_in(folder) == FILES
    assert [step for step in steps if step[0] == "downloading"][-1] == ("downloading", 3, 3)
    assert (folder / "numbers.csv").stat().st_mode & 0o777 == 0o666 & ~_umask()
    server.asked.clear()
    fidm.datasets.download(DATASET, tmp_path / "new", base_urls=server.urls)
    assert server.asked == []
    (folder / "numbers.csv").write_text("changed")
    fidm.datasets.download(DATASET, folder, base_urls=server.urls)
    assert server.asked == ["/one/data/numbers.csv"]
    assert files_in(folder) == FILES


def test_a_changed_archive_is_made_good_by_single_files(tmp_path, server):
    manifest = {"all.tar.gz": "0" * 64, **DATASET.manifest}
    packed = replace(DATASET, manifest=manifest, archives=("all.tar.gz",))
    own = tmp_path / packed.folder
    own.mkdir()
    (own / "all.tar.gz").write_bytes(b"something else")
    assert fidm.datasets.download(packed, tmp_path, base_urls=server.urls) == own
    assert files_in(own) == {"all.tar.gz": b"something else", **FILES}
    assert fidm.datasets.verify(packed, own).is_empty()


def test_what_is_not_the_published_file_is_not_kept(tmp_path, server):
    server.ways = {"/one/data/numbers.csv": "other", "/two/notes.txt": "404"}
    with pytest.raises(DataError, match="2 of 3 files could not be fetched") as caught:
        fidm.datasets.download(DATASET, tmp_path, base_urls=server.urls)
    said = {problem.where: problem.what for problem in caught.value.problems}
    assert "checksum" in said["numbers.csv"]
    assert "404" in said["other/notes.txt"]
    assert set(files_in(tmp_path)) == {f"{DATASET.folder}/more/a file.txt"}


def test_a_broken_connection_is_tried_again_and_leaves_nothing_half(tmp_path, server):
    server.ways = {"/one/data/numbers.csv": "once broken"}
    folder = fidm.datasets.download(DATASET, tmp_path / "a", base_urls=server.urls)
    assert files_in(folder) == FILES
    assert server.asked.count("/one/data/numbers.csv") == 2
    server.ways = {"/two/notes.txt": "broken"}
    with pytest.raises(DataError, match=r"connection failed .* goes on from there"):
        fidm.datasets.download(DATASET, tmp_path / "b", base_urls=server.urls)
    assert set(files_in(tmp_path / "b" / DATASET.folder)) == {"numbers.csv", "more/a file.txt"}
    server.ways, server.asked[:] = {}, []
    fidm.datasets.download(DATASET, tmp_path / "b", base_urls=server.urls)
    assert server.asked == ["/two/notes.txt"]


def test_a_server_that_is_not_there_is_an_error_at_once(tmp_path, server):
    urls = dict.fromkeys(server.urls, "http://127.0.0.1:9")
    with pytest.raises(DataError, match="connection failed"):
        fidm.datasets.download(DATASET, tmp_path, base_urls=urls)
    assert files_in(tmp_path) == {}


def test_an_interrupted_download_leaves_nothing_half(tmp_path, server):
    def interrupt(doing, done, of):
        if doing == "downloading" and done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fidm.datasets.download(DATASET, tmp_path, base_urls=server.urls, on_progress=interrupt)
    assert files_in(tmp_path / DATASET.folder) == {"numbers.csv": FILES["numbers.csv"]}


def test_without_pooch_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataError, match=re.escape("pip install 'fidm[data]'")):
        fidm.datasets.download(DATASET, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# ---- The built-in ones, and those of other packages.


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_data_set_says_whose_it_is_and_where_each_file_is_published(name):
    dataset = fidm.datasets.find_dataset(name)
    assert dataset.name == name
    assert all(
        (dataset.title, dataset.summary, dataset.people, dataset.licence, dataset.terms, dataset.citation)
    )
    assert all(re.search(r"doi\.org/10\.|https://", one) for one in dataset.citation)
    assert dataset.licence_url.startswith("https://")
    for source in dataset.sources:
        assert re.fullmatch("[0-9a-f]{40}", source.version)
        assert source.version in source.base_url
    found = [address(dataset, path) for path in dataset.paths]
    digest = hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()
    assert (len(set(found)), digest[:16]) == BUILT_IN[name]
    assert all(one.startswith("https://raw.githubusercontent.com/") and " " not in one for one in found)
    study = find_study(name)
    assert study.dataset == name
    assert study.question.endswith("?")


def test_no_file_of_the_data_sets_is_in_the_repository():
    """Only names and checksums of published files may be here."""
    known = {digest for name in BUILT_IN for digest in fidm.datasets.find_dataset(name).manifest.values()}
    kept = (path for part in ("src", "tests", "docs", "examples") for path in (ROOT / part).rglob("*"))
    files = (path for path in kept if path.is_file() and not {"_build", "__pycache__"} & set(path.parts))
    found = [path for path in files if hashlib.sha256(path.read_bytes()).hexdigest() in known]
    assert found == []


def test_another_package_adds_a_data_set_and_a_study(tmp_path, monkeypatch, data):
    with pytest.raises(DataError, match="There is no study 'toy'"):
        find_study("toy")
    install(tmp_path / "site", monkeypatch)
    assert fidm.datasets.find_dataset("numbers") is DATASET
    assert study_names() == (*BUILT_IN, "toy")
    assert find_study("toy") is REANALYSIS
    with pytest.raises(DataError, match="Did you mean toy"):
        find_study("tyo")


def test_a_broken_package_is_named(tmp_path, monkeypatch):
    lines = "\n".join(
        [
            "gone = made_up.no_such_module:DATASET",
            "other = made_up.toy_study:FILES",
            "map-task = made_up.toy_study:DATASET",
        ]
    )
    install(tmp_path / "site", monkeypatch, **{"fidm.datasets": lines})
    with pytest.raises(DataError, match="'gone' of the package toy cannot be loaded: No module named"):
        fidm.datasets.find_dataset("gone")
    with pytest.raises(DataError, match=r"made_up.toy_study:FILES\) is no fidm.datasets.Dataset"):
        fidm.datasets.find_dataset("other")
    assert fidm.datasets.find_dataset("map-task") is not DATASET


# ---- What a study gives.


def test_an_expectation_is_reached_within_its_band_only():
    def reached(found, low, high):
        return Expectation("x", found, low, high, "published").reached

    assert reached(0.87, 0.87, float("inf"))
    assert reached(1, 1, 1)
    assert not reached(0.8699, 0.87, float("inf"))
    assert not reached(float("nan"), float("-inf"), float("inf"))


@pytest.fixture
def told(tmp_path, monkeypatch, data):
    install(tmp_path / "site", monkeypatch)
    return run_study("toy", data, seed=3, bootstrap=20)


def test_a_study_is_written_as_page_numbers_figures_and_markdown(told, tmp_path):
    written = {path.name: path for path in write_study(told, tmp_path / "out")}
    assert set(written) == {"toy.html", "toy.md", "mean.svg", "toy.json", "toy-named.csv"}
    page = written["toy.html"].read_text("utf-8")
    assert 'content="default-src &#39;none&#39;; img-src data:; style-src &#39;sha256-' in page
    assert "<script" not in page
    assert not re.search(r"(src|href)=\"(?!data:|#|https://)", page)
    for said in ("Numbers that people name", "Mean &lt;number&gt;", "6.00", "CC0 1.0", "Nobody (2026)", "✓"):
        assert said in page
    assert "Every file has its published checksum" in page
    assert "bootstrap 20" in page
    assert "Research use only, not a diagnosis." in page
    markdown = written["toy.md"].read_text("utf-8")
    assert "People named 6.0 on average \\& no more." in markdown
    assert "| people who named a number | 3 | exactly 3 | ✓ | published |" in markdown
    assert "**Each person**: 3 rows" in markdown
    assert "| A |" not in markdown
    assert "Nobody was left out." in markdown
    assert pl.read_csv(written["toy-named.csv"]).height == 3


def test_a_page_of_changed_files_says_so(tmp_path, monkeypatch, data):
    install(tmp_path / "site", monkeypatch)
    (data / DATASET.folder / "numbers.csv").write_text("participant,named\nA,1\n")
    told = run_study("toy", data, verified=False)
    assert not told.findings.reached
    assert [one.what for one in told.findings.missed] == ["people who named a number", "mean of the numbers"]
    page = to_html(told)
    assert "The files are not those that were published" in page
    assert "0 of the 2 numbers that were to come out did." in page
    assert "✗" in to_markdown(told)


def test_a_study_without_expectations_tables_or_remarks_has_a_page(told):
    bare = Findings(record=Record.of("toy", ()), tables={}, numbers={})
    only = replace(REANALYSIS, sections=lambda *_: [parts.section("found", "What was found", ["Nothing."])])
    page = to_html(tell(only, bare, replace(told.loaded, notes=())))
    assert "Nothing." in page
    assert "none: nothing was drawn" in page
    assert "were to come out" not in page


def test_a_study_that_cannot_be_shown_says_why(told):
    with pytest.raises(DataError, match="has no section"):
        tell(replace(REANALYSIS, sections=lambda *_: []), told.findings, told.loaded)

    def without_table(*given):
        found = toy_study.sections(*given)
        found[1]["tables"] = []
        return found

    with pytest.raises(DataError, match="figure mean in the section numbers"):
        tell(replace(REANALYSIS, sections=without_table), told.findings, told.loaded)
    with pytest.raises(DataError, match="bootstrap is 0"):
        run_study("toy", bootstrap=0)


def test_documentation_that_drifts_is_found():
    kept = "## R\n- Version: fidm 1\nr = 0.874 (0.80 to −0.012), n = 1,234, p = 1.20e−7"
    assert differences(kept, kept.replace("fidm 1", "fidm 2")) == []
    assert differences(kept, kept.replace("0.874", "0.875").replace("1,234", "1,236")) == []
    for old, new in [
        ("0.874", "0.95"),
        ("−0.012", "0.012"),
        ("1,234", "1,334"),
        ("r =", "q ="),
        ("e−7", "e−6"),
    ]:
        assert len(differences(kept, kept.replace(old, new))) == 1
    assert differences(kept, kept + "\nmore")


# ---- How the tests themselves deal with real data.


def test_continuous_integration_fails_without_the_real_files(tmp_path):
    script = tmp_path / "clone" / ".ci" / "run"
    script.parent.mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", script)
    (tmp_path / "clone" / "Makefile").write_text("test:\n\t@echo with $$FIDM_DATA\n")

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", str(script)], capture_output=True, text=True, check=False)

    without = run()
    assert without.returncode == 1
    assert "There is no folder ../shared/data" in without.stderr
    assert "with" not in without.stdout
    (tmp_path / "shared" / "data").mkdir(parents=True)
    found = run()
    assert found.returncode == 0
    assert found.stdout.strip() == f"with {tmp_path / 'shared' / 'data'}"


class _Reporter:
    def __init__(self, *ran):
        self.ran, self.said = ran, []

    def getreports(self, kind):
        return [SimpleNamespace(nodeid=one, when="call") for one in self.ran] if kind == "passed" else []

    def write_sep(self, _line, text, **_look):
        self.said.append(text)


@pytest.mark.parametrize(
    ("data", "asked", "said"),
    [
        ("", "tests", "Real-data gates were NOT run: FIDM_DATA is not set"),
        ("", "tests/real/test_x.py", "Real-data gates were NOT run: FIDM_DATA is not set"),
        ("", "tests/unit", None),
        ("some/where", "tests", "Real-data gates ran on some/where: 1 of them"),
    ],
)
def test_gates_on_real_files_are_collected_only_where_these_are_named(monkeypatch, data, asked, said):
    """And the tests say at their end whether they were run."""
    monkeypatch.setenv("FIDM_DATA", data)
    monkeypatch.setattr(sys, "path", list(sys.path))
    found = runpy.run_path(str(ROOT / "tests" / "conftest.py"))
    assert found["collect_ignore"] == ([] if data else [str(ROOT / "tests" / "real")])
    reporter = _Reporter("tests/real/test_x.py::test_x", "tests/unit/test_y.py::test_y")
    found["pytest_terminal_summary"](reporter, SimpleNamespace(args=[str(ROOT / asked)]))
    assert reporter.said == ([] if said is None else [said])
