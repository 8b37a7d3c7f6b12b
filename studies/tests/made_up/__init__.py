"""Made-up files in the formats of the published data sets, for tests without the real ones."""

from __future__ import annotations

from collections import Counter


def repeated_titles(told) -> list[str]:
    """Titles that sections and tables of a page share, which a screen reader could not tell apart."""
    titles = [one["title"] for part in told.sections for one in (part, *part["tables"])]
    return [title for title, n in Counter(titles).items() if n > 1]
