"""Things that are found by name: those that come with the package, and those of other installed packages."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, Protocol, TypeVar

from fidm.errors import DataError


class Named(Protocol):
    """What has a name."""

    @property
    def name(self) -> str:
        """What it is called."""


T = TypeVar("T", bound=Named)


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
        if found.name != name:
            raise DataError(
                f"The entry point {name!r} of the package {_package(places[name])} leads to a {self.what} "
                f"whose name is {found.name!r}. The two names must agree: change one of them."
            )
        return found

    def ignored(self, name: str | None = None) -> tuple[str, ...]:
        """Return what other packages add in vain because the name is taken, as sentences.

        Parameters
        ----------
        name : str, optional
            Look for this name alone.
        """
        places = self._places()
        return tuple(
            f"The {self.what} {one.name!r} of the package {_package(one)} is ignored, because "
            f"{_package(places[one.name])} has one of that name. It needs another name."
            for one in self._others()
            if places[one.name] != one and name in (None, one.name)
        )

    def _places(self) -> dict[str, EntryPoint]:
        """Where each is; a built-in one cannot be replaced by another package."""
        own = {name: EntryPoint(name, value, self.group) for name, value in self.built_in.items()}
        for one in self._others():
            own.setdefault(one.name, one)
        return own

    def _others(self) -> list[EntryPoint]:
        """What other packages add; of two with the same name, the one whose package comes first counts."""
        return sorted(entry_points(group=self.group), key=lambda one: (one.name, _package(one), one.value))

    def _load(self, place: EntryPoint) -> object:
        """What an entry point leads to; of a package that is broken, its name is told."""
        try:
            return place.load()
        except (ImportError, AttributeError) as error:
            raise DataError(
                f"The {self.what} {place.name!r} of the package {_package(place)} cannot be loaded: {error}."
            ) from error


def _package(place: EntryPoint) -> str:
    """The name of the package that an entry point belongs to."""
    return place.dist.name if place.dist is not None else "fidm"
