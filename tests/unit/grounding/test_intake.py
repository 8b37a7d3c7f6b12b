"""What fidm start finds in folders as labs have them; nothing is asked that can be found out."""

import json
import tomllib
from pathlib import Path

import polars as pl
import pytest

from fidm.errors import DataError
from fidm.grounding.intake import look_at
from fidm.grounding.people import same_people
from fidm.io.dialogs import read

WAY = (
    "I go up two squares, then left one and up again to the vegetables and take the vegetables",
    "then left along the aisle and straight ahead to the meat, and I buy the meat there",
    "now down to the eggs, take eggs, then right and right again to the tofu",
    "the seasoning is next, past the snacks and the cans, and I go to the bakery",
    "then I walk down past the household things to the checkout and pay",
)
ASKED = ("where do you go first", "and then", "good, what next", "please also get bread", "thank you")


def talk(n=0):
    """Turns of a dialog: who, from, to, what; no two ``n`` say quite the same."""
    more = ("well", "um", "so", "right", "okay", "now", "yes", "hm")
    turns, time = [], 0.0
    for i, (asked, way) in enumerate(zip(ASKED, WAY, strict=True)):
        own = " ".join(more[(n * k + i) % len(more)] for k in range(1, 9))
        turns += [("E", time, time + 1.0, asked), ("T", time + 1.5, time + 5.0 + n / 10, f"{own} {way}")]
        time += 7.0
    return turns


def table(path, turns, *, between=",", header="speaker,start_s,end_s,text", encoding="utf-8", names=None):
    names = names or {"E": "INV", "T": "PAR"}
    rows = [between.join([names[who], f"{a:g}", f"{b:g}", f'"{said}"']) for who, a, b, said in turns]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("\r\n".join([header.replace(",", between), *rows, ""]).encode(encoding))


def whisper(path, turns, *, names=None):
    segments = [
        {"start": a, "end": b, "text": said, **({"speaker": names[who]} if names else {})}
        for who, a, b, said in turns
    ]
    path.write_text(json.dumps({"segments": segments, "language": "en"}))


def study_of(place, **asked):
    """The study that is made of a folder, what it asks, and its dialogs as they will be read."""
    found = look_at(place, **asked)
    found.write()
    settings = tomllib.loads((found.study / "grounding.toml").read_text("utf-8"))
    return found, settings


def test_a_plain_folder_needs_no_question_and_stays_as_it_is(tmp_path):
    for n in range(3):
        table(tmp_path / f"P{n}.csv", talk(n))
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    found, settings = study_of(tmp_path)
    assert found.questions() == []
    assert (found.task, settings["talks"]) == ("grocery", "..")
    assert {path: path.read_bytes() for path in before} == before
    assert {(one.name, one.role) for one in found.files[0].speakers} == {
        ("INV", "assessor"),
        ("PAR", "participant"),
    }
    first = (found.study / "study.toml").read_bytes()
    again = look_at(tmp_path)
    assert again.write() == []  # a second look changes nothing and takes nothing of its own for a table
    assert (found.study / "study.toml").read_bytes() == first
    assert again.people is None


def test_recognisers_name_speakers_anew_in_every_file(tmp_path):
    names = ({"E": "SPEAKER_00", "T": "SPEAKER_01"}, {"E": "SPEAKER_01", "T": "SPEAKER_00"})
    for n in range(4):
        whisper(tmp_path / f"P{n}.json", talk(n), names=names[n % 2])
    found, settings = study_of(tmp_path)
    assert found.questions() == []
    assert settings["roles"] == "roles.csv"
    dialogs = found.dialogs
    assert [len(one) for one in dialogs] == [10] * 4
    assert all(
        turn.role == ("assessor", "participant")[i % 2] for one in dialogs for i, turn in enumerate(one)
    )
    assert "Roles were found by who speaks of the way in 4 files" in " ".join(found.warnings())


def test_two_who_speak_of_the_way_alike_are_a_question(tmp_path):
    turns = [(who, a, b, WAY[i // 2]) for i, (who, a, b, _) in enumerate(talk())]
    whisper(tmp_path / "P1.json", turns, names={"E": "SPEAKER_00", "T": "SPEAKER_01"})
    whisper(tmp_path / "P2.json", talk(2), names={"E": "SPEAKER_00", "T": "SPEAKER_01"})
    found, _ = study_of(tmp_path)
    (question,) = found.questions()
    assert "P1.json" in question
    assert "roles.csv" in question
    roles = pl.read_csv(found.study / "roles.csv", infer_schema=False)
    assert roles.filter(pl.col("file") == "P1.json")["role"].to_list() == ["", ""]
    answered = found.answered({"P1.json": "SPEAKER_01"})
    assert answered.questions() == []
    assert len(answered.dialogs) == 2


def test_files_without_speakers_are_a_question(tmp_path):
    for n in range(2):
        whisper(tmp_path / f"P{n}.json", talk(n))
    found, settings = study_of(tmp_path)
    assert settings["roles"] == "roles.csv"
    (question,) = found.questions()
    assert "2 files not told apart by speaker" in question
    alone = found.answered({"P0.json": "", "P1.json": ""})
    assert alone.questions() == []
    assert len(alone.dialogs) == 2


def test_other_tasks_of_the_same_people_are_a_question(tmp_path):
    cookies = "the boy is on a stool and he is taking a cookie from the jar while the sink is running over"
    for n in (1, 2, 3):
        table(tmp_path / f"{n}_route.csv", talk(n))
        table(tmp_path / f"{n}_picture.csv", [(who, a, b, f"{cookies} {n}") for who, a, b, _ in talk(n)])
    found, _ = study_of(tmp_path)
    (question,) = found.questions()
    assert "3 files in which the participant hardly speaks of the way: 1_picture.csv" in question
    left = found.without(one.name for one in found.files if one.is_off_task)
    assert left.questions() == []
    assert len(left.dialogs) == 3
    assert left.skip == ("1_picture.csv", "2_picture.csv", "3_picture.csv")
    settings = found.study / "grounding.toml"
    settings.write_text(f"{settings.read_text('utf-8')}\nskip = {json.dumps(left.skip)}\n", "utf-8")
    assert look_at(tmp_path).questions() == []  # as the user said


def test_names_of_people_before_what_they_say(tmp_path):
    for n in (1, 2):
        names = {"E": "Dr. Lee", "T": f"Ann O’Neill {n}"}
        cues = [f"00:00:{a:06.3f} --> 00:00:{b:06.3f}\n{names[who]}: {said}\n" for who, a, b, said in talk(n)]
        (tmp_path / f"GMT2023041{n}.vtt").write_text("WEBVTT\n\n" + "\n".join(cues), "utf-8")
    found, settings = study_of(tmp_path)
    assert settings["speakers"] == {
        "Dr. Lee": "assessor",
        "Ann O’Neill 1": "participant",
        "Ann O’Neill 2": "participant",
    }
    assert not any("Dr. Lee" in turn.text for one in found.dialogs for turn in one)


def test_who_is_called_adult_may_be_the_participant(tmp_path):
    head = "@UTF8\n@Begin\n@Languages:\teng\n@Participants:\tSUB Adult, RES Investigator\n"
    said = [f"*{'SUB' if who == 'T' else 'RES'}:\t{text} . \x15{int(1000 * a)}_{int(1000 * b)}\x15"
            for who, a, b, text in talk()]  # fmt: skip
    (tmp_path / "P1.cha").write_text(head + "\n".join(said) + "\n@End\n")
    found = look_at(tmp_path)
    assert found.questions() == []
    assert found.dialogs[0].turns[1].role == "participant"


def test_what_a_recogniser_writes_side_by_side_is_one_talk(tmp_path):
    for n in range(2):
        whisper(tmp_path / f"P{n}.json", talk(n), names={"E": "INV", "T": "PAR"})
        lines = [f"{i}\n00:00:{a:06.3f} --> 00:00:{b:06.3f}\n{said}\n".replace(".", ",") for i, (_, a, b, said) in
                 enumerate(talk(n), 1)]  # fmt: skip
        (tmp_path / f"P{n}.srt").write_text("\n".join(lines))
        (tmp_path / f"P{n}.txt").write_text("\n".join(said for *_, said in talk(n)))
    (tmp_path / "P1 (copy).json").write_bytes((tmp_path / "P1.json").read_bytes())
    (tmp_path / "settings.json").write_text('{"model": "large"}')
    found, settings = study_of(tmp_path)
    assert [one.participant for one in found.dialogs] == ["P0", "P1"]
    assert sorted(settings["skip"]) == ["P0.srt", "P1 (copy).json", "P1.srt", "settings.json"]
    said = " ".join(found.warnings())
    assert "3 files not used, as others hold the same talk" in said
    assert "1 file taken for no dialog: settings.json" in said
    assert "2 files not read: no known format has .txt" in said
    assert len(read(tmp_path, skip=settings["skip"])) == 2


def test_a_broken_dialog_is_told_and_not_taken_for_something_else(tmp_path):
    for n in range(3):
        whisper(tmp_path / f"P{n}.json", talk(n), names={"E": "INV", "T": "PAR"})
    broken = tmp_path / "P2.json"
    broken.write_text(broken.read_text()[:-40])
    (tmp_path / "P3.json").write_text("")
    found = look_at(tmp_path)
    assert found.skip == ()
    assert found.bad["table"].to_list() == ["P2.json", "P3.json"]
    assert "2 files cannot be used: P2.json, P3.json" in " ".join(found.questions())


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-8"])
@pytest.mark.parametrize(
    "header",
    ["Sprecher;Beginn;Ende;Text", "說話者;開始;結束;內容", "who;Start (s);End (s);utterance"],
)
def test_usual_names_of_columns_are_known(tmp_path, encoding, header):
    table(tmp_path / "P1.csv", talk(), between=";", header=header.replace(";", ","), encoding=encoding)
    found, settings = study_of(tmp_path)
    assert found.questions() == []
    assert "columns" not in settings
    assert found.dialogs[0].turns[1].end_s == 5.0


def test_titles_above_a_table_and_milliseconds_are_understood(tmp_path):
    rows = [f"{who};{1000 * a:g};{1000 * b:g};{said};;" for who, a, b, said in talk()]
    text = "Session 3;;;;;\n\nname;start (ms);end (ms);text;;\n" + "\n".join(rows) + "\n"
    (tmp_path / "P1.csv").write_text(text)
    found = look_at(tmp_path)
    assert found.questions() == []
    assert found.dialogs[0].turns[1].end_s == 5.0


# ---------------------------------------------------------------------- participants


def people_table(path, rows):
    pl.DataFrame(rows, schema=["ID", "group", "age"], orient="row").write_csv(path)


def test_ids_that_almost_match_are_paired_and_all_others_named(tmp_path):
    for n in range(1, 5):
        table(tmp_path / f"S{n}.csv", talk(n))
    table(tmp_path / "X9.csv", talk(7))
    people_table(
        tmp_path / "people.csv", [(f"s0{n}", "mci" if n > 2 else "normal", 70 + n) for n in range(1, 6)]
    )
    found, _ = study_of(tmp_path)
    assert found.people is not None
    assert found.people.pairs == {f"s0{n}": f"S{n}" for n in range(1, 5)}
    assert found.people.without_row == ("X9",)
    assert found.people.without_dialog == ("s05",)
    assert found.people.groups == {"group": ("mci", "normal")}
    written = tomllib.loads((found.study / "study.toml").read_text("utf-8"))
    assert written["participants"]["file"] == "../people.csv"
    assert written["participants"]["ids"] == dict(found.people.pairs)


def test_a_workbook_with_instructions_first(tmp_path):
    from xlsxwriter import Workbook

    for n in range(1, 4):
        table(tmp_path / "talks" / f"{n}.csv", talk(n))
    with Workbook(tmp_path / "people.xlsx") as book:
        book.add_worksheet("Read me").write_row(0, 0, ["How to fill this in"])
        sheet = book.add_worksheet("Data")
        for i, row in enumerate([["Code", "dx"], [1, "HC"], [2, "AD"], [3, "AD"]]):
            sheet.write_row(i, 0, row)
    found, settings = study_of(tmp_path)
    assert found.study == tmp_path
    assert settings["talks"] == "talks"
    assert found.people is not None
    assert (found.people.table.sheet, found.people.table.id, found.people.matched) == ("Data", "Code", 3)


def test_visits_are_told_by_names_of_files(tmp_path):
    for n in (1, 2, 3):
        for visit in ("T1", "T2"):
            table(tmp_path / f"HC_{n:02d}_{visit}.csv", talk(n + 4 * (visit == "T2")))
    found, settings = study_of(tmp_path)
    assert settings["names"] == "{participant}_{episode}"
    assert found.ids == ("HC_01", "HC_02", "HC_03")
    assert "3 participants have several dialogs" in " ".join(found.warnings())


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("{}/{}.csv", "folder"),
        ("{}/{}/transcript.csv", "{participant}/{episode}/{any}"),
    ],
)
def test_folders_of_people_hold_their_visits(tmp_path, name, names):
    for n in (1, 2):
        for visit in ("visit1", "visit2"):
            table(tmp_path / name.format(f"P{n}", visit), talk(n + 4 * (visit == "visit2")))
    found, settings = study_of(tmp_path)
    assert settings["names"] == names
    assert found.ids == ("P1", "P2")


def test_a_table_with_a_row_for_each_visit_gives_what_its_rows_agree_on(tmp_path):
    from fidm.grounding.store import known_participants

    for n in (1, 2, 3):
        for visit in ("T1", "T2"):
            table(tmp_path / f"P{n}_{visit}.csv", talk(n + 4 * (visit == "T2")))
    rows = [
        f"P{n},{visit},{70 + n + (n == 2 and visit == 'T2')},g{n % 2},"
        for n in (1, 2, 3)
        for visit in ("T1", "T2")
    ]
    rows[5] += "withdrew"
    (tmp_path / "visits.csv").write_text("\n".join(["pid,visit,age,group,note", *rows]))
    found, _ = study_of(tmp_path)
    people = known_participants(found.study)
    assert people is not None
    assert people.select("participant", "visit", "age", "group").rows() == [
        ("P1", None, 71, "g1"),
        ("P2", None, None, "g0"),
        ("P3", None, 73, "g1"),
    ]
    assert people["excluded"].to_list() == [None, None, "note: withdrew"]


def test_numbers_and_missing_looking_ids_stay_names(tmp_path):
    for n, name in enumerate(("NA", "007", "12")):
        table(tmp_path / "talks" / f"{name}.csv", talk(n))
    (tmp_path / "people.csv").write_text("id,group\nNA,a\n007,b\n12,a\n")
    found, _ = study_of(tmp_path)
    assert found.people is not None
    assert found.people.matched == 3


# ---------------------------------------------------------------------- what cannot be


def test_an_empty_folder_and_one_without_dialogs_say_what_is_needed(tmp_path):
    with pytest.raises(DataError, match="has no dialogs"):
        look_at(tmp_path)
    (tmp_path / "notes.docx").write_bytes(b"x")
    with pytest.raises(DataError, match="has no dialogs"):
        look_at(tmp_path)
    (tmp_path / "P1.WAV").write_bytes(b"x")
    with pytest.raises(DataError, match="Recordings are transcribed by: fidm transcribe"):
        look_at(tmp_path)
    with pytest.raises(DataError, match="is not a folder"):
        look_at(tmp_path / "nowhere")


def test_talk_about_something_else_asks_for_the_task(tmp_path):
    turns = [(who, a, b, "the weather was rather nice on sunday evening") for who, a, b, _ in talk()]
    table(tmp_path / "P1.csv", turns)
    found = look_at(tmp_path)
    assert found.task == ""
    assert "--task NAME" in " ".join(found.questions())


YUE = (
    "我喺門口行上去攞菜，跟住轉左去攞肉，之後落去攞雞蛋同埋豆腐，跟住經過罐頭同零食去麵包舖，最後去收銀處俾錢"
)


ZH = "往左走两格，到蔬菜那边，我们没有买这个的，然后向下走到肉那里买肉，再往右走，去付钱"


def test_cantonese_that_a_recogniser_calls_chinese(tmp_path):
    for n in range(2):
        said = YUE if n else "往左走兩格，到蔬菜那邊，買一些蔬菜，然後向下走到肉類，再去付錢"
        turns = [(who, a, b, said if who == "T" else "跟住呢") for who, a, b, _ in talk(n)]
        segments = [
            {"start": a, "end": b, "text": t, "speaker": {"E": "INV", "T": "PAR"}[w]} for w, a, b, t in turns
        ]
        (tmp_path / str(n)).mkdir()
        (tmp_path / str(n) / "P1.json").write_text(json.dumps({"segments": segments, "language": "zh"}))
    written, settings = study_of(tmp_path / "1")
    assert settings["languages"] == {"zh": "yue"}
    assert written.dialogs[0].language == "yue"
    assert "said to be zh are taken for yue" in " ".join(written.warnings())
    mandarin, settings = study_of(tmp_path / "0", task="grocery")
    assert mandarin.dialogs[0].language == "zh"
    assert "languages" not in settings
    assert "taken for" not in " ".join(mandarin.warnings())


def test_cantonese_and_mandarin_side_by_side_are_each_read_as_what_they_are(tmp_path):
    for n, said in enumerate((YUE, ZH)):
        turns = [(who, a, b, said if who == "T" else "好") for who, a, b, _ in talk(n)]
        table(tmp_path / f"P{n}.csv", [(*turn[:3], turn[3]) for turn in turns])
    found = look_at(tmp_path, task="grocery")
    assert [one.language for one in found.files] == ["yue", "zh"]
    assert found.questions() == []


def test_who_withdrew_is_left_out_of_what_follows(tmp_path):
    from fidm.grounding.store import known_participants

    for n in range(1, 4):
        table(tmp_path / f"P{n}.csv", talk(n))
    (tmp_path / "people.csv").write_text("id,consent,group\nP1,yes,a\nP2, Withdrew ,a\nP3,Y,b\n")
    found, _ = study_of(tmp_path)
    assert found.people is not None
    assert found.people.left_out == ("P2",)
    assert "1 row taken for people who take no part, since consent is 'Withdrew': P2" in " ".join(
        found.warnings()
    )
    known = known_participants(found.study)
    assert known is not None
    assert (
        known.filter(pl.col("excluded").is_not_null()).rows(named=True)[0]["excluded"] == "consent: Withdrew"
    )


def test_a_broken_table_beside_dialogs_is_told_and_stops_nothing(tmp_path):
    table(tmp_path / "P1.csv", talk(1))
    (tmp_path / "people.xlsx").write_bytes(b"not a workbook")
    (tmp_path / "~$people.xlsx").write_bytes(b"lock")
    found = look_at(tmp_path)
    assert "people.xlsx is not a workbook that can be read" in " ".join(found.warnings())
    assert "~$" not in " ".join(found.warnings())


def test_the_assessor_is_found_where_the_participant_is_known(tmp_path):
    for n in range(2):
        table(tmp_path / f"P{n}.csv", talk(n), names={"E": "Dr. Chan", "T": "PAR"})
    found, settings = study_of(tmp_path)
    assert settings["speakers"] == {"Dr. Chan": "assessor", "PAR": "participant"}
    assert {turn.role for turn in found.dialogs[0]} == {"assessor", "participant"}


def test_an_assessor_who_repeats_everything_is_no_participant(tmp_path):
    turns = []
    for i, way in enumerate(WAY):
        time = 20.0 * i
        turns += [("E", time, time + 1, ASKED[i]), ("T", time + 2, time + 6, way)]
        turns += [("E", time + 7 + k, time + 7.9 + k, f"okay, so {way}") for k in (0, 1)]
    whisper(tmp_path / "P1.json", turns, names={"E": "SPEAKER_00", "T": "SPEAKER_01"})
    found = look_at(tmp_path)
    speakers = {one.name: one for one in found.files[0].speakers}
    assert speakers["SPEAKER_00"].way_words > speakers["SPEAKER_01"].way_words
    assert speakers["SPEAKER_00"].new_words == 0
    assert "Who is the participant is not clear in 1 file" in " ".join(found.questions())


def test_roles_that_the_words_contradict_are_a_question(tmp_path):
    table(tmp_path / "P1.csv", talk(1), names={"E": "PAR", "T": "INV"})
    table(tmp_path / "P2.csv", talk(2))
    found = look_at(tmp_path)
    assert "Who is the participant is not clear in 1 file: P1.csv" in " ".join(found.questions())
    assert found.answered({"P1.csv": "INV"}).questions() == []


def test_a_column_exclude_is_followed_and_told(tmp_path):
    for n in range(1, 4):
        table(tmp_path / f"P{n}.csv", talk(n))
    (tmp_path / "people.tsv").write_text(
        "id\texclude\treason\nP1\tno\t\nP2\tYes\twithdrew consent\nP3\tNo \texclude gaze\n"
    )
    found, _ = study_of(tmp_path)
    assert found.people is not None
    assert found.people.table.excluded == {"exclude": ("Yes",)}
    assert found.people.left_out == ("P2",)


def test_mandarin_is_not_read_as_cantonese(tmp_path):
    turns = [(who, a, b, ZH if who == "T" else "然后呢") for who, a, b, _ in talk()]
    table(tmp_path / "P1.csv", turns)
    found = look_at(tmp_path, task="grocery")
    assert [one.language for one in found.files] == ["zh"]
    assert found.questions() == []


def test_romanised_chinese_is_a_question_with_all_files_and_nothing_said(tmp_path):
    for n, said in enumerate(("zyun2 zo2 haang4 loeng5 gaak3", "maai5 joek6, haang4 soeng5 heoi3")):
        table(tmp_path / f"P{n}.csv", [(w, a, b, said if w == "T" else "跟住呢") for w, a, b, _ in talk(n)])
    table(tmp_path / "P2.csv", talk(2))
    asked = " ".join(look_at(tmp_path, task="grocery").questions())
    assert "2 files in romanised Chinese" in asked
    assert "P0.csv, P1.csv. Where there is a tier of characters" in asked
    assert "hardly speaks" not in asked
    assert "zyun2" not in asked


def test_same_people_needs_exactly_one_candidate():
    assert same_people(["S1", "S01"], ["S001"]) == {}
    assert same_people(["1"], ["P1", "Q1"]) == {}
    assert same_people(["P1"], ["P1_visit1", "P1_visit2"]) == {}
    assert same_people(["SW-OO7", "SW-8"], ["SW007", "sw008"]) == {"SW-8": "sw008", "SW-OO7": "SW007"}


def test_nothing_that_is_said_is_shown(tmp_path):
    secret = "my neighbour Winnie"
    turns = [(who, a, b, f"{said} {secret}") for who, a, b, said in talk()]
    table(tmp_path / "P1.csv", turns)
    (tmp_path / "P2.csv").write_text(f"{secret},0,1,hello\n")
    found = look_at(tmp_path)
    assert "Winnie" not in json.dumps(found.to_dict(), default=str)
    assert isinstance(found.study, Path)
