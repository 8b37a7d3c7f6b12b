"""Running a frozen language encoder of the Hugging Face kind.

Nothing is ever downloaded, and no program that a model brings along is run. PyTorch and transformers are
imported when an encoder is loaded, not before.

A text becomes one vector in four steps:

1. The encoder's own tokenizer cuts it into tokens, without special tokens.
2. The tokens are cut into windows that fit the encoder, and every window gets the special tokens around it.
3. Within a window, the vectors that the last layer gives to the window's own tokens are averaged. Special
   tokens and padding take no part; the paper does not say whether they did.
4. The windows' means are averaged, each weighted by its number of tokens, so that every token counts once.

A decoder-only model works too if transformers' ``AutoModel`` gives its ``last_hidden_state``; its tokens see
only what came before them.

An encoder is looked for in a folder, or by its name where huggingface_hub keeps what it fetched, without a
network and without PyTorch; one that is not on this machine is an error that says which command fetches it.
Encoders are told apart by what is in their files.

Vectors of what people said are kept in one SQLite file, so that nobody is encoded twice. One row per text:
its key is the hash of everything the vector depends on (the encoder's files, how the text is cut, how token
vectors are pooled, and the text), its value the vector. The file holds no text. A vector can still betray
what was said, and who has a text can find out whether it is in here, so the file belongs into the study's
folder and can be read by its owner alone. Several threads and several processes may use it at once, and a
killed run loses only what was under way.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.util
import json
import pickle
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fidm.errors import DataError, remedy
from fidm.files import Contents, PrivateFile, hash_file

Vector = NDArray[np.float32]


KEYS_AT_ONCE = 500
"""How many rows one query asks for."""


STORED = np.dtype("<f4")
"""How numbers are stored, on every machine."""


CONTENTS = Contents(
    table="""
CREATE TABLE IF NOT EXISTS vectors (
    key TEXT PRIMARY KEY,
    dimension INTEGER NOT NULL,
    vector BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    made_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))
) WITHOUT ROWID
""",
    application_id=0x46494456,  # "FIDV"
    version=1,
    what="vectors",
    kept="What was encoded so far is kept.",
    again="its vectors are then made anew.",
    error=DataError,
)


class VectorCache(PrivateFile):
    """A file of vectors.

    Parameters
    ----------
    path : str or Path
        Where it lies; made with its folder if it is not there.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder, VectorCache(f"{folder}/vectors.sqlite") as cache:
    ...     cache.put({"a": np.ones(3, dtype=np.float32)})
    ...     sorted(cache.get(["a", "b"])), len(cache)
    (['a'], 1)
    """

    contents = CONTENTS

    def get(self, keys: Iterable[str]) -> dict[str, Vector]:
        """Return those of these vectors that are there; one without numbers is of a text without tokens."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, Vector] = {}
        for first in range(0, len(wanted), KEYS_AT_ONCE):
            some = wanted[first : first + KEYS_AT_ONCE]
            marks = ",".join("?" * len(some))
            query = f"SELECT key, dimension, vector, checksum FROM vectors WHERE key IN ({marks})"  # noqa: S608
            with self._use() as connection:
                rows = connection.execute(query, some).fetchall()
            for key, dimension, raw, checksum in rows:
                found[key] = self._read(key, dimension, raw, checksum)
        return found

    def put(self, vectors: Mapping[str, Vector]) -> None:
        """Keep these vectors, all or none of them; those that are there already stay."""
        rows = []
        for key, vector in vectors.items():
            raw = np.ascontiguousarray(vector, dtype=STORED).tobytes()
            rows.append((key, len(vector), raw, _checksum(key, raw)))
        with self._use() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.executemany(
                    "INSERT OR IGNORE INTO vectors (key, dimension, vector, checksum) VALUES (?, ?, ?, ?)",
                    rows,
                )
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def _read(self, key: str, dimension: object, raw: object, checksum: object) -> Vector:
        if (
            not isinstance(raw, bytes)
            or not isinstance(dimension, int)
            or len(raw) != dimension * STORED.itemsize
            or checksum != _checksum(key, raw)
        ):
            raise self._damaged()
        return np.frombuffer(raw, dtype=STORED).astype(np.float32)


def _checksum(key: str, raw: bytes) -> int:
    return zlib.crc32(raw, zlib.crc32(key.encode("ascii", "replace")))


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
    if isinstance(model, Path) or folder.exists():
        raise _no_folder(name, "is a file" if folder.exists() else "is not there")
    hub = _import("huggingface_hub")
    try:
        found = hub.snapshot_download(name, local_files_only=True, allow_patterns=["config.json"])
    except hub.errors.HFValidationError:  # it is no name
        raise _no_folder(name, "is not there") from None
    except (OSError, ValueError):
        raise _not_here(name) from None
    return _checked(Path(found), fetch=f"hf download {name}")


def encoders_here() -> tuple[str, ...]:
    """Return the names of all encoders that are where ``hf download`` puts what it fetches."""
    if importlib.util.find_spec("huggingface_hub") is None:
        return ()
    cache = Path(_import("huggingface_hub.constants").HF_HUB_CACHE)
    found = set()
    for folder in cache.glob("models--*/snapshots/*"):
        with contextlib.suppress(DataError):
            found.add(_checked(folder, fetch="").parts[-3].removeprefix("models--").replace("--", "/"))
    return tuple(sorted(found))


def _no_folder(name: str, what: str) -> DataError:
    return DataError(f"The encoder's folder {what}. Name a folder with config.json in it.", source=name)


def _not_here(name: str) -> DataError:
    known = next((alias for alias, known in ENCODERS.items() if known == name), "NAME")
    first = "" if has_extra() else " (after: pip install 'fidm[language]')"
    return DataError(
        f"The encoder {name} is not on this machine, and fidm downloads nothing by itself. Fetch it once "
        f"with: hf download {name}{first}. Or put its files into a folder and name it: "
        + remedy(f"encoders={{{known!r}: FOLDER}}.", f"--encoder {known}=FOLDER.")
    )


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
    return hash_file(path)


POOLING = 1
"""The number of the way from a text to its vector; a change of the way makes old vectors unused."""

MOST_TOKENS = 512
"""The longest window, special tokens included, unless ``chunk_tokens`` asks for more: what BERT can take."""

BATCHES_AT_ONCE = 4
"""Windows of so many batches are sorted by length together."""

ALL_UNKNOWN = 50
"""If so many tokens are unknown to the tokenizer and not one is known, it is not made for the language."""

EXTRA = "Install it with: pip install 'fidm[language]'"


@dataclass(frozen=True, slots=True, eq=False)
class Encoder:
    """An encoder in memory, ready to run. Make one with :func:`load_encoder`.

    Parameters
    ----------
    folder : Path
        Where its files are.
    model, tokenizer
        What transformers made of them.
    torch
        The module.
    device
        Where it runs.
    chunk_tokens : int
        How many of a text's own tokens a window holds.
    before, after : tuple of int
        The special tokens around a window.
    n_known : int
        How many tokens the model has vectors for.
    """

    folder: Path
    model: Any
    tokenizer: Any
    torch: Any
    device: Any
    chunk_tokens: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    n_known: int

    def encode(self, texts: Sequence[str], *, batch_size: int) -> Iterator[list[tuple[int, Vector]]]:
        """Encode texts; after each batch of windows, yield the texts that are done, by number.

        A text without tokens gets a vector of no numbers. Windows of several texts are sorted by length, so
        that little is spent on padding; the texts of one such group are done before the next group begins.

        Parameters
        ----------
        texts : sequence of str
            What to encode.
        batch_size : int
            How many windows run at once.
        """
        group: list[tuple[int, list[int]]] = []
        empty: list[tuple[int, Vector]] = []
        n_windows = 0
        for number, text in enumerate(texts):
            tokens = self.tokens(text)
            if not tokens:
                empty.append((number, np.zeros(0, dtype=np.float32)))
                continue
            group.append((number, tokens))
            n_windows += -(-len(tokens) // self.chunk_tokens)
            if n_windows >= BATCHES_AT_ONCE * batch_size:
                yield from self._encode_group(group, batch_size)
                group, n_windows = [], 0
        if empty:
            yield empty
        yield from self._encode_group(group, batch_size)

    def tokens(self, text: str) -> list[int]:
        """Return the numbers of a text's tokens, without special ones."""
        written = text.encode("utf-8", "replace").decode("utf-8")  # half a character cannot be written
        with _Explained("The encoder's tokenizer failed on a text", self.folder, says=False):
            found = self.tokenizer(written, add_special_tokens=False, verbose=False)["input_ids"]
        return [int(token) for token in found]

    def _encode_group(
        self, group: list[tuple[int, list[int]]], batch_size: int
    ) -> Iterator[list[tuple[int, Vector]]]:
        self._check_known([token for _, tokens in group for token in tokens])
        size = self.chunk_tokens
        windows = [
            (number, tokens[first : first + size])
            for number, tokens in group
            for first in range(0, len(tokens), size)
        ]
        windows.sort(
            key=lambda window: (-len(window[1]), window[0])
        )  # the longest first: if memory fails, at once
        left = {number: -(-len(tokens) // size) for number, tokens in group}
        length = {number: len(tokens) for number, tokens in group}
        sums: dict[int, NDArray[np.float64]] = {}
        for first in range(0, len(windows), batch_size):
            batch = windows[first : first + batch_size]
            done = []
            for (number, tokens), mean in zip(batch, self._means([w for _, w in batch]), strict=True):
                sums[number] = sums.get(number, 0.0) + len(tokens) * mean.astype(np.float64)
                left[number] -= 1
                if not left[number]:
                    done.append((number, (sums.pop(number) / length[number]).astype(np.float32)))
            yield done

    def _means(self, windows: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """The mean vector of each window's own tokens; [n, d]."""
        torch = self.torch
        around = len(self.before) + len(self.after)
        shape = (len(windows), max(map(len, windows)) + around)
        pad = getattr(self.tokenizer, "pad_token_id", None) or 0
        ids, seen, own = (
            np.full(shape, pad),
            np.zeros(shape, dtype=np.int64),
            np.zeros(shape, dtype=np.float32),
        )
        for row, window in enumerate(windows):
            first, last = len(self.before), len(self.before) + len(window)
            ids[row, : len(window) + around] = [*self.before, *window, *self.after]
            seen[row, : len(window) + around] = 1
            own[row, first:last] = 1 / len(window)
        what = "The encoder failed. Is it one for texts, and is there memory for so large a batch_size?"
        with _Explained(what, self.folder, says=False), torch.inference_mode():
            given = self.model(
                input_ids=torch.from_numpy(ids.astype(np.int64)).to(self.device),
                attention_mask=torch.from_numpy(seen).to(self.device),
            )
            hidden = getattr(given, "last_hidden_state", None)
            if hidden is None or tuple(hidden.shape[:2]) != shape:
                raise DataError(
                    "This model is no encoder: it gives no vector for each token (last_hidden_state).",
                    source=str(self.folder),
                )
            # A sum instead of a product of matrices: padding must not come in as 0 × NaN.
            weight = torch.from_numpy(own).to(self.device)[:, :, None]
            kept = torch.where(weight > 0, hidden.float() * weight, 0.0)
            found: NDArray[np.float32] = kept.sum(dim=1).cpu().numpy()
        if not np.isfinite(found).all():
            raise DataError(
                "The encoder gives vectors that are not finite; its weights may be damaged.",
                source=str(self.folder),
            )
        return found

    def _check_known(self, tokens: list[int]) -> None:
        """Refuse tokens the model has no vector for, and a tokenizer that knows nothing of what was said."""
        if tokens and max(tokens) >= self.n_known:
            raise DataError(
                f"The tokenizer and the model do not belong together: a token has the number {max(tokens)}, "
                f"but the model knows {self.n_known} tokens.",
                source=str(self.folder),
            )
        unknown = getattr(self.tokenizer, "unk_token_id", None)
        if len(tokens) >= ALL_UNKNOWN and set(tokens) == {unknown}:
            raise DataError(
                "The encoder's tokenizer knows nothing of what was said. Is it made for another language?",
                source=str(self.folder),
            )


def load_encoder(folder: Path, *, device: str | None = None, chunk_tokens: int | None = None) -> Encoder:
    """Load an encoder from its folder, in single precision; PyTorch and transformers are imported now.

    Parameters
    ----------
    folder : Path
        As :func:`find_encoder` gives it.
    device : str, optional
        Such as ``"cpu"`` or ``"cuda:1"``; a GPU if there is one.
    chunk_tokens : int, optional
        How many tokens of a text a window holds at most: as many as the encoder takes beside its special
        tokens, and no more than 512 with them, unless told otherwise.
    """
    torch, transformers = _import("torch"), _import("transformers")
    where = _device(torch, device)
    options = {"local_files_only": True, "trust_remote_code": False}
    with _quiet(transformers), _Explained("The encoder cannot be loaded", folder):
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **options)
        model, info = transformers.AutoModel.from_pretrained(str(folder), output_loading_info=True, **options)
        if getattr(model.config, "is_encoder_decoder", False):
            raise DataError(
                "The model has an encoder and a decoder; one or the other is needed.", source=str(folder)
            )
        n_known = getattr(model.get_input_embeddings(), "num_embeddings", None)
        if n_known is None:
            raise DataError("This model is no encoder of texts.", source=str(folder))
        _check_complete(info, folder)
        model = model.float().eval().to(where)
        if hasattr(model.config, "use_cache"):
            model.config.use_cache = False
        before, after = _special_tokens(tokenizer, folder)
    most = _most_tokens(model, tokenizer)
    room = (MOST_TOKENS if most is None else min(most, MOST_TOKENS)) - len(before) - len(after)
    if chunk_tokens is not None:
        own = None if most is None else most - len(before) - len(after)
        if own is not None and chunk_tokens > own:
            raise DataError(
                f"chunk_tokens is {chunk_tokens}; this encoder takes {own} beside its special tokens.",
                source=str(folder),
            )
        room = chunk_tokens
    if room < 1:
        raise DataError("The encoder has no room for a single token.", source=str(folder))
    return Encoder(folder, model, tokenizer, torch, where, room, before, after, n_known)


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise DataError(f"{name} cannot be imported: {error}. {EXTRA}") from None
        raise DataError(f"A language encoder needs {name}, which is not installed. {EXTRA}") from None
    except (ImportError, OSError) as error:
        raise DataError(f"{name} cannot be imported: {_first_line(error)}. {EXTRA}") from None


def _device(torch: Any, device: str | None) -> Any:
    if device is None:
        device = (
            "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
        )
    try:
        where = torch.device(device)
        torch.zeros(1).to(where)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise DataError(f"PyTorch cannot use the device {device!r}: {_first_line(error)}") from None
    return where


def _check_complete(info: dict[str, Any], folder: Path) -> None:
    """Refuse weights that leave a part of the encoder as it was made at random.

    The layer that sums up a whole text (``pooler``) may be missing: it is not used, and many lack it.
    """
    missing = [
        key
        for key in info["missing_keys"]
        if key.split(".")[0] != "pooler" and not key.endswith("position_ids")
    ]
    if missing or info.get("mismatched_keys"):
        raise DataError(
            f"The weights do not fit the encoder's config.json: {len(missing)} parts have none, and would be "
            "random.",
            source=str(folder),
        )


def _special_tokens(tokenizer: Any, folder: Path) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The special tokens that the tokenizer puts before and after a text."""
    for probe in ("a", "一", "1 2"):
        bare = list(tokenizer(probe, add_special_tokens=False)["input_ids"])
        full = list(tokenizer(probe)["input_ids"])
        for first in range(len(full) - len(bare) + 1):
            if bare and full[first : first + len(bare)] == bare:
                return tuple(full[:first]), tuple(full[first + len(bare) :])
    raise DataError("The encoder's tokenizer is of an unknown kind.", source=str(folder))


def _most_tokens(model: Any, tokenizer: Any) -> int | None:
    """How many tokens the model takes at once, special ones included; None where nothing limits it."""
    config = model.config
    limits = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
    for name, module in model.named_modules():
        # Models of RoBERTa's kind begin to count places after the number of the padding token.
        padding = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and padding is not None:
            limits.append(module.num_embeddings - padding - 1)
    limits.append(getattr(tokenizer, "model_max_length", None))  # a number beyond all reason stands for none
    known = [int(limit) for limit in limits if isinstance(limit, int | float) and 0 < limit < 10**7]
    return min(known, default=None)


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Keep transformers from writing and drawing bars while it loads; what matters is checked and raised."""
    logging = transformers.utils.logging
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity(logging.CRITICAL)
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


class _Explained:
    """Turns the errors of other packages into ones that say what to do, without any of the texts in them."""

    KINDS = (
        OSError, ValueError, RuntimeError, TypeError, AttributeError, LookupError, ImportError, EOFError,
        pickle.UnpicklingError, MemoryError,
    )  # fmt: skip

    def __init__(self, what: str, folder: Path, *, says: bool = True) -> None:
        self.what, self.folder, self.says = what, folder, says

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # tokenizers raises Exception itself, and safetensors a child of its own.
        foreign = kind is not None and (kind is Exception or kind.__module__.startswith("safetensors"))
        if error is not None and (foreign or isinstance(error, self.KINDS)):
            reason = _first_line(error) if self.says else type(error).__name__
            raise DataError(f"{self.what} ({reason}).", source=str(self.folder)) from None


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200].rstrip(".:")
