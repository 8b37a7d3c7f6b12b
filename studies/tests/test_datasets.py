"""Published data sets: where their files are, whether they are the published ones, and fetching them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import runpy
import shutil
import subprocess
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
from real_studies import differences, run_real

import fidm_studies
from fidm.errors import DataError
from fidm.record import Record
from fidm.registry import DATASETS
from fidm.report import parts
from fidm_studies import Expectation, Findings, fetching, find_study, study_names
from fidm_studies import dataset as base
from fidm_studies.fetching import address
from fidm_studies.page import tell, to_html, to_markdown
from fidm_studies.running import run_study, write_study

TESTS = Path(__file__).parent
ROOT = TESTS.parents[1]

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
    assert fidm_studies.data_folder(data) == data
    with pytest.raises(DataError, match="--data"):
        fidm_studies.data_folder()
    monkeypatch.setenv("FIDM_DATA", str(data))
    assert fidm_studies.data_folder() == data
    assert fidm_studies.dataset_folder(DATASET) == data / DATASET.folder
    monkeypatch.setenv("FIDM_DATA", str(data / "none"))
    with pytest.raises(DataError, match="FIDM_DATA"):
        fidm_studies.data_folder()


def test_the_folder_may_be_the_data_set_s_own(data, tmp_path_factory):
    own = data / DATASET.folder
    assert fidm_studies.dataset_folder(DATASET, own) == own
    with pytest.raises(DataError, match="fidm studies download numbers"):
        fidm_studies.dataset_folder(DATASET, tmp_path_factory.mktemp("empty"))


# ---- Whether they are the published ones.


def test_verify_names_all_that_is_missing_or_changed_at_once(data):
    own = data / DATASET.folder
    (own / "what nobody knows.txt").write_text("does not matter")
    assert fidm_studies.verify(DATASET, own).is_empty()
    (own / "numbers.csv").write_text("participant,named\nA,1\n")
    (own / "other/notes.txt").unlink()
    found = fidm_studies.verify(DATASET, own)
    assert dict(found.iter_rows()) == {"numbers.csv": "changed", "other/notes.txt": "missing"}


def test_whoever_has_the_whole_archive_needs_no_single_files(tmp_path):
    archive = b"all of them"
    manifest = {"all.tar.gz": hashlib.sha256(archive).hexdigest(), **DATASET.manifest}
    packed = replace(DATASET, manifest=manifest, archives=("all.tar.gz",))
    own = tmp_path / packed.folder
    write(own)
    assert fidm_studies.verify(packed, own).is_empty()
    for path in FILES:
        (own / path).unlink()
    assert set(fidm_studies.verify(packed, own)["path"]) == set(FILES)
    (own / "all.tar.gz").write_bytes(archive)
    assert fidm_studies.verify(packed, own).is_empty()
    (own / "all.tar.gz").write_bytes(b"something else")
    assert fidm_studies.verify(packed, own).rows() == [("all.tar.gz", "changed")]
    write(own)  # it is still the archive that would be read
    assert fidm_studies.verify(packed, own).rows() == [("all.tar.gz", "changed")]


def test_load_refuses_changed_files_unless_told_otherwise(data):
    steps = []
    found = fidm_studies.load(DATASET, data, on_progress=lambda *step: steps.append(step))
    assert found.verified
    assert found.notes == ("Nobody was left out.",)
    assert ("reading", 0, 1) in steps
    (data / DATASET.folder / "numbers.csv").write_text("participant,named\nMallory,666\n")
    with pytest.raises(DataError) as caught:
        fidm_studies.load(DATASET, data)
    assert [problem.where for problem in caught.value.problems] == ["numbers.csv"]
    assert "verified=False" in str(caught.value)
    assert "Mallory" not in str(caught.value)
    changed = fidm_studies.load(DATASET, data, verified=False)
    assert not changed.verified
    assert "(1 changed)" in changed.notes[-1]
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
    folder = fidm_studies.download(
        DATASET, tmp_path / "new", base_urls=server.urls, on_progress=lambda *step: steps.append(step)
    )
    assert folder == tmp_path / "new" / DATASET.folder
    assert files_in(folder) == FILES
    assert [step for step in steps if step[0] == "downloading"][-1] == ("downloading", 3, 3)
    assert (folder / "numbers.csv").stat().st_mode & 0o777 == 0o666 & ~_umask()
    server.asked.clear()
    fidm_studies.download(DATASET, tmp_path / "new", base_urls=server.urls)
    assert server.asked == []
    (folder / "numbers.csv").write_text("changed")
    fidm_studies.download(DATASET, folder, base_urls=server.urls)
    assert server.asked == ["/one/data/numbers.csv"]
    assert files_in(folder) == FILES


def test_a_changed_archive_is_left_alone_and_must_go_before_files_are_fetched(tmp_path, server):
    manifest = {"all.tar.gz": "0" * 64, **DATASET.manifest}
    packed = replace(DATASET, manifest=manifest, archives=("all.tar.gz",))
    own = tmp_path / packed.folder
    own.mkdir()
    (own / "all.tar.gz").write_bytes(b"something else")
    with pytest.raises(DataError, match=r"all.tar.gz is not the"):
        fidm_studies.download(packed, tmp_path, base_urls=server.urls)
    assert files_in(own) == {"all.tar.gz": b"something else"}
    assert server.asked == []
    (own / "all.tar.gz").unlink()
    assert fidm_studies.download(packed, tmp_path, base_urls=server.urls) == own
    assert files_in(own) == FILES


def test_what_is_not_the_published_file_is_not_kept(tmp_path, server):
    server.ways = {"/one/data/numbers.csv": "other", "/two/notes.txt": "404"}
    with pytest.raises(DataError, match="2 of 3 files") as caught:
        fidm_studies.download(DATASET, tmp_path, base_urls=server.urls)
    said = {problem.where: problem.what for problem in caught.value.problems}
    assert "checksum" in said["numbers.csv"]
    assert "404" in said["other/notes.txt"]
    assert set(files_in(tmp_path)) == {f"{DATASET.folder}/more/a file.txt"}


def test_a_broken_connection_is_tried_again_and_leaves_nothing_half(tmp_path, server):
    server.ways = {"/one/data/numbers.csv": "once broken"}
    folder = fidm_studies.download(DATASET, tmp_path / "a", base_urls=server.urls)
    assert files_in(folder) == FILES
    assert server.asked.count("/one/data/numbers.csv") == 2
    server.ways = {"/two/notes.txt": "broken"}
    with pytest.raises(DataError, match="connection failed"):
        fidm_studies.download(DATASET, tmp_path / "b", base_urls=server.urls)
    assert set(files_in(tmp_path / "b" / DATASET.folder)) == {"numbers.csv", "more/a file.txt"}
    server.ways, server.asked[:] = {}, []
    fidm_studies.download(DATASET, tmp_path / "b", base_urls=server.urls)
    assert server.asked == ["/two/notes.txt"]


def test_a_server_that_is_not_there_is_an_error_at_once(tmp_path, server):
    urls = dict.fromkeys(server.urls, "http://127.0.0.1:9")
    with pytest.raises(DataError, match="connection failed"):
        fidm_studies.download(DATASET, tmp_path, base_urls=urls)
    assert files_in(tmp_path) == {}


def test_an_interrupted_download_leaves_nothing_half(tmp_path, server):
    def interrupt(doing, done, of):
        if doing == "downloading" and done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fidm_studies.download(DATASET, tmp_path, base_urls=server.urls, on_progress=interrupt)
    assert files_in(tmp_path / DATASET.folder) == {"numbers.csv": FILES["numbers.csv"]}


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# ---- The built-in ones, and those of other packages.


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_data_set_says_whose_it_is_and_where_each_file_is_published(name):
    dataset = fidm_studies.find_dataset(name)
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
    known = {digest for name in BUILT_IN for digest in fidm_studies.find_dataset(name).manifest.values()}
    kept = (
        path for part in ("src", "studies", "tests", "docs", "examples") for path in (ROOT / part).rglob("*")
    )
    files = (path for path in kept if path.is_file() and not {"_build", "__pycache__"} & set(path.parts))
    found = [path for path in files if hashlib.sha256(path.read_bytes()).hexdigest() in known]
    assert found == []


def test_another_package_adds_a_data_set_and_a_study(tmp_path, monkeypatch, data):
    with pytest.raises(DataError, match="no study 'toy'"):
        find_study("toy")
    install(tmp_path / "site", monkeypatch)
    assert fidm_studies.find_dataset("numbers") is DATASET
    assert study_names() == (*sorted(BUILT_IN), "toy")
    assert find_study("toy") is REANALYSIS
    with pytest.raises(DataError, match="Did you mean toy"):
        find_study("tyo")


def test_a_broken_package_is_named(tmp_path, monkeypatch):
    lines = "\n".join(
        [
            "gone = made_up.no_such_module:DATASET",
            "other = made_up.toy_study:FILES",
            "map-task = made_up.toy_study:DATASET",
            "figures = made_up.toy_study:DATASET",
        ]
    )
    install(tmp_path / "site", monkeypatch, **{"fidm.datasets": lines})
    with pytest.raises(DataError, match="'gone' of the package toy"):
        fidm_studies.find_dataset("gone")
    with pytest.raises(DataError, match=r"made_up.toy_study:FILES\)"):
        fidm_studies.find_dataset("other")
    with pytest.raises(DataError, match=r"'figures' of the package toy .* name is 'numbers'"):
        fidm_studies.find_dataset("figures")
    assert fidm_studies.find_dataset("map-task") is not DATASET
    assert DATASETS.ignored("gone") == ()
    [said] = DATASETS.ignored()
    assert "'map-task' of the package toy is ignored" in said


# ---- What a study gives.


def test_an_expectation_is_reached_within_its_band_only():
    def reached(found, low, high):
        return Expectation("x", found, low, high, "published").reached

    assert reached(0.87, 0.87, float("inf"))
    assert reached(1, 1, 1)
    assert not reached(0.8699, 0.87, float("inf"))
    assert not reached(float("nan"), float("-inf"), float("inf"))


def test_a_number_that_is_not_required_is_shown_and_counted_but_fails_nothing(told):
    missed = Expectation("mean, read wrongly", 6.0, 1, 2, "published", "the first reading", required=False)
    findings = replace(told.findings, expectations=(*told.findings.expectations, missed))
    assert findings.reached
    assert findings.missed == ()
    assert "2 of 3 checks reproduced" in repr(findings)
    assert findings.to_dict()["expectations"][-1]["required"] is False
    page = to_markdown(tell(REANALYSIS, findings, told.loaded))
    assert "2 of 3 checks" in page
    assert "| mean, read wrongly | 6 | 1 to 2 | ✗ |" in page
    both = replace(told.findings, expectations=(missed, replace(missed, required=True)))
    assert [one.required for one in both.missed] == [True]
    assert "mean, read wrongly (not required); mean" in to_markdown(tell(REANALYSIS, both, told.loaded))


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
    assert "published checksum" in page
    assert "bootstrap 20" in page
    assert "Research use only, not a diagnosis." in page
    markdown = written["toy.md"].read_text("utf-8")
    assert "6.0 on average \\& no" in markdown
    assert "| 3 | exactly 3 | ✓ |" in markdown
    assert "**Each person**: 3 rows" in markdown
    assert "| A |" not in markdown
    assert "Nobody was left out." in markdown
    assert pl.read_csv(written["toy-named.csv"]).height == 3
    kept = json.loads(written["toy.json"].read_text("utf-8"))["result"]["dataset"]
    assert (kept["name"], kept["licence"], kept["verified"]) == ("numbers", "CC0 1.0", True)
    assert kept["citation"] == ["Nobody (2026). Numbers."]
    assert [one["version"] for one in kept["sources"]] == ["0123456789abcdef", "fedcba9876543210"]


def test_what_was_to_come_out_is_never_cut(told):
    long = "the correlation of what people said with what they did, " * 3 + "x" * 90
    findings = replace(told.findings, expectations=(Expectation(long, 1, 1, 1, "published"),))
    assert f">{long}</th>" in to_html(tell(REANALYSIS, findings, told.loaded))


def test_a_page_of_changed_files_says_so(tmp_path, monkeypatch, data):
    install(tmp_path / "site", monkeypatch)
    (data / DATASET.folder / "numbers.csv").write_text("participant,named\nA,1\n")
    told = run_study("toy", data, verified=False)
    assert not told.findings.reached
    assert [one.what for one in told.findings.missed] == ["people who named a number", "mean of the numbers"]
    page = to_html(told)
    assert "not those that were" in page
    assert "0 of 2 checks" in page
    assert "✗" in to_markdown(told)


def test_a_study_without_expectations_tables_or_remarks_has_a_page(told):
    bare = Findings(record=Record.of("toy", ()), tables={}, numbers={})
    only = replace(REANALYSIS, sections=lambda *_: [parts.section("found", "What was found", ["Nothing."])])
    page = to_html(tell(only, bare, replace(told.loaded, notes=())))
    assert "Nothing." in page
    assert "nothing was drawn" in page
    assert "Reproduction checks" not in page


def test_a_study_that_cannot_be_shown_says_why(told):
    with pytest.raises(DataError, match="has no section"):
        tell(replace(REANALYSIS, sections=lambda *_: []), told.findings, told.loaded)

    def without_table(*given):
        found = toy_study.sections(*given)
        found[1]["tables"] = []
        return found

    with pytest.raises(DataError, match="figure mean"):
        tell(replace(REANALYSIS, sections=without_table), told.findings, told.loaded)
    with pytest.raises(DataError, match="seed is -1"):
        run_study("toy", seed=-1, bootstrap=19)
    with pytest.raises(DataError, match="workers is 0"):
        run_study("toy", workers=0)


def test_documentation_that_drifts_is_found():
    kept = "## R\n- Version: fidm 1\nr = 0.874 (0.80 to −0.012), n = 1,234, p = 1.20e−7"
    assert differences(kept, kept.replace("fidm 1", "fidm 2")) == []
    assert differences(kept, kept.replace("0.874", "0.875").replace("1.20e", "1.21e")) == []
    for old, new in [
        ("0.874", "0.95"),
        ("−0.012", "0.012"),
        ("1,234", "1,235"),
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

    plain = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", str(script)], capture_output=True, text=True, check=False, env=plain)

    without = run()
    assert without.returncode == 1
    assert "../shared/data" in without.stderr
    assert "with" not in without.stdout
    (tmp_path / "shared" / "data").mkdir(parents=True)
    found = run()
    assert found.returncode == 0
    assert found.stdout.strip() == f"with {tmp_path / 'shared' / 'data'}"


class _Reporter:
    def __init__(self):
        self.said = []

    def write_sep(self, _line, text, **_look):
        self.said.append(text)


NOT_SET = "Real-data gates were NOT run: FIDM_DATA is not set"
GATES = ("test_justhink.py", "test_map_task.py", "test_space_adventure.py")
NONE_RAN = f"Real-data gates were NOT run, though FIDM_DATA is set: none in {GATES[1]}"


@pytest.mark.parametrize(
    ("data", "asked", "options", "ran", "said", "exit_code"),
    [
        ("", "studies", {}, (), NOT_SET, 0),
        ("", f"studies/tests/real/{GATES[1]}", {}, (), NOT_SET, 0),
        ("", "studies/src", {}, (), None, 0),
        ("some/where", "studies", {}, GATES, "Real-data gates ran on some/where: 3 of them", 0),
        ("some/where", "studies", {}, GATES[::2], NONE_RAN, 1),
        ("some/where", f"studies/tests/real/{GATES[1]}", {}, (), NONE_RAN, 1),
        ("some/where", "studies", {"ignore": ["tests/language"]}, GATES[::2], NONE_RAN, 1),
        ("some/where", "studies", {"keyword": "map"}, (), None, 0),
        ("some/where", "studies/src", {}, (), None, 0),
    ],
)
def test_gates_on_real_files_run_where_these_are_named(
    monkeypatch, data, asked, options, ran, said, exit_code
):
    """The tests say at their end whether they were run, and fail if the data are there and they were not."""
    monkeypatch.setenv("FIDM_DATA", data)
    found = runpy.run_path(str(TESTS / "conftest.py"))
    assert ("real" in found["collect_ignore"]) == (not data)
    for name in (*(f"studies/tests/real/{one}" for one in ran), "studies/tests/test_y.py"):
        report = SimpleNamespace(nodeid=f"{name}::test", when="call", outcome="passed")
        found["pytest_runtest_logreport"](report)
    skipped = SimpleNamespace(nodeid=f"studies/tests/real/{GATES[1]}::a", when="call", outcome="skipped")
    found["pytest_runtest_logreport"](skipped)
    config = SimpleNamespace(args=[str(ROOT / asked)], option=SimpleNamespace(**options))
    session = SimpleNamespace(config=config, exitstatus=0)
    found["pytest_sessionfinish"](session)
    assert session.exitstatus == exit_code
    reporter = _Reporter()
    found["pytest_terminal_summary"](reporter, config)
    assert reporter.said == ([] if said is None else [said])


def test_gates_that_are_asked_for_by_name_say_that_data_are_not_named():
    with pytest.raises(DataError, match="FIDM_DATA"):
        run_real("map-task")
