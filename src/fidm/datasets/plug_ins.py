"""Things that are found by name: those that come with the package, and those of other installed packages."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from fidm.errors import DataError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Catalogue(Generic[T]):
    """What there is of one kind, by name; nothing is imported before it is asked for.

    Parameters
    ----------
    what : str
        What one of them is called in messages.
    kind : type
        What each of them must be.
    group : str
        The group of entry points by which other packages add theirs.
    built_in : mapping of str to str
        Those that come with the package: where each is, as ``"module:name"``.
    """

    what: str
    kind: type[T]
    group: str
    built_in: Mapping[str, str]

    def names(self) -> tuple[str, ...]:
        """Return all names: the built-in ones, then those of other packages."""
        return tuple(self._places())

    def find(self, name: str) -> T:
        """Return the one of this name."""
        places = self._places()
        if name not in places:
            close = difflib.get_close_matches(name, places, 1)
            hint = f"Did you mean {close[0]}?" if close else f"There are: {', '.join(places)}."
            raise DataError(f"There is no {self.what} {name!r}. {hint}")
        found = self._load(places[name])
        if not isinstance(found, self.kind):
            raise DataError(
                f"What is installed as the {self.what} {name!r} ({places[name].value}) is no "
                f"{self.kind.__module__.rpartition('.')[0]}.{self.kind.__name__}."
            )
        return found

    def _places(self) -> dict[str, EntryPoint]:
        """Where each is; a built-in one cannot be replaced by another package."""
        others = sorted(entry_points(group=self.group), key=lambda one: one.name)
        own = {name: EntryPoint(name, value, self.group) for name, value in self.built_in.items()}
        return own | {one.name: one for one in others if one.name not in own}

    def _load(self, place: EntryPoint) -> object:
        """What an entry point leads to; of a package that is broken, its name is told."""
        try:
            return place.load()
        except (ImportError, AttributeError) as error:
            whose = place.dist.name if place.dist is not None else "fidm"
            raise DataError(
                f"The {self.what} {place.name!r} of the package {whose} cannot be loaded: {error}."
            ) from error
