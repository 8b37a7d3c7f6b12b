"""Published data sets against files that are damaged, strange or beside others, and servers that misbehave."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tarfile
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from made_up import justhink, map_task, space_adventure
from made_up.toy_study import DATASET, ELSEWHERE, FILES, HOME, install, write
from real_studies import differences
from scipy.io import savemat

import fidm_studies
from fidm.cli.main import main
from fidm.errors import DataError
from fidm_studies import fetching, find_dataset
from fidm_studies.dataset import Manifest, is_outside
from fidm_studies.map_task.files import ARCHIVE
from fidm_studies.page import about_data
from fidm_studies.space_adventure.files import read_session

SECRET = "SECRETWORD"


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    monkeypatch.delenv("FIDM_DATA", raising=False)


@pytest.fixture
def own(tmp_path):
    write(tmp_path / DATASET.folder)
    return tmp_path / DATASET.folder


def checksums(folder: Path) -> Mapping[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def problems(dataset, folder) -> dict[str, str]:
    return dict(fidm_studies.verify(dataset, folder).iter_rows())


def refused(dataset, folder) -> str:
    """What is said of files that cannot be read; nothing of it is from within the files."""
    with pytest.raises(DataError) as caught:
        fidm_studies.load(dataset, folder, verified=False)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


# ---- What is verified is what is read.


def test_the_archive_is_read_wherever_it_is_what_was_verified(tmp_path):
    own = tmp_path / "hcrc_map_task"
    map_task.write_archive(own / ARCHIVE)
    packed = replace(find_dataset("map-task"), manifest=checksums(own), archives=(ARCHIVE,))
    whole = fidm_studies.load(packed, tmp_path)
    map_task.write(own, seed=99, dialogs=map_task.DIALOGS[:8])
    again = fidm_studies.load(packed, tmp_path)
    assert again.verified
    assert again.cohort.segments.equals(whole.cohort.segments)
    (own / ARCHIVE).unlink()
    other = fidm_studies.load(packed, tmp_path, verified=False)
    assert other.cohort.n_segments < whole.cohort.n_segments


def test_files_that_nobody_published_are_not_read_as_if_they_were(own, tmp_path, monkeypatch, capsys):
    for name in (
        "README.md",
        "more/README.md",
        ".numbers-abcd1234.csv",
        "more/._a file.txt",
        "elsewhere.txt",
    ):
        (own / name).write_text("does not matter")
    assert problems(DATASET, own) == {}
    (own / "numbers (copy).csv").write_text("participant,named\n")
    (own / "more" / "b.TXT").mkdir()
    unknown = {"more/b.TXT": "unknown", "numbers (copy).csv": "unknown"}
    assert problems(DATASET, own) == unknown
    with pytest.raises(DataError, match="2 files") as caught:
        fidm_studies.load(DATASET, tmp_path)
    assert "numbers (copy).csv" in str(caught.value)
    assert "download" not in str(caught.value)
    loaded = fidm_studies.load(DATASET, tmp_path, verified=False)
    assert not loaded.verified
    assert "(2 unknown)" in loaded.notes[-1]
    install(tmp_path / "site", monkeypatch)
    assert main(["studies", "verify", "toy", "--data", str(tmp_path)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "2 files not" in said
    assert "the unknown files" in said


@pytest.mark.parametrize(
    ("name", "made_up", "copied", "to"),
    [
        ("justhink", justhink, "logs/justhink19_log_03.csv", "justhink19_log_99.csv"),
        (
            "space-adventure",
            space_adventure,
            "plandepth_age/data/YoungAdults/space_adventure/Experiment/b09_09101_spacetask_file_exp.mat",
            "part_77777777_01-Jan-2000.mat",
        ),
    ],
)
def test_another_person_s_file_is_noticed_and_a_hidden_one_is_not_read(tmp_path, name, made_up, copied, to):
    own = tmp_path / find_dataset(name).folder
    made_up.write(own)
    dataset = replace(find_dataset(name), manifest=checksums(own))
    file = own / copied
    for hidden in (f"._{file.name}", f".{file.stem}-abcd1234{file.suffix}"):
        (file.parent / hidden).write_bytes(b"half a file")
    people = len(fidm_studies.load(dataset, tmp_path).cohort)
    shutil.copy(file, file.parent / to)
    with pytest.raises(DataError, match="one of the published"):
        fidm_studies.load(dataset, tmp_path)
    assert len(fidm_studies.load(dataset, tmp_path, verified=False).cohort) > people


# ---- Documentation.


@pytest.mark.parametrize(
    ("old", "new"), [("29,250", "29,251"), ("249", "250"), ("of 0 ", "of 1 "), ("7", "7.0")]
)
def test_a_whole_number_of_the_documentation_must_be_the_same(old, new):
    kept = "29,250 changes of 249 people, of 0 others, 7 and 0.50"
    assert differences(kept, kept.replace("0.50", "0.51")) == []
    assert len(differences(kept, kept.replace(old, new, 1))) == 1


# ---- Damaged files.


@pytest.mark.parametrize(
    "error", [IndexError, MemoryError, RecursionError, FileNotFoundError, ZeroDivisionError]
)
def test_whatever_a_loader_stumbles_over_is_an_error_without_what_the_files_hold(own, tmp_path, error):
    def stumble(_folder, _tell):
        raise error(SECRET)

    broken = replace(DATASET, read=stumble)
    said = refused(broken, tmp_path)
    assert f"{own}: cannot be read as published ({error.__name__}). Every file is the published one" in said
    (own / "numbers.csv").write_text("changed")
    assert "`fidm studies download numbers" in refused(broken, tmp_path)


def test_the_command_ends_with_2_where_files_are_damaged(own, tmp_path, monkeypatch, capsys):
    install(tmp_path / "site", monkeypatch)
    (own / "numbers.csv").write_bytes(b"\xff\xfe\x00")
    arguments = [
        "studies",
        "run",
        "toy",
        "--data",
        str(tmp_path),
        "--unverified",
        "--out",
        str(tmp_path / "o"),
    ]
    assert main(arguments) == 2
    assert "read as published" in capsys.readouterr().err


NETWORK, LOG, TEST = (
    "metadata/network.json",
    "logs/justhink19_log_03.csv",
    "test_responses/justhink19_pretest.csv",
)
SAID = "transcripts/justhink19_transcript_03.csv"


@pytest.fixture(scope="module")
def children(tmp_path_factory):
    folder = tmp_path_factory.mktemp("justhink")
    justhink.write(folder)
    return folder


@pytest.mark.parametrize(
    ("path", "old", "new", "says"),
    [
        (TEST, b"\n3,", b"\nSECRETWORD,", "The team of row 2 is not a number"),
        (LOG, b"\tA\t", b"\tSECRETWORD\t", "neither A nor B"),
        (LOG, b"(0-2)", b"(" + b"9" * 5000 + b"-2)", "names no track"),
        (SAID, b"\t2.000\t", b"\tNaN\t", "Utterance 1 ends before it begins, or has no time"),
        (NETWORK, b'"cost": 2', b'"cost": NaN', "a cost that is not a number above 0"),
        (NETWORK, b"{", b"[" * 100_000, "not a network"),
        (NETWORK, None, None, "network.json: is missing"),
        (TEST, None, b"", "pretest.csv: is a folder or a device"),
    ],
)
def test_damaged_files_of_the_children_are_named(children, tmp_path, path, old, new, says):
    own = tmp_path / "justhink_dialogue_actions"
    shutil.copytree(children, own)
    file = own / path
    if old is None:
        file.unlink()
        if new is not None:
            file.mkdir()
    else:
        content = file.read_bytes()
        assert old in content
        file.write_bytes(content.replace(old, new))
    assert says in refused(find_dataset("justhink"), own)


def test_a_copy_of_a_log_has_no_team(children, tmp_path):
    own = tmp_path / "justhink_dialogue_actions"
    shutil.copytree(children, own)
    shutil.copy(own / LOG, own / "logs" / "justhink19_log_03 (copy).csv")
    assert "of which team" in refused(find_dataset("justhink"), own)


@pytest.fixture(scope="module")
def flights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flights")
    space_adventure.write(folder)
    return folder


FITS, VALUES = "plandepth_aud/data/SAT_subjectLevel.csv", "plandepth_aud/data/mini-block_data.csv"
PICTURES = "plandepth_age/data/YoungAdults/Identical Pictures/09101_b09_idp_file.txt"


def with_cell(text: str, separator: str, column: str, value: str) -> str:
    """A table with something else in the first row of a column."""
    head, row, *rest = text.splitlines()
    cells = row.split(separator)
    cells[head.split(separator).index(column)] = value
    return "\n".join([head, separator.join(cells), *rest])


@pytest.mark.parametrize(
    ("path", "change", "says"),
    [
        (PICTURES, lambda text: with_cell(text, "\t", "RESPT", SECRET), "with the columns RESP, RESPT, ACC"),
        (FITS, lambda text: with_cell(text, ",", "age", SECRET), "in the column age is not a number"),
        (FITS, lambda text: text + text.splitlines()[1], "Somebody has two rows"),
        (VALUES, lambda text: with_cell(text, ",", "noise", SECRET), "in the column noise is not a number"),
        (VALUES, lambda text: with_cell(text, ",", "noise", "7"), "what the task does not have: noise"),
        (VALUES, lambda text: text.splitlines()[0], "no row"),
    ],
)
def test_damaged_tables_of_the_flights_are_named(flights, tmp_path, path, change, says):
    own = tmp_path / "space_adventure_task"
    shutil.copytree(flights, own)
    (own / path).write_text(change((own / path).read_text("utf-8")), "utf-8")
    assert says in refused(find_dataset("space-adventure"), own)


def test_all_missing_folders_of_the_flights_are_named_at_once(flights, tmp_path):
    own = tmp_path / "space_adventure_task"
    shutil.copytree(flights, own)
    shutil.rmtree(own / "pybefit_students" / "data")
    shutil.rmtree(own / "plandepth_aud" / "data" / "HC" / "SWM")
    said = refused(find_dataset("space-adventure"), own)
    assert "pybefit_students/data: There" in said
    assert "HC/SWM" in said


def session(path: Path, **other) -> Path:
    """A file of four mini-blocks, with other things in it than it should have."""
    data = {
        "Age": 20.0,
        "Gender": 1.0,
        "Responses": {"RT": np.ones((4, 3)), "Keys": np.ones((4, 3))},
        "States": np.ones((4, 4)),
        "Points": np.full((4, 3), 900.0),
        "PlanetConf": np.ones((4, 6)),
        "Conditions": {"notrials": np.full((4, 1), 3.0), "noise": np.array([["low"] * 4], dtype=object)},
    }
    for name, value in other.items():
        inner = "Responses" if name in ("RT", "Keys") else "Conditions" if name == "notrials" else None
        (data if inner is None else data[inner])[name] = value
    savemat(path, {"data": data})
    return path


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"RT": np.ones((3, 3))}, "differ in length"),
        ({"States": np.ones((2, 4))}, "differ in length"),
        ({"PlanetConf": np.ones((3, 6))}, "differ in length"),
        ({"Points": np.ones((2, 3))}, "differ in length"),
        ({"notrials": np.full((9, 1), 3.0)}, "differ in length"),
        ({"Keys": np.full((4, 3), np.nan)}, "No mini-block was begun"),
        ({"RT": np.full((4, 3), np.inf)}, "a reaction time that is not above 0"),
        ({"Age": np.inf}, "infinite"),
        ({"Age": SECRET}, "(ValueError)"),
    ],
)
def test_a_damaged_session_is_named_and_not_quoted(tmp_path, other, says):
    path = session(tmp_path / "part_1_x.mat", **other)
    with pytest.raises(DataError, match="part_1_x") as caught:
        read_session(path)
    assert says in str(caught.value)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_sessions_that_are_cut_or_of_another_version_are_named(tmp_path):
    path = session(tmp_path / "part_1_x.mat")
    assert len(read_session(path).blocks) == 4
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError, match="part_1_x"):
            read_session(path)
    newer = b"MATLAB 7.3 MAT-file".ljust(116) + b"\0" * 8 + b"\x00\x02IM" + b"\x89HDF\r\n\x1a\n" + b"\0" * 600
    path.write_bytes(newer)
    with pytest.raises(DataError, match=r"version 7\.3"):
        read_session(path)


UNITS, MOVES = "timed-units/q1ec1.g.timed-units.xml", "moves/q1ec1.g.moves.xml"


@pytest.mark.parametrize(
    ("path", "old", "new", "says"),
    [
        (
            UNITS,
            'id="q1ec1g.1" start="0.0000"',
            f'id="{SECRET}" start="9999"',
            "Unit 1 ends before it begins",
        ),
        (UNITS, 'id="q1ec1g.2"', 'id="q1ec1g.1"', "Unit 2 has the id of another one"),
        (UNITS, "</tu>", f"&{SECRET};</tu>", "not XML: line"),
        (MOVES, '.move.1"', f'.move.{SECRET}"', "Move 1 has no id of its own"),
        (MOVES, "#id(", f"#id({SECRET}", "move 1: Its timed units are not in the other file"),
    ],
)
def test_damaged_dialogs_are_named_by_place_and_not_quoted(tmp_path, path, old, new, says):
    own = tmp_path / "hcrc_map_task"
    map_task.write(own, dialogs=map_task.DIALOGS[:8])
    text = (own / path).read_text("utf-8")
    assert old in text
    (own / path).write_text(text.replace(old, new, 1), "utf-8")
    assert says in refused(find_dataset("map-task"), own)


def test_a_damaged_archive_is_an_error_wherever_it_is_damaged(tmp_path):
    own = tmp_path / "hcrc_map_task"
    own.mkdir()
    with tarfile.open(own / ARCHIVE, "w:gz") as packed:
        for name, text in map_task.made_up(dialogs=map_task.DIALOGS[:2]).items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            packed.addfile(member, BytesIO(text.encode()))
    whole = (own / ARCHIVE).read_bytes()
    for at in range(100, len(whole) - 20, len(whole) // 12):  # before that is its name, which does not matter
        (own / ARCHIVE).write_bytes(whole[:at] + b"\xff" * 8 + whole[at + 8 :])
        assert "as an archive" in refused(find_dataset("map-task"), own)


# ---- Fetching.


class _Server(ThreadingHTTPServer):
    daemon_threads = True


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        how = self.server.how if self.path.endswith("numbers.csv") else ""
        if how == "bad redirect":
            self.send_response(302)
            self.send_header("Location", "http://[bad")
            self.end_headers()
            return
        content = next(FILES[path] for path in FILES if unquote(self.path).endswith(Path(path).name))
        if how == "huge":
            content *= 1_000
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        try:
            for letter in content.splitlines(keepends=True) if how == "slow" else [content]:
                self.wfile.write(letter)
                time.sleep(0.05 if how == "slow" else 0)
        except OSError:
            pass

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(fetching, "WAIT_S", 0.0)
    found = _Server(("127.0.0.1", 0), _Handler)
    found.how = ""
    at = f"http://127.0.0.1:{found.server_port}"
    found.urls = {HOME: at, ELSEWHERE: at}
    thread = threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def names_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("bad redirect", "leads on to an address that is none"),
        ("huge", "sends more than 20,000 bytes"),
        ("slow", "takes more than 0.001 minutes"),
    ],
)
def test_servers_that_misbehave_leave_nothing_half(server, tmp_path, monkeypatch, how, says):
    monkeypatch.setattr(fetching, "MOST_BYTES", 20_000)
    monkeypatch.setattr(fetching, "CHUNK_BYTES", 4)
    if how == "slow":
        monkeypatch.setattr(fetching, "MOST_S", 0.06)
    server.how = how
    with pytest.raises(DataError, match=says):
        fidm_studies.download(DATASET, tmp_path, base_urls=server.urls)
    left = checksums(tmp_path / DATASET.folder)
    assert "numbers.csv" not in left
    assert left.items() <= DATASET.manifest.items()


def test_a_full_disk_is_said_and_leaves_nothing_half(server, tmp_path, monkeypatch):
    def full(_part, _data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(fetching._Part, "write", full)
    with pytest.raises(DataError, match=r"numbers.csv: cannot be"):
        fidm_studies.download(DATASET, tmp_path, base_urls=server.urls)
    assert names_in(tmp_path) == set()


def test_what_a_killed_download_left_is_removed_and_nothing_else(server, tmp_path):
    own = tmp_path / DATASET.folder
    (own / "more").mkdir(parents=True)
    old, fresh = own / ".numbers-ab_d1234.csv", own / ".numbers-zzzz9999.csv"
    kept = [own / ".mine-abcd1234.csv", own / ".numbers.csv", own / "more" / ".numbers-abcd1234.csv", fresh]
    for path in (old, *kept):
        path.write_text("half")
    for path in (old, *kept[:-1]):
        os.utime(path, (0, 0))
    fidm_studies.download(DATASET, tmp_path, base_urls=server.urls)
    assert not old.exists()
    assert all(path.exists() for path in kept)
    assert problems(DATASET, own) == {}


def test_download_leaves_unknown_files_alone(server, own, tmp_path):
    (own / "numbers (copy).csv").write_text("mine")
    (own / "numbers.csv").unlink()
    assert fidm_studies.download(DATASET, tmp_path, base_urls=server.urls) == own
    assert problems(DATASET, own) == {"numbers (copy).csv": "unknown"}


# ---- Names of folders, and of files that a data set may name.


def test_a_home_that_nobody_has_and_an_empty_name_are_refused(monkeypatch, tmp_path):
    for ask in (fidm_studies.data_folder, lambda data: fidm_studies.download(DATASET, data)):
        with pytest.raises(DataError, match="nobody of"):
            ask("~nosuchuser/data")
        with pytest.raises(DataError, match="an empty text"):
            ask("")
        with pytest.raises(DataError, match=r"no such folder|cannot be the name"):
            ask(f"{tmp_path}/a\0b")
    monkeypatch.setenv("FIDM_DATA", "~nosuchuser/data")
    with pytest.raises(DataError, match="nobody of"):
        fidm_studies.data_folder()


@pytest.mark.parametrize(
    "path", ["../evil.txt", "a/../../evil.txt", "/etc/passwd", "C:/evil", "a\\b", "", "a\0"]
)
def test_no_data_set_names_files_outside_its_folder(path):
    assert is_outside(path)
    with pytest.raises(DataError, match="outside"):
        replace(DATASET, manifest={path: "0" * 64})
    with pytest.raises(DataError, match="outside"):
        replace(DATASET, folder=path)


def test_the_checksums_of_the_built_in_data_sets_are_read_only_when_needed():
    lazy = Manifest("no such file.txt")
    replace(DATASET, manifest=lazy)
    assert "_checksums" not in vars(lazy)


def test_only_addresses_of_the_web_become_links():
    bad = replace(
        DATASET,
        licence_url="javascript:alert(1)",
        sources=tuple(replace(one, home="data:text/html,x") for one in DATASET.sources),
    )
    assert [one.url for _, said in about_data(bad) for one in said if one.url] == []
    assert {one.url for _, said in about_data(DATASET) for one in said if one.url} == {
        DATASET.licence_url, HOME, ELSEWHERE,
    }  # fmt: skip
