"""What people said as numbers: one vector per person from a frozen language encoder.

Only the participant's own turns count. How a text becomes a vector, which is made once and kept, is described
in :mod:`fidm.classify.encoder`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from fidm.classify.encoder import (
    ENCODERS,
    POOLING,
    Vector,
    VectorCache,
    find_encoder,
    fingerprint,
    load_encoder,
)
from fidm.cohort import Cohort
from fidm.errors import DataError, remedy
from fidm.io.talk import Transcript
from fidm.types import Floats, Progress

__all__ = ["ENCODERS", "Language", "LanguageFeatures", "Texts", "find_encoder", "participant_texts"]


BATCH_SIZE = 16
"""How many windows run at once: a base-size encoder then needs about a gigabyte beside its weights."""


class Texts(dict[str, tuple[str, ...]]):
    """What each person said, by participant; it prints how many people there are, never a word."""

    def __repr__(self) -> str:
        # What participants said must not end up in a log or a notebook by way of a repr.
        return f"Texts({len(self)} people)"

    def __copy__(self) -> Texts:
        return self

    def __deepcopy__(self, memo: Any) -> Texts:
        return self  # scikit-learn copies parameters for every fold


def participant_texts(transcripts: Iterable[Transcript]) -> Texts:
    """Return what each participant said, utterance by utterance; what others said is left out.

    Parameters
    ----------
    transcripts : iterable of Transcript
        Of any number of people. Several episodes of a person follow each other in the order given.

    Examples
    --------
    >>> from fidm.io.talk import Transcript, Turn
    >>> turns = (Turn("INV", 0, 1, "Where to?", "assessor"), Turn("PAR", 1, 2, "To the eggs.", "participant"))
    >>> texts = participant_texts([Transcript("P1", turns)])
    >>> texts, texts["P1"]
    (Texts(1 people), ('To the eggs.',))
    """
    said: dict[str, list[str]] = {}
    for transcript in transcripts:
        own = said.setdefault(transcript.participant, [])
        own += [turn.text for turn in transcript if turn.role == "participant" and turn.text.strip()]
    return Texts({participant: tuple(own) for participant, own in said.items()})


class LanguageFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns people into the vector a frozen language encoder gives to what they said.

    A person's utterances are joined by line breaks, cut into windows that fit the encoder, and encoded. Token
    vectors of the last layer are averaged within a window, without special tokens and padding (the paper is
    silent about these), and windows are averaged by their number of tokens: one vector per person.

    Nothing is learned from the people, so a fold cannot leak into another. Nothing is downloaded either.
    Where all vectors are in the cache, neither PyTorch nor transformers is imported.

    Parameters
    ----------
    texts : mapping of str to sequence of str
        Each participant's own utterances, as :func:`participant_texts` gives them. Somebody who is not in
        it or said nothing gets NaN.
    model : str or Path
        The encoder's name on Hugging Face, or a folder with its files (see :func:`find_encoder`). A
        decoder-only model works too if transformers' ``AutoModel`` gives its ``last_hidden_state``.
    cache : str or Path, optional
        A file to keep vectors in (see :class:`fidm.classify.encoder.VectorCache`). It holds no text, but
        vectors can betray what was said, so it can be read by its owner alone. None keeps them as long as
        the object and its clones live.
    batch_size : int
        How many windows run at once. It changes how long it takes, and numbers by rounding errors alone.
    device : str, optional
        Such as ``"cpu"`` or ``"cuda:1"``; a GPU if there is one.
    chunk_tokens : int, optional
        How many of a person's tokens a window holds; as many as the encoder takes, up to 512 with the special
        ones, unless told otherwise.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``, in people.

    Attributes
    ----------
    n_features_ : int
        How many numbers a vector has.
    """

    learns = False
    """Whether it must be refitted in every training fold."""

    def __init__(
        self,
        texts: Mapping[str, Sequence[str]],
        model: str | Path,
        *,
        cache: str | Path | None = None,
        batch_size: int = BATCH_SIZE,
        device: str | None = None,
        chunk_tokens: int | None = None,
        on_progress: Progress | None = None,
    ) -> None:
        self.texts = texts if isinstance(texts, Texts) else _as_texts(texts)
        self.model = model
        self.cache = cache
        self.batch_size = batch_size
        self.device = device
        self.chunk_tokens = chunk_tokens
        self.on_progress = on_progress
        self._known: dict[str, Vector] = {}

    def fit(self, X: Cohort, y: Any = None) -> LanguageFeatures:  # noqa: N803
        """Encode these people to find out how many numbers a vector has; nothing is learned from them."""
        vectors = self._vectors(X)
        self.n_features_ = max((len(vector) for vector in vectors.values()), default=0)
        if not self.n_features_:
            raise DataError(
                f"None of the {len(X)} people said anything that could be encoded. Has the study dialogs? "
                "Are people named there as in the participants table? Is it known which turns are theirs?"
            )
        self.n_features_in_ = 1
        return self

    def transform(self, X: Cohort) -> Floats:  # noqa: N803
        """Return the vectors of these people, [n, d]; NaN for those who said nothing."""
        check_is_fitted(self, "n_features_")
        vectors = self._vectors(X)
        found = np.full((len(X), self.n_features_), np.nan)
        for row, participant in enumerate(X.ids):
            vector = vectors.get(participant)
            if vector is not None and len(vector) == self.n_features_:
                found[row] = vector
            elif vector is not None and len(vector):
                raise DataError(
                    f"Vectors of one encoder have {self.n_features_} and {len(vector)} numbers. Delete the "
                    "file they are kept in, and run again.",
                    source=str(self.cache or ""),
                )
        return found

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features."""
        check_is_fitted(self, "n_features_")
        return np.array([f"language_{number}" for number in range(self.n_features_)], dtype=object)

    def __sklearn_clone__(self) -> LanguageFeatures:
        # Vectors do not depend on who is in a fold, so clones share them; and nothing is copied.
        other = type(self)(**self.get_params(deep=False))
        other._known = self._known
        return other

    def _vectors(self, people: Cohort) -> dict[str, Vector]:
        """The vector of each person who said something."""
        if not isinstance(people, Cohort):
            raise DataError(f"X is a {type(people).__name__}; a Cohort is needed.")
        _check_count("batch_size", self.batch_size)
        if self.chunk_tokens is not None:
            _check_count("chunk_tokens", self.chunk_tokens)
        said = {person: "\n".join(self.texts[person]) for person in people.ids if self.texts.get(person)}
        said = {person: text for person, text in said.items() if text.strip()}
        if not said:
            return {}
        folder = find_encoder(self.model)
        settings = (POOLING, fingerprint(folder), self.chunk_tokens)
        keys = {person: text_key(settings, text) for person, text in said.items()}
        if any(key not in self._known for key in keys.values()):
            self._learn(folder, {keys[person]: text for person, text in said.items()})
        return {person: self._known[key] for person, key in keys.items()}

    def _learn(self, folder: Path, texts: dict[str, str]) -> None:
        """Get the vectors of these texts, by key, from the cache or by encoding."""
        if self.cache is None:
            self._encode(folder, texts, None)
            return
        with VectorCache(self.cache) as cache:
            self._known |= cache.get(key for key in texts if key not in self._known)
            self._encode(folder, texts, cache)

    def _encode(self, folder: Path, texts: dict[str, str], cache: VectorCache | None) -> None:
        keys = [key for key in texts if key not in self._known]
        done = len(texts) - len(keys)
        self._report(done, len(texts))
        if not keys:
            return
        encoder = load_encoder(folder, device=self.device, chunk_tokens=self.chunk_tokens)
        for finished in encoder.encode([texts[key] for key in keys], batch_size=self.batch_size):
            new = {keys[number]: vector for number, vector in finished}
            if cache is not None and new:
                cache.put(new)
            self._known |= new
            done += len(new)
            self._report(done, len(texts))

    def _report(self, done: int, of: int) -> None:
        if self.on_progress is not None:
            self.on_progress("language", done, of)


def text_key(settings: tuple[int, str, int | None], text: str) -> str:
    """Return the hash of all a vector depends on: the way of pooling, the encoder, the windows, the text."""
    return hashlib.sha256(json.dumps([*settings, text]).encode("ascii")).hexdigest()


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """What people said, and the encoders that are to turn it into numbers.

    Parameters
    ----------
    texts : mapping of str to sequence of str
        What each participant said; see :func:`participant_texts`. Empty where there are no dialogs.
    encoders : mapping of str to str
        A short name for each encoder, and its name on Hugging Face or its folder; by default the paper's.
    cache, batch_size, device, chunk_tokens
        As in :class:`LanguageFeatures`.
    """

    texts: Mapping[str, Sequence[str]] = field(default_factory=Texts)
    encoders: Mapping[str, str] = field(default_factory=lambda: dict(ENCODERS))
    cache: str | Path | None = None
    batch_size: int = BATCH_SIZE
    device: str | None = None
    chunk_tokens: int | None = None

    def features(self, name: str, *, on_progress: Progress | None = None) -> LanguageFeatures:
        """Return the transformer of one of the encoders."""
        if not self.texts:
            raise DataError(
                f"{name} needs what people said, and there are no dialogs. Put them into the study's folder "
                f"talks{remedy(', or give language=Language(texts)', '')}, or leave {name} out."
            )
        return LanguageFeatures(
            self.texts,
            self.encoders[name],
            cache=self.cache,
            batch_size=self.batch_size,
            device=self.device,
            chunk_tokens=self.chunk_tokens,
            on_progress=on_progress,
        )

    def __repr__(self) -> str:
        return f"Language({len(self.texts)} people, {', '.join(self.encoders)})"


def _as_texts(texts: Mapping[str, Sequence[str]]) -> Texts:
    """What people said, as tuples of utterances."""
    found = Texts()
    for participant, own in texts.items():
        if isinstance(own, str) or not all(isinstance(one, str) for one in own):
            raise DataError(f"texts must hold a sequence of utterances for {participant!r}.")
        found[str(participant)] = tuple(own)
    return found


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
        raise DataError(f"{name} is {value!r}; it must be a whole number of at least 1.")
