"""From a text to its vector, against a slow loop; and encoders that cannot be used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import tiny_bert
import torch
import transformers

from fidm.classify.encoder import Encoder, find_encoder, fingerprint, load_encoder
from fidm.classify.language import Texts
from fidm.errors import DataError

LATIN = "go to the eggs"


def encoded(encoder: Encoder, texts: list[str], *, batch_size: int = 4) -> list[np.ndarray]:
    found = dict(pair for batch in encoder.encode(texts, batch_size=batch_size) for pair in batch)
    assert sorted(found) == list(range(len(texts)))
    return [found[number] for number in range(len(texts))]


@lru_cache
def loaded(folder: Path) -> Any:
    return transformers.AutoModel.from_pretrained(folder).eval().double()


def slowly(folder: Path, text: str, room: int) -> np.ndarray:
    """One window at a time, without padding, token by token, straight from the description."""
    words = (folder / "vocab.txt").read_text("utf-8").splitlines()
    known = {word: number for number, word in enumerate(words)}
    tokens = [known.get(letter, known["[UNK]"]) for letter in text if not letter.isspace()]
    model = loaded(folder)
    total, weight = np.zeros(model.config.hidden_size), 0
    while tokens:
        window, tokens = tokens[:room], tokens[room:]
        ids = torch.tensor([[known["[CLS]"], *window, known["[SEP]"]]])
        with torch.no_grad():
            hidden = model(ids).last_hidden_state[0].numpy()
        mean = np.zeros(model.config.hidden_size)
        for place in range(1, 1 + len(window)):
            mean += hidden[place] / len(window)
        total += len(window) * mean
        weight += len(window)
    return total / weight


@pytest.mark.parametrize("chunk_tokens", [None, 1, 7, 62])
def test_vectors_are_those_of_a_slow_loop(
    bert: Path, talk: tuple[Any, Texts], chunk_tokens: int | None
) -> None:
    texts = ["\n".join(said) for said in list(talk[1].values())[:3]] + [
        "向左三格",
        "龘龘左",
        "行" * 62,
        "行" * 63,
    ]
    encoder = load_encoder(bert, device="cpu", chunk_tokens=chunk_tokens)
    room = tiny_bert.POSITIONS - 2 if chunk_tokens is None else chunk_tokens
    assert encoder.chunk_tokens == room
    assert len(texts[0]) > 2 * (tiny_bert.POSITIONS - 2)
    texts = texts[3:] if room == 1 else texts
    for text, vector in zip(texts, encoded(encoder, texts), strict=True):
        assert vector.dtype == np.float32
        np.testing.assert_allclose(vector, slowly(bert, text, room), atol=2e-5)


def test_order_and_batch_size_change_next_to_nothing(bert: Path, talk: tuple[Any, Texts]) -> None:
    texts = ["\n".join(said) for said in talk[1].values()]
    encoder = load_encoder(bert, device="cpu")
    usual = encoded(encoder, texts)
    for again, vector in zip(encoded(encoder, texts), usual, strict=True):
        np.testing.assert_array_equal(again, vector)
    order = np.random.default_rng(1).permutation(len(texts))
    for size in (1, 3, 100):
        shuffled = encoded(encoder, [texts[i] for i in order], batch_size=size)
        for i, vector in zip(order, shuffled, strict=True):
            np.testing.assert_allclose(vector, usual[i], atol=1e-5)


def test_texts_without_tokens_and_odd_ones(bert: Path) -> None:
    encoder = load_encoder(bert, device="cpu")
    vectors = encoded(encoder, ["", "\u200b", "左\ud800", "左?", "左 [SEP]"])
    assert [len(vector) for vector in vectors] == [0, 0, 32, 32, 32]
    np.testing.assert_allclose(vectors[2], vectors[3], atol=1e-5)


def test_weights_as_older_encoders_have_them(bert: Path, tmp_path: Path) -> None:
    """A pickled file, names of an older kind, a head that is not needed, and no pooler."""
    old = shutil.copytree(bert, tmp_path / "old")
    weights = safetensors.torch.load_file(old / "model.safetensors")
    (old / "model.safetensors").unlink()
    renamed = {"cls.predictions.bias": torch.zeros(3)}
    for key, value in weights.items():
        if not key.startswith("pooler"):
            new = key.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta"
            )
            renamed[f"bert.{new}"] = value
    torch.save(renamed, old / "pytorch_model.bin")
    text = ["向左三格，跟住直行"]
    first, second = (encoded(load_encoder(find_encoder(place), device="cpu"), text) for place in (bert, old))
    np.testing.assert_array_equal(first[0], second[0])
    assert fingerprint(bert) != fingerprint(old)


def test_other_kinds_of_models(tmp_path: Path, talk: tuple[Any, Texts]) -> None:
    texts = ["\n".join(said) for said in list(talk[1].values())[:2]]
    size = {"vocab_size": len(tiny_bert.vocabulary()), "hidden_size": 16, "intermediate_size": 16}
    small = {**size, "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 34}
    special = {"bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    # RoBERTa counts places from the padding token's number on, so it takes one token less than it has places.
    roberta = transformers.RobertaModel(transformers.RobertaConfig(**small, **special))
    encoder = load_encoder(tiny_bert.save(roberta, tmp_path / "roberta"), device="cpu")
    assert encoder.chunk_tokens == 34 - 1 - 2
    assert np.isfinite(encoded(encoder, texts)).all()
    decoder = transformers.LlamaModel(transformers.LlamaConfig(**small, **special, num_key_value_heads=2))
    encoder = load_encoder(tiny_bert.save(decoder, tmp_path / "llama"), device="cpu")
    alone, beside = encoded(encoder, texts[:1]), encoded(encoder, texts)
    np.testing.assert_allclose(alone[0], beside[0], atol=1e-5)
    t5 = transformers.T5Model(
        transformers.T5Config(vocab_size=99, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)
    )
    with pytest.raises(DataError, match="a decoder"):
        load_encoder(tiny_bert.save(t5, tmp_path / "t5"), device="cpu")


def test_a_model_that_gives_no_token_vectors(tmp_path: Path) -> None:
    vision = transformers.ViTModel(
        transformers.ViTConfig(
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=1,
            intermediate_size=8,
            image_size=4,
            patch_size=2,
        )
    )
    folder = tiny_bert.save(vision, tmp_path / "vision")
    with pytest.raises(DataError, match="no encoder") as caught:
        encoded(load_encoder(folder, device="cpu"), ["左右左右"])
    assert "左" not in str(caught.value)


def test_a_model_without_last_hidden_state(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = load_encoder(bert, device="cpu")
    monkeypatch.setattr(type(encoder.model), "forward", lambda self, **given: {"logits": given["input_ids"]})
    with pytest.raises(DataError, match="no vector"):
        encoded(encoder, ["左"])


def broken(bert: Path, folder: Path, what: str) -> Path:
    shutil.copytree(bert, folder)
    weights = folder / "model.safetensors"
    if what == "config":
        (folder / "config.json").unlink()
    elif what == "config text":
        (folder / "config.json").write_text("{", "utf-8")
    elif what == "own code":
        own = {"model_type": "secret", "auto_map": {"AutoModel": "mine.Model", "AutoConfig": "mine.Config"}}
        (folder / "config.json").write_text(json.dumps(own), "utf-8")
        (folder / "mine.py").write_text("raise SystemExit('ran')", "utf-8")
    elif what == "tokenizer":
        (folder / "vocab.txt").unlink()
    elif what == "tokenizer text":
        (folder / "tokenizer.json").write_text('{"model": 3}', "utf-8")
    elif what == "weights":
        weights.unlink()
    elif what == "half of the weights":
        weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    elif what == "pickle":
        weights.unlink()
        (folder / "pytorch_model.bin").write_bytes(b"no pickle at all")
    elif what == "some weights":
        kept = {k: v for k, v in safetensors.torch.load_file(weights).items() if "layer.1" not in k}
        safetensors.torch.save_file(kept, weights, metadata={"format": "pt"})
    elif what == "nan":
        spoilt = {k: v * float("nan") for k, v in safetensors.torch.load_file(weights).items()}
        safetensors.torch.save_file(spoilt, weights, metadata={"format": "pt"})
    elif what == "shape":
        settings = json.loads((folder / "config.json").read_text("utf-8"))
        (folder / "config.json").write_text(json.dumps({**settings, "hidden_size": 64}), "utf-8")
    elif what == "shard":
        weights.unlink()
        index = {"weight_map": {"a": "model-00001.safetensors"}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index), "utf-8")
    elif what == "index":
        weights.unlink()
        (folder / "model.safetensors.index.json").write_text("[]", "utf-8")
    elif what == "adapter":
        (folder / "adapter_config.json").write_text("{}", "utf-8")
    elif what == "vocabulary":
        with (folder / "vocab.txt").open("a", encoding="utf-8") as file:
            file.write("龘\n")
    return folder


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("config", "no encoder: it has no config"),
        ("config text", "cannot be loaded"),
        ("own code", "cannot be loaded"),
        ("tokenizer", "no tokenizer"),
        ("tokenizer text", "cannot be loaded"),
        ("weights", r"no model\.safetensors"),
        ("half of the weights", "cannot be loaded"),
        ("pickle", "cannot be loaded"),
        ("some weights", "16 parts have none"),
        ("nan", "not finite"),
        ("shape", r"cannot be loaded|do not fit"),
        ("shard", r"no model-00001\.safetensors: it is here only in part"),
        ("index", "cannot be read"),
        ("adapter", "adapter"),
        ("vocabulary", "do not belong together"),
    ],
)
def test_encoders_that_cannot_be_used_say_why(
    bert: Path, tmp_path: Path, what: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = broken(bert, tmp_path / "broken", what)
    with pytest.raises(DataError, match=message) as caught:
        encoded(load_encoder(find_encoder(folder), device="cpu"), ["左龘右"])
    assert str(folder) in str(caught.value)
    assert "龘" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_settings_that_do_not_fit(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="chunk_tokens is 63"):
        load_encoder(bert, device="cpu", chunk_tokens=63)
    with pytest.raises(DataError, match="device 'abacus'"):
        load_encoder(bert, device="abacus")
    with pytest.raises(DataError, match="knows nothing"):
        encoded(load_encoder(bert, device="cpu"), ["龘" * 60])
    for name in ("torch", "transformers"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, None)
            with pytest.raises(DataError, match=rf"needs {name}.*pip install 'fidm\[language\]'"):
                load_encoder(bert)


def test_loading_leaves_the_settings_of_transformers_alone(
    bert: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    logging = transformers.utils.logging
    logging.enable_progress_bar()
    before = logging.get_verbosity()
    try:
        load_encoder(bert, device="cpu")
        assert logging.is_progress_bar_enabled()
        assert logging.get_verbosity() == before
    finally:
        logging.disable_progress_bar()
    assert capfd.readouterr() == ("", "")


def test_a_name_is_looked_up_where_hugging_face_puts_it(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    name = "google-bert/bert-base-chinese"
    with pytest.raises(DataError) as caught:
        find_encoder(name)
    assert f"hf download {name}" in str(caught.value)
    assert "encoders={'bert': FOLDER}" in str(caught.value)
    place = tmp_path / "hub" / "models--google-bert--bert-base-chinese"
    snapshot = place / "snapshots" / "0123abc"
    snapshot.mkdir(parents=True)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text("0123abc", "ascii")
    for file in bert.iterdir():
        (snapshot / file.name).symlink_to(file)
    assert find_encoder(name) == snapshot
    assert fingerprint(snapshot) == fingerprint(bert)
    (snapshot / "model.safetensors").unlink()
    (snapshot / "model.safetensors").symlink_to(tmp_path / "gone")
    with pytest.raises(DataError, match=f"only in part. Fetch it again: hf download {name}"):
        find_encoder(name)
    with pytest.raises(DataError, match="'NAME': FOLDER"):
        find_encoder("somebody/something")
    monkeypatch.setattr("fidm.classify.encoder.has_extra", lambda: False)
    with pytest.raises(DataError, match=r"hf download a/b \(after: pip install 'fidm\[language\]'\)"):
        find_encoder("a/b")
    for wrong in ("./nothing/here", Path("nothing"), "a/b/c", ""):
        with pytest.raises(DataError, match=r"folder is not there|no encoder"):
            find_encoder(wrong)
    with pytest.raises(DataError, match="is a file"):
        find_encoder(bert / "vocab.txt")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(DataError, match=r"needs huggingface_hub.*pip install 'fidm\[language\]'"):
        find_encoder("a/b")
    assert find_encoder(bert) == bert


@pytest.mark.parametrize(
    ("variable", "folder"), [("HF_HUB_CACHE", "."), ("HUGGINGFACE_HUB_CACHE", "."), ("HF_HOME", "hub")]
)
def test_variables_of_the_environment_say_where(variable: str, folder: str, tmp_path: Path) -> None:
    place = tmp_path / folder / "models--a--b"
    (place / "snapshots" / "77").mkdir(parents=True)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text("77", "ascii")
    for name in ("config.json", "vocab.txt", "model.safetensors"):
        (place / "snapshots" / "77" / name).write_text("{}", "ascii")
    code = "from fidm.classify.encoder import find_encoder; print(find_encoder('a/b'))"
    others = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
    said = subprocess.run(
        [sys.executable, "-c", code], env={**others, variable: str(tmp_path)}, capture_output=True, text=True
    )
    assert said.stdout.strip() == str(place / "snapshots" / "77")


def test_a_snapshot_need_not_hold_what_no_encoder_needs(
    bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, commit = tmp_path / "models--a--b", "7" * 40
    shutil.copytree(bert, place / "snapshots" / commit)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(commit, "ascii")
    (place / "trees").mkdir()  # what the whole of it is, as the library notes it when it fetches a part
    parts = {name: {"size": 1, "blob_id": "0"} for name in ("config.json", "tf_model.h5")}
    (place / "trees" / f"{commit}.json").write_text(
        json.dumps({"format_version": 1, "files": parts}), "ascii"
    )
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert find_encoder("a/b") == place / "snapshots" / commit


def test_encoders_are_told_apart_by_content(bert: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(bert, tmp_path / "copy")
    (copy / "README.md").write_text("words", "utf-8")
    (copy / "tf_model.h5").write_bytes(b"not used")
    assert fingerprint(copy) == fingerprint(bert)
    seen = {fingerprint(bert)}
    for name in ("config.json", "vocab.txt", "tokenizer_config.json", "model.safetensors"):
        with (copy / name).open("ab") as file:
            file.write(b"\n")
        seen.add(fingerprint(copy))
    assert len(seen) == 5
