"""People's vectors as a scikit-learn transformer, and the file they are kept in."""

from __future__ import annotations

import copy
import json
import pickle
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import tiny_bert
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

import fidm.classify.language
from fidm.classify.encoder import ENCODERS, VectorCache, load_encoder
from fidm.classify.language import LanguageFeatures, Texts, participant_texts, text_key
from fidm.cohort import Cohort
from fidm.errors import DataError
from fidm.io.talk import Transcript, Turn

Talk = tuple[Cohort, Texts]


def turn(text: str, role: str = "participant") -> Turn:
    return Turn("X", 0.0, 1.0, text, role)  # type: ignore[arg-type]


def cpu(texts: object, model: Path, **options: object) -> LanguageFeatures:
    return LanguageFeatures(texts, model, device="cpu", **options)  # type: ignore[arg-type]


def test_only_what_participants_say_counts() -> None:
    first = Transcript(
        "a", (turn("左"), turn("去邊？", "assessor"), turn("噪", "other"), turn("  "), turn("右"))
    )
    texts = participant_texts([first, Transcript("b", ()), Transcript("a", (turn("後"),), episode="2")])
    assert dict(texts) == {"a": ("左", "右", "後"), "b": ()}
    assert ENCODERS == {"bert": "google-bert/bert-base-chinese", "macbert": "hfl/chinese-macbert-base"}


def test_one_vector_per_person(bert: Path, talk: Talk) -> None:
    cohort, texts = talk
    given = {**texts, cohort.ids[2]: (), cohort.ids[3]: (" ", ""), cohort.ids[4]: ("\u200b",)}
    given.pop(cohort.ids[5])
    steps: list[tuple[str, int, int]] = []
    features = cpu(given, bert, on_progress=lambda *step: steps.append(step), batch_size=2)
    found = features.fit_transform(cohort)
    assert found.shape == (12, 32)
    assert found.dtype == np.float64
    assert np.flatnonzero(np.isnan(found).any(axis=1)).tolist() == [2, 3, 4, 5]
    encoder = load_encoder(bert, device="cpu")
    ((_, alone),) = next(encoder.encode(["\n".join(texts[cohort.ids[0]])], batch_size=99))
    np.testing.assert_allclose(found[0], alone, atol=1e-5)
    assert steps[0] == ("language", 0, 9)
    assert steps[-1] == ("language", 9, 9)
    assert [done for _, done, _ in steps] == sorted(done for _, done, _ in steps)
    assert features.get_feature_names_out()[[0, -1]].tolist() == ["language_0", "language_31"]
    assert np.isnan(features.transform(cohort[2:4])).all()
    np.testing.assert_array_equal(features.transform(cohort[[1, 0]]), found[[1, 0]])


def test_people_who_said_nothing_and_wrong_settings(bert: Path, talk: Talk) -> None:
    cohort, texts = talk
    with pytest.raises(DataError, match="of the 12 people"):
        cpu({}, bert).fit(cohort)
    with pytest.raises(DataError, match="of the 2 people"):
        cpu({cohort.ids[0]: ("\u200b",)}, bert).fit(cohort[:2])
    with pytest.raises(DataError, match="sequence of utterances") as caught:
        cpu({"a": "左右"}, bert)
    assert "左" not in str(caught.value)
    with pytest.raises(DataError, match="batch_size is 0"):
        cpu(texts, bert, batch_size=0).fit(cohort)
    with pytest.raises(DataError, match=r"chunk_tokens is 1\.5"):
        cpu(texts, bert, chunk_tokens=1.5).fit(cohort)
    with pytest.raises(DataError, match="a Cohort is needed"):
        cpu(texts, bert).fit(np.zeros((3, 1)))


def test_folds_share_vectors_and_nothing_is_learned(
    bert: Path, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort, texts = talk
    features = cpu(texts, bert)
    assert features.learns is False
    together = features.fit_transform(cohort)
    monkeypatch.setattr(fidm.classify.language, "load_encoder", lambda *_, **__: pytest.fail("encoded twice"))
    apart = clone(features)
    assert apart.texts is features.texts
    np.testing.assert_array_equal(apart.fit(cohort[:6]).transform(cohort[6:]), together[6:])
    pipeline = make_pipeline(features, SimpleImputer(), LogisticRegression())
    label = np.arange(12) % 2
    assert cross_val_predict(pipeline, cohort, label, cv=3, method="predict_proba").shape == (12, 2)
    again = pickle.loads(pickle.dumps(features))
    np.testing.assert_array_equal(again.transform(cohort), together)


def test_nothing_said_is_printed(bert: Path, talk: Talk) -> None:
    cohort, _ = talk
    secret = dict.fromkeys(cohort.ids, ("zanzibar", "鱷魚頭老襯底"))
    features = cpu(secret, bert).fit(cohort)
    pipeline = make_pipeline(features, LogisticRegression())
    shown = [repr(features), repr(pipeline), str(features.get_params()), repr(copy.deepcopy(features.texts))]
    shown += [features._repr_html_(), pipeline._repr_html_()]
    for text in shown:
        assert "zanzibar" not in text
        assert "鱷" not in text
    assert "Texts(12 people)" in shown[0]


def test_a_second_run_reads_the_file(
    bert: Path, talk: Talk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cohort, texts = talk
    path = tmp_path / "study" / "vectors.sqlite"
    first = cpu(texts, bert, cache=path).fit_transform(cohort)
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}
    with VectorCache(path) as cache:
        assert len(cache) == 12
    raw = path.read_bytes()
    for said in texts.values():
        assert not any(utterance.encode() in raw for utterance in said)
    assert not any(participant.encode() in raw for participant in cohort.ids)
    with monkeypatch.context() as patch:
        patch.setattr(fidm.classify.language, "load_encoder", lambda *_, **__: pytest.fail("encoded twice"))
        np.testing.assert_array_equal(cpu(texts, bert, cache=path).fit_transform(cohort), first)
        np.testing.assert_array_equal(cpu(texts, bert, cache=path, batch_size=3).fit_transform(cohort), first)
    other = tiny_bert.tiny_bert(tmp_path / "other", seed=1)
    cpu(texts, other, cache=path).fit(cohort)
    cpu(texts, bert, cache=path, chunk_tokens=20).fit(cohort)
    changed = {**texts, cohort.ids[0]: (*texts[cohort.ids[0]], "左")}
    cpu(changed, bert, cache=path).fit(cohort)
    with VectorCache(path) as cache:
        assert len(cache) == 12 + 12 + 12 + 1


def test_keys_depend_on_everything() -> None:
    usual = (1, "m", None)
    keys = {text_key(usual, "左"), text_key((2, "m", None), "左"), text_key((1, "n", None), "左")}
    keys |= {
        text_key((1, "m", 7), "左"),
        text_key(usual, "右"),
        text_key(usual, "左\n"),
        text_key(usual, "\ud800"),
    }
    assert len(keys) == 7


RUN = """
import json, pickle, sys
import numpy as np
from pathlib import Path
from fidm.classify.language import LanguageFeatures
cohort, texts = pickle.loads(Path(sys.argv[3]).read_bytes())
found = LanguageFeatures(texts, sys.argv[1], cache=sys.argv[2]).fit_transform(cohort)
heavy = sorted({name.split(".")[0] for name in sys.modules} & {"torch", "transformers", "tokenizers"})
print(json.dumps([heavy, float(np.abs(found).sum())]))
"""


def test_with_all_vectors_there_no_heavy_library_is_imported(bert: Path, talk: Talk, tmp_path: Path) -> None:
    cohort, texts = talk
    path = tmp_path / "vectors.sqlite"
    found = cpu(texts, bert, cache=path).fit_transform(cohort)
    (tmp_path / "talk").write_bytes(pickle.dumps((cohort, texts)))
    command = [sys.executable, "-c", RUN, str(bert), str(path), str(tmp_path / "talk")]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == [[], float(np.abs(found).sum())]


def test_a_killed_run_keeps_what_was_done(bert: Path, talk: Talk, tmp_path: Path) -> None:
    cohort, texts = talk
    path = tmp_path / "vectors.sqlite"

    def stop(doing: str, done: int, of: int) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cpu(texts, bert, cache=path, on_progress=stop, batch_size=1).fit(cohort)
    with VectorCache(path) as cache:
        kept = len(cache)
    assert 0 < kept < 12
    steps: list[int] = []
    found = cpu(texts, bert, cache=path, on_progress=lambda _, done, __: steps.append(done)).fit_transform(
        cohort
    )
    assert steps[0] == kept
    np.testing.assert_allclose(found, cpu(texts, bert).fit_transform(cohort), atol=1e-5)


SENTENCES = {
    "eggs": "I would like to buy some eggs and milk.",
    "dairy": "Please get a carton of milk and a dozen eggs.",
    "rain": "It has been raining heavily since this morning.",
    "storm": "The weather is terrible, there is a big storm outside.",
    "piano": "She plays the piano every evening.",
    "violin": "He practises the violin after dinner.",
}


def test_a_real_encoder_finds_what_means_the_same(tmp_path: Path) -> None:
    people = pl.DataFrame({"participant": list(SENTENCES)})
    none, zero = np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
    cohort = Cohort(
        participants=people,
        episodes=pl.DataFrame({"episode": [], "task": []}, schema={"episode": pl.String, "task": pl.String}),
        episode_offsets=np.zeros(len(people) + 1, dtype=np.int64),
        step_offsets=zero,
        state=none,
        action=none,
        end_state=none,
        segments=pl.DataFrame(),
        segment_offsets=zero,
    )
    texts = {name: (sentence,) for name, sentence in SENTENCES.items()}
    found = cpu(texts, tiny_bert.minilm(), cache=tmp_path / "v.sqlite").fit_transform(cohort)
    assert found.shape == (6, 384)
    unit = found / np.linalg.norm(found, axis=1, keepdims=True)
    likeness = unit @ unit.T - 2 * np.eye(6)
    assert likeness.argmax(axis=1).tolist() == [1, 0, 3, 2, 5, 4]
