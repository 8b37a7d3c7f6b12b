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
"""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fidm.errors import DataError
from fidm.study.vectors import Vector

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
