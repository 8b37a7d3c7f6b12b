"""The review server without a browser: who is let in, what is refused, what is written."""

import json
import logging
import shutil
import sys
from pathlib import Path

import polars as pl
import pytest
from starlette.testclient import TestClient

sys.path.insert(0, str(Path(__file__).parents[2] / "web"))
from review_studies import STRANGE, make_study

from fidm.cli.main import main
from fidm.grounding.review.trail import Trail, verify_trail
from fidm.io.talk import Transcript
from fidm.review.desk import Desk, Judged, find_recordings
from fidm.review.server import MOST_BYTES, OWN, POLICY, SHARED, Guard, listen, make_app

PORT, TOKEN = 4711, "right-token"
ORIGIN = f"http://127.0.0.1:{PORT}"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return make_study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def client(study):
    return TestClient(make_app(Desk(study), port=PORT, token=TOKEN), base_url=ORIGIN)


def headers(who="Ada", **other):
    return {"X-Fidm-Token": TOKEN, "X-Fidm-Reviewer": who, "Origin": ORIGIN, **other}


def ask(client, path, who="Ada", **query):
    return client.get(path, params=query, headers=headers(who))


def segment_of(client, participant, segment, who="Ada", **query):
    dialog = ask(client, "/api/dialog", who, participant=participant, episode="1", **query).json()
    return next(one for one in dialog["segments"] if one["segment"] == segment)


def decide(client, participant, segment, kind, who="Ada", seen=None, **other):
    looked = {"settling": "1"} if other.get("settling") else {}
    body = {
        "participant": participant,
        "episode": "1",
        "segment": segment,
        "kind": kind,
        "seen": seen or segment_of(client, participant, segment, who, **looked)["seen"],
        **other,
    }
    return client.post("/api/decide", json=body, headers=headers(who))


@pytest.fixture
def fresh(tmp_path, study):
    """A study of its own, for tests that decide something."""
    folder = Path(shutil.copytree(study, tmp_path / "s"))
    return folder, TestClient(make_app(Desk(folder), port=PORT, token=TOKEN), base_url=ORIGIN)


def test_page_is_given_without_the_token_and_holds_no_data(client):
    page = client.get("/")
    assert page.status_code == 200
    assert "text/html" in page.headers["content-type"]
    for name in (*OWN[1:], *SHARED):
        assert client.get(f"/{name}").status_code == 200, name
    assert "go up a bit" not in page.text
    assert TOKEN not in page.text


def test_page_has_no_inline_scripts_or_styles_and_names_no_other_address(client):
    page = client.get("/").text
    for banned in ("onclick", "onload", "style=", "<style", "javascript:", "http://", "https://"):
        assert banned not in page
    for name in OWN[1:]:
        text = client.get(f"/{name}").text
        for banned in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http"):
            assert banned not in text.replace("http.response", ""), (name, banned)


@pytest.mark.parametrize("path", ["/", "/review.js", "/api/start", "/api/none", "/nothing"])
def test_every_answer_has_the_headers(client, path):
    for given in ({}, headers()):
        found = client.get(path, headers=given).headers
        assert found["content-security-policy"] == POLICY
        assert found["x-content-type-options"] == "nosniff"
        assert found["cache-control"] == "no-store"
        assert found["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in found
        assert "set-cookie" not in found


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", TOKEN[:-1], TOKEN.upper(), "ü"])
def test_a_wrong_token_gets_nothing(client, token):
    found = client.get("/api/list", headers={"X-Fidm-Token": token.encode("utf-8")})
    assert found.status_code == 401
    assert set(found.json()) == {"error"}


def test_no_token_gets_nothing(client):
    assert client.get("/api/start").status_code == 401
    assert client.get(f"/api/start?token={TOKEN}").status_code == 401
    assert client.get("/api/start", headers={"Cookie": f"x-fidm-token={TOKEN}"}).status_code == 401


@pytest.mark.parametrize(
    "host",
    ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.nip.io:{PORT}", ""],
)
def test_another_host_gets_nothing(client, host):
    for path in ("/", "/api/start"):
        assert client.get(path, headers=headers(Host=host)).status_code == 421


def test_localhost_is_this_machine_too(client):
    mine = f"localhost:{PORT}"
    assert client.get("/api/start", headers=headers(Host=mine, Origin=f"http://{mine}")).status_code == 200


def test_two_hosts_or_two_tokens_are_refused():
    guard = Guard(lambda *_: None, port=PORT, token=TOKEN)
    host, token = (b"host", f"127.0.0.1:{PORT}".encode()), (b"x-fidm-token", TOKEN.encode())
    assert guard.refusal("GET", "/api/x", [host, token]) is None
    assert guard.refusal("GET", "/api/x", [host, host, token])[0] == 421
    assert guard.refusal("GET", "/api/x", [host, token, token])[0] == 401


@pytest.mark.parametrize(
    "wrong",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"https://127.0.0.1:{PORT}"},
        {"Origin": f"http://127.0.0.1:{PORT + 1}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_another_origin_gets_nothing(client, wrong):
    assert client.get("/api/start", headers=headers(**wrong)).status_code == 403
    assert client.post("/api/decide", json={}, headers=headers(**wrong)).status_code == 403


def test_a_write_without_origin_is_refused(client):
    given = {"X-Fidm-Token": TOKEN}
    assert client.post("/api/decide", json={}, headers=given).status_code == 403
    assert client.post("/", json={}, headers=headers()).status_code == 405
    assert client.options("/api/decide", headers=headers()).status_code == 405
    assert client.put("/api/decide", json={}, headers=headers()).status_code == 405


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml", "/..%2f..%2fpyproject.toml", "/%2e%2e/%2e%2e/etc/passwd", "/static/review.js",
        "/review.js/../guard.py", "/..\\guard.py", "//etc/passwd", "/guard.py", "/api/../guard.py",
        "/%00review.js", "/api/dialog/../../desk.py",
    ],
)  # fmt: skip
def test_no_other_file_is_given(client, path):
    found = client.request("GET", ORIGIN + path, headers=headers())
    assert found.status_code in (400, 404)
    assert "import" not in found.text
    assert "root:" not in found.text


def test_bad_bodies_are_refused_without_repeating_them(client):
    said = {"participant": "SECRET", "kind": "burn"}
    found = client.post("/api/decide", json=said, headers=headers())
    assert found.status_code == 400
    assert "SECRET" not in found.text
    assert (
        client.post(
            "/api/decide", content=b"{", headers=headers(**{"Content-Type": "application/json"})
        ).status_code
        == 400
    )
    assert client.post("/api/decide", data={"a": "b"}, headers=headers()).status_code == 415
    deep = b"[" * 100_000
    found = client.post("/api/decide", content=deep, headers=headers(**{"Content-Type": "application/json"}))
    assert found.status_code == 400
    long = b" " * (MOST_BYTES + 1)
    found = client.post("/api/decide", content=long, headers=headers(**{"Content-Type": "application/json"}))
    assert found.status_code == 413


def test_unknown_people_segments_and_samples(client):
    assert ask(client, "/api/dialog", participant="nobody", episode="1").status_code == 404
    assert ask(client, "/api/list", sample="audit-9-9").status_code == 404
    seen = segment_of(client, "P1", "1")["seen"]
    assert decide(client, "P1", "77", "accept", seen=seen).status_code == 404


def test_list_has_the_most_needed_and_says_what_was_said(client):
    found = ask(client, "/api/list").json()
    assert len(found["rows"]) == 8
    assert found["header"]["n"] == 8
    by_doubt = sorted(found["rows"], key=lambda row: -row["doubtfulness"])
    assert by_doubt[0]["status"] == "needs_review"
    assert by_doubt[-1]["status"] == "confident"
    assert any(row["said"].startswith(STRANGE[:20]) for row in found["rows"])
    assert ask(client, "/api/list", head=found["head"]).json() == {"head": found["head"], "unchanged": True}


def test_words_of_instructions_are_places_in_turns(client):
    dialog = ask(client, "/api/dialog", participant="P2", episode="1").json()
    segment = dialog["segments"][1]
    [turn, start, end] = segment["instructions"][0]["words"][0]
    assert dialog["turns"][turn]["text"][start:end] in STRANGE
    assert end - start > 2


def test_accept_is_on_disk_when_acknowledged(fresh):
    folder, client = fresh
    found = decide(client, "P1", "1", "accept", comment="fine\x00\n <b>")
    assert found.status_code == 200, found.text
    [made] = Trail(folder).decisions
    assert (made.kind, made.reviewer, made.participant, made.comment) == ("accept", "Ada", "P1", "fine <b>")
    assert made.new == made.old
    assert made.new.actions == ("W", "N", "N")
    assert found.json()["header"]["n_mine"] == 1
    assert verify_trail(folder).is_whole


def test_edit_reject_withdraw(fresh):
    folder, client = fresh
    found = decide(client, "P1", "1", "edit", text="W N").json()
    assert found["dialog"]["segments"][0]["program"] == "MOVE left 1; MOVE up 1"
    assert found["dialog"]["segments"][0]["status"] == "reviewed"
    assert [change["segment"] for change in found["changes"]], "the rest starts elsewhere"
    assert decide(client, "P1", "3", "reject").json()["dialog"]["segments"][2]["status"] == "rejected"
    back = decide(client, "P1", "1", "withdraw").json()["dialog"]["segments"][0]
    assert back["mine"] is None
    assert back["program"] == "MOVE left 1; MOVE up 2"
    assert decide(client, "P1", "1", "withdraw").status_code == 422
    assert [one.kind for one in Trail(folder).decisions] == ["edit", "reject", "withdraw"]


def test_illegal_and_unchanged_edits_are_refused(fresh):
    folder, client = fresh
    found = decide(client, "P1", "1", "edit", text="MOVE up 9")
    assert found.status_code == 422
    assert "Legal there" in found.json()["error"]
    assert decide(client, "P1", "1", "edit", text="MOVE left 1; MOVE up 2").status_code == 422
    assert decide(client, "P1", "1", "edit", text="FLY home").status_code == 422
    assert Trail(folder).decisions == ()


def test_nobody_decides_without_a_name(fresh):
    folder, client = fresh
    for name in ("", "%20", "%00%E2%80%8B"):
        assert decide(client, "P1", "1", "accept", who=name).status_code == 422
    assert Trail(folder).decisions == ()


def test_names_in_any_script_are_kept(fresh):
    folder, client = fresh
    assert decide(client, "P1", "1", "accept", who="%E9%BB%83%20%F0%A0%AE%B7").status_code == 200
    assert Trail(folder).decisions[0].reviewer == "黃 𠮷"


def test_what_changed_meanwhile_is_not_decided_on(fresh):
    folder, client = fresh
    seen = segment_of(client, "P1", "2")["seen"]
    decide(client, "P1", "1", "edit", text="W N")
    found = decide(client, "P1", "2", "accept", seen=seen)
    assert found.status_code == 409
    now = found.json()["dialog"]["segments"][1]["seen"]
    assert now["start"] != seen["start"]
    assert len(Trail(folder).decisions) == 1
    assert decide(client, "P1", "2", "accept", seen=now).status_code == 200


def test_another_process_is_noticed(fresh):
    folder, client = fresh
    other = TestClient(make_app(Desk(folder), port=PORT, token=TOKEN), base_url=ORIGIN)
    seen = segment_of(client, "P1", "2")["seen"]
    assert decide(other, "P1", "1", "edit", who="Bo", text="W N").status_code == 200
    assert decide(client, "P1", "2", "accept", seen=seen).status_code == 409
    assert verify_trail(folder).is_whole


def test_others_are_hidden_until_one_has_judged(fresh):
    _, client = fresh
    decide(client, "P1", "1", "edit", who="Bo", text="W N", comment="only one up")
    before = segment_of(client, "P1", "1")
    assert before["others"] is None
    assert before["program"] == "MOVE left 1; MOVE up 2"
    assert before["status"] == "confident"
    assert "only one up" not in json.dumps(before)
    row = ask(client, "/api/list").json()["rows"][0]
    assert row["mine"] is None
    assert row["status"] == "confident"
    assert decide(client, "P1", "1", "accept").status_code == 200
    after = segment_of(client, "P1", "1")
    assert [one["comment"] for one in after["others"]] == ["only one up"]
    assert after["differ"]
    assert after["status"] == "needs_review"


def test_third_settles_what_two_differ_about(fresh):
    folder, client = fresh
    decide(client, "P1", "1", "accept")
    decide(client, "P1", "1", "edit", who="Bo", text="W N")
    unaware = segment_of(client, "P1", "1", "Cy")
    assert (unaware["others"], unaware["differ"], unaware["overrules"]) == (None, False, None)
    assert unaware["probability"] > 0
    seen = segment_of(client, "P1", "1", "Cy", settling="1")
    assert {one["reviewer"] for one in seen["others"]} == {"Ada", "Bo"}
    assert sorted(seen["overrules"]) == ["Ada", "Bo"]
    assert (seen["read_by"], seen["probability"]) == (["Ada"], None)  # a person's reading has no probability
    [other] = [one for one in seen["readings"] if one["by"]]
    assert (other["by"], other["program"], other["probability"]) == (
        ["Bo"],
        "MOVE left 1; MOVE up 1",
        None,
    )
    assert segment_of(client, "P1", "1", "Ada")["overrules"] == ["Bo"]  # who has judged would settle it too
    found = decide(client, "P1", "1", "edit", who="Cy", text="W N", settling=True, seen=seen["seen"])
    assert found.status_code == 200, found.text
    assert Trail(folder).decisions[-1].settles
    assert not segment_of(client, "P1", "1", "Cy")["differ"]
    header = ask(client, "/api/list").json()["header"]
    assert [(one["one"], one["other"], one["n"]) for one in header["agreements"]] == [("Ada", "Bo", 1)]
    changed = decide(client, "P1", "1", "reject", who="Cy")  # a change of mind settles it too
    assert changed.status_code == 200
    assert Trail(folder).decisions[-1].settles
    assert not segment_of(client, "P1", "1", "Cy")["differ"]


def test_a_sample_that_is_not_there_or_has_not_the_dialog_is_refused_before_anything_is_written(fresh):
    folder, client = fresh
    seen = segment_of(client, "P1", "1")["seen"]
    for sample in ("nope", "<b>\n"):
        found = decide(client, "P1", "1", "accept", seen=seen, sample=sample)
        assert found.status_code == 404
    drawn = client.post("/api/sample", json={"n": 1, "seed": 1}, headers=headers()).json()["name"]
    (inside,) = Trail(folder).samples[-1].dialogs
    outside = next(who for who in ("P1", "P2", "P3") if who != inside[0])
    seen = segment_of(client, outside, "1")["seen"]
    assert decide(client, outside, "1", "accept", seen=seen, sample=drawn).status_code == 404
    assert Trail(folder).decisions == ()


def test_known_reviewers_are_named(fresh):
    _, client = fresh
    assert ask(client, "/api/start").json()["reviewers"] == []
    for who in ("Bo", "Ada", "Bo"):
        decide(client, "P1", "1", "accept", who=who)
    for path in ("/api/start", "/api/list"):
        assert ask(client, path).json()["reviewers"] == ["Ada", "Bo"]


def test_audit_is_blind_and_scored(fresh):
    folder, client = fresh
    starts = [segment_of(client, "P1", number)["seen"]["start"] for number in ("1", "2", "3")]
    decide(client, "P2", "2", "reject", who="Bo")
    decide(client, "P1", "1", "edit", who="Bo", text="W")  # moves all that follows, but not in an audit
    drawn = client.post("/api/sample", json={"n": 3, "seed": 1}, headers=headers()).json()
    assert drawn["n_dialogs"] == 3
    assert client.post("/api/sample", json={"n": 3, "seed": 1}, headers=headers()).json() == drawn
    assert len(Trail(folder).samples) == 1
    rows = ask(client, "/api/list", sample=drawn["name"]).json()["rows"]
    assert len(rows) == 8
    assert {row["status"] for row in rows} == {""}
    assert not any(row["doubts"] for row in rows)
    for participant, segment in ((row["participant"], row["segment"]) for row in rows):
        seen = segment_of(client, participant, segment, sample=drawn["name"])
        assert seen["others"] is None
        assert not (seen["doubts"])
        assert not (seen["issues"])
        assert not (seen["readings"])
        assert (seen["probability"], seen["read_by"]) == (None, [])
        if participant == "P1":
            assert seen["seen"]["start"] == starts[int(segment) - 1]
        kind = "reject" if (participant, segment) == ("P1", "2") else "accept"
        body = decide(client, participant, segment, kind, seen=seen["seen"], sample=drawn["name"])
        assert body.status_code == 200
        assert body.json()["changes"] is None  # which would tell the status of others
    audit = body.json()["header"]["audit"]
    assert (audit["n_dialogs"], audit["n_consistent"], audit["n_left"]) == (3, 2, 0)
    assert 0 < audit["low"] < 2 / 3 < audit["high"] < 1
    assert {one.sample for one in Trail(folder).decisions[2:]} == {drawn["name"]}


def test_preview_says_what_would_change_and_writes_nothing(fresh):
    folder, client = fresh
    about = {
        "participant": "P1",
        "episode": "1",
        "segment": "1",
        "seen": segment_of(client, "P1", "1")["seen"],
    }

    def preview(text):
        return client.post("/api/preview", json={**about, "text": text}, headers=headers()).json()

    same = preview("MOVE left 1; MOVE up 2")
    assert same["ok"]
    assert same["same"]
    assert same["changes"] == []
    other = preview("W")
    assert other["program"] == "MOVE left 1"
    assert len(other["steps"]) == 1
    assert {change["segment"] for change in other["changes"]} <= {"2", "3"}
    assert other["changes"]
    assert {one["add"] for one in other["legal"]} >= {"MOVE up 1", "MOVE left 1"}
    assert not preview("MOVE up 9")["ok"]
    assert preview("")["program"] == "NONE"
    assert preview("GOTO meat")["steps"][0]["inferred"]
    assert any(one["add"] == "BUY meat" and one["place"] == "meat" for one in preview("GOTO meat")["legal"])
    assert not (folder / "grounding" / "review.jsonl").exists()


def test_a_new_grounding_stops_decisions(fresh):
    folder, client = fresh
    make_study(folder, {"P1": ["go left one square"]})
    found = decide(client, "P1", "1", "accept")
    assert found.status_code == 422
    assert "grounded again" in found.json()["error"]
    assert Trail(folder).decisions == ()


def test_errors_of_the_program_say_nothing_of_the_talk(fresh, caplog, monkeypatch):
    _, client = fresh
    gentle = TestClient(client.app, base_url=ORIGIN, raise_server_exceptions=False)

    def broken(*_, **__):
        raise RuntimeError("go up a bit")

    monkeypatch.setattr("fidm.review.server._dialog", broken)
    with caplog.at_level(logging.ERROR):
        found = ask(gentle, "/api/dialog", participant="P1", episode="1")
    assert found.status_code == 500
    assert "go up a bit" not in found.text
    assert "RuntimeError" in caplog.text
    assert "go up a bit" not in caplog.text


def test_characters_beyond_the_first_plane_arrive_whole(tmp_path):
    desk = Desk(make_study(tmp_path / "s", {"P1": ["go left one square \u4e2d\U00020000"]}))
    client = TestClient(make_app(desk, port=PORT, token=TOKEN), base_url=ORIGIN)
    assert (
        ask(client, "/api/dialog", participant="P1", episode="1")
        .json()["turns"][1]["text"]
        .endswith("\U00020000")
    )


def test_a_study_without_talk_about_the_way_has_nothing_to_review(tmp_path):
    desk = Desk(make_study(tmp_path / "s", {"P1": []}))
    found = desk.listing("Ada")
    assert found["rows"] == []
    assert found["header"]["n"] == found["header"]["n_mine"] == 0
    assert desk.dialog("Ada", "P1", "1")["segments"] == []


def test_command_says_what_is_wrong(tmp_path, capsys):
    assert main(["review", str(tmp_path / "none"), "--no-open"]) == 2
    (tmp_path / "empty").mkdir()
    assert main(["review", str(tmp_path / "empty"), "--no-open"]) == 2
    assert main(["review", str(tmp_path / "empty"), "--no-open", "--sample", "0"]) == 2
    assert main(["review", str(tmp_path / "empty"), "--no-open", "--port", "70000"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "is not a folder" in said
    assert "--sample is 0" in said
    assert "--port is 70000" in said


def test_a_port_in_use_is_said():
    with listen() as held, pytest.raises(Exception, match="cannot be used"):
        listen(held.getsockname()[1])


def test_missing_packages_are_named(tmp_path, monkeypatch, capsys):
    for name in [name for name in sys.modules if name.startswith(("fidm.review", "uvicorn"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["review", str(tmp_path), "--no-open"]) == 2
    assert "pip install 'fidm[web]'" in capsys.readouterr().err


def test_what_is_wrong_with_a_dialog_as_a_whole_is_said(tmp_path):
    desk = Desk(make_study(tmp_path / "s", {"P1": ["go left one square"], "P2": ["hello there"]}))
    assert desk.dialog("Ada", "P1", "1")["problems"] == []
    assert desk.dialog("Ada", "P2", "1")["problems"] == ["No moves were read."]
    seen = desk.dialog("Ada", "P2", "1")["segments"][0]["seen"]
    judged = {"participant": "P2", "episode": "1", "segment": "1", "seen": seen, "kind": "edit", "text": "W"}
    assert desk.judge("Ada", Judged.model_validate(judged))["dialog"]["problems"] == []


SOUND = bytes(range(256)) * 8
"""Stands for a recording: what is in it does not matter to the server."""


@pytest.fixture
def heard(tmp_path, study):
    """A study with a recording of one participant, a client, and the address of the recording."""
    folder = Path(shutil.copytree(study, tmp_path / "s"))
    (folder / "audio").mkdir()
    (folder / "audio" / "P1.wav").write_bytes(SOUND)
    client = TestClient(make_app(Desk(folder), port=PORT, token=TOKEN), base_url=ORIGIN)
    ticket = ask(client, "/api/dialog", participant="P1", episode="1").json()["audio"]
    return folder, client, f"/api/audio/{ticket}"


def test_a_recording_is_given_whole_or_in_ranges_by_its_ticket_alone(heard):
    _, client, address = heard
    whole = client.get(address)
    assert (whole.status_code, whole.content) == (200, SOUND)
    assert whole.headers["content-type"] == "audio/wav"
    assert whole.headers["accept-ranges"] == "bytes"
    assert whole.headers["x-content-type-options"] == "nosniff"
    assert whole.headers["cache-control"] == "no-store"
    assert "set-cookie" not in whole.headers
    for asked, part in (
        ("bytes=10-19", SOUND[10:20]),
        ("bytes=2040-", SOUND[2040:]),
        ("bytes=-5", SOUND[-5:]),
    ):
        found = client.get(address, headers={"Range": asked})
        assert (found.status_code, found.content) == (206, part)
        assert found.headers["content-range"].startswith("bytes ")
        assert found.headers["content-range"].endswith(f"/{len(SOUND)}")
    beyond = client.get(address, headers={"Range": f"bytes={len(SOUND)}-"})
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{len(SOUND)}")
    assert client.get(address, headers={"Range": "bytes=x"}).status_code == 400
    head = client.head(address)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(SOUND)))


@pytest.mark.parametrize(
    ("wrong", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": f"evil.example:{PORT}"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
)
def test_another_page_gets_no_recording(heard, wrong, status):
    _, client, address = heard
    assert client.get(address, headers=wrong).status_code == status
    assert client.post(address, headers=headers()).status_code in (403, 405)


def test_a_wrong_ticket_gets_nothing_with_or_without_the_token(heard):
    _, client, address = heard
    for wrong in ("", "x", address[11:] + "x", address[11:-1], "P1", "P1.wav", "..%2faudio%2fP1.wav", TOKEN):
        assert client.get(f"/api/audio/{wrong}").status_code == 401
        assert client.get(f"/api/audio/{wrong}", headers=headers()).status_code == 404
    assert client.get("/api/list", headers={"X-Fidm-Token": address[11:]}).status_code == 401


def test_a_recording_that_became_a_link_or_went_away_is_not_given(heard, tmp_path):
    folder, client, address = heard
    (tmp_path / "secret.wav").write_bytes(b"secret")
    path = folder / "audio" / "P1.wav"
    path.unlink()
    assert client.get(address).status_code == 404
    path.symlink_to(tmp_path / "secret.wav")
    assert client.get(address).status_code == 404
    path.unlink()
    (folder / "audio").rmdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "P1.wav").write_bytes(b"secret")
    (folder / "audio").symlink_to(tmp_path / "elsewhere")
    assert client.get(address).status_code == 404


def talk(participant, *, source="", media="", episode="1"):
    return Transcript(participant, (), source, episode=episode, media=media)


def test_recordings_are_found_by_what_the_dialog_names_then_its_file_then_the_participant(tmp_path):
    for name in ("talks/rec1.WAV", "audio/d2.mp3", "audio/d2.wav", "audio/P3.opus", "audio/P4.flac",
                 "a/twice.wav", "b/twice.wav", "audio/P6.txt"):  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(SOUND)
    items = [
        talk("P1", media=r"C:\lab\rec1.WAV"),
        talk("P2", source="d2.cha", media="gone.wav"),
        talk("P3", source="d3.cha", media="twice.wav"),
        talk("P4", source="d4a.cha"),
        talk("P4", source="d4b.cha", episode="2"),
        talk("P5", media="../../etc/passwd"),
        talk("P6"),
        talk("../audio/d2"),
    ]
    found = {
        key: path.relative_to(tmp_path).as_posix() for key, path in find_recordings(tmp_path, items).items()
    }
    assert found == {("P1", "1"): "talks/rec1.WAV", ("P2", "1"): "audio/d2.wav", ("P3", "1"): "audio/P3.opus"}
    assert find_recordings(tmp_path, [talk("P1", media="rec1")]), "CHAT names it without a suffix"
    assert find_recordings(tmp_path, [talk("b", media="b/twice.wav")]) == {
        ("b", "1"): tmp_path / "b/twice.wav"
    }


def test_links_are_no_recordings(tmp_path):
    outside, study = tmp_path / "outside", tmp_path / "study"
    (outside / "deep").mkdir(parents=True)
    (outside / "P1.wav").write_bytes(SOUND)
    (outside / "deep" / "far.wav").write_bytes(SOUND)
    (study / "audio").mkdir(parents=True)
    (study / "audio" / "P1.wav").symlink_to(outside / "P1.wav")
    (study / "more").symlink_to(outside / "deep")
    assert find_recordings(study, [talk("P1", media="far.wav"), talk("P2", media="P1.wav")]) == {}
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "audio").symlink_to(outside)
    assert find_recordings(linked, [talk("P1")]) == {}


def test_a_grounding_without_the_column_media_is_still_read(study, tmp_path):
    folder = Path(shutil.copytree(study, tmp_path / "s"))
    path = folder / "grounding" / "dialogs.parquet"
    pl.read_parquet(path).drop("media").write_parquet(path)
    assert {one.transcript.media for one in Desk(folder).grounded.dialogs} == {""}
