"""Finding language encoders on this machine, and telling them apart by what is in their files.

This needs neither PyTorch nor transformers, and nothing here can reach a network: an encoder that is not on
this machine is an error that says which command fetches it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
from functools import lru_cache
from pathlib import Path

from fidm.errors import DataError

ENCODERS = {"bert": "google-bert/bert-base-chinese", "macbert": "hfl/chinese-macbert-base"}
"""The paper's encoders (appendix B.1), by the names that representations have."""

WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
"""Files of weights, in the order in which transformers looks for them."""

VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model", "*.tiktoken", "tekken.json")
SMALL_FILES = (".json", ".txt", ".model", ".tiktoken")
"""Endings of the files beside the weights that a vector may depend on."""

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def find_encoder(model: str | Path) -> Path:
    """Return the folder of an encoder on this machine; an error says which command fetches it.

    Parameters
    ----------
    model : str or Path
        A folder with the encoder's files, or its name on Hugging Face. A name is looked up where
        ``hf download`` puts what it fetches; HF_HUB_CACHE and HF_HOME are heeded.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return _checked(folder, fetch="")
    name = str(model)
    if isinstance(model, Path) or not _NAME.fullmatch(name):
        what = "is a file" if folder.exists() else "is not there"
        raise DataError(f"The encoder's folder {what}. Name a folder with config.json in it.", source=name)
    fetch = f"hf download {name}"
    place = hub_cache() / f"models--{name.replace('/', '--')}"
    try:
        commit = (place / "refs" / "main").read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        commit = ""
    found = place / "snapshots" / commit
    if not commit or not found.is_dir():
        known = next((alias for alias, known in ENCODERS.items() if known == name), "NAME")
        first = "" if has_extra() else " (after: pip install 'fidm[language]')"
        raise DataError(
            f"The encoder {name} is not on this machine, and fidm downloads nothing by itself. Fetch it once "
            f"with: {fetch}{first}. Or put its files into a folder and name it: --encoder {known}=FOLDER."
        )
    return _checked(found, fetch=fetch)


def hub_cache() -> Path:
    """Return the folder in which Hugging Face's tools keep what they fetch."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return Path(os.path.expandvars(os.environ[variable])).expanduser()
    home = os.environ.get("HF_HOME") or f"{os.environ.get('XDG_CACHE_HOME') or '~/.cache'}/huggingface"
    return Path(os.path.expandvars(home)).expanduser() / "hub"


def has_extra() -> bool:
    """Return whether what runs an encoder is installed; nothing is imported."""
    return all(importlib.util.find_spec(name) is not None for name in ("torch", "transformers"))


def _checked(folder: Path, *, fetch: str) -> Path:
    """Return a folder that has all kinds of files an encoder needs."""
    try:
        next(folder.iterdir(), None)
        if (folder / "config.json").is_file():
            (folder / "config.json").read_bytes()
    except OSError as error:
        raise DataError(f"This folder cannot be read: {error.strerror}.", source=str(folder)) from None
    again = f" Fetch it again: {fetch}." if fetch else ""
    if not (folder / "config.json").is_file():
        raise DataError(f"This folder is no encoder: it has no config.json.{again}", source=str(folder))
    if (folder / "adapter_config.json").is_file():
        raise DataError(
            "This folder holds an adapter beside a model. Merge it into the model and save that.",
            source=str(folder),
        )
    if not any(path.is_file() for pattern in VOCABULARIES for path in folder.glob(pattern)):
        raise DataError(
            f"The encoder has no tokenizer (tokenizer.json or vocab.txt).{again}", source=str(folder)
        )
    for path in weight_files(folder):
        if not path.is_file():
            raise DataError(
                f"The encoder has no {path.name}: it is here only in part.{again}", source=str(folder)
            )
    return folder


def weight_files(folder: Path) -> tuple[Path, ...]:
    """Return the files that transformers would take the weights from."""
    first = next((folder / name for name in WEIGHTS if (folder / name).is_file()), folder / WEIGHTS[0])
    if first.suffix != ".json":
        return (first,)
    try:
        shards = set(json.loads(first.read_text("utf-8"))["weight_map"].values())
        return (first, *(folder / Path(str(shard)).name for shard in sorted(shards)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{first.name} cannot be read.", source=str(folder)) from None


def fingerprint(folder: Path) -> str:
    """Return a hash of everything in an encoder's folder that a vector may depend on: its files' contents."""
    files = {path for path in folder.iterdir() if path.suffix in SMALL_FILES and path.is_file()}
    files.difference_update(folder / name for name in WEIGHTS)
    files.update(weight_files(folder))
    if "transformers_weights" in (folder / "config.json").read_text("utf-8", "replace"):
        files.update(folder.glob("*.safetensors"))  # config.json may name another file of weights
    total = hashlib.sha256()
    for path in sorted(files):
        try:
            stat = path.stat()
            digest = _digest(path.resolve(), stat.st_size, stat.st_mtime_ns)
        except OSError as error:
            raise DataError(f"{path.name} cannot be read: {error.strerror}.", source=str(folder)) from None
        total.update(f"{path.name}\0{digest}\n".encode())
    return total.hexdigest()


@lru_cache(maxsize=256)
def _digest(path: Path, size: int, modified_ns: int) -> str:
    """Hash a file's content, once as long as it stays the same."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
