"""What a report says of each person: the profile, every step, every segment and what was said.

Everything is laid out for everybody at once and cut into people once, so that the work grows with the number
of steps and not with its square.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from fidm.fit.profile import OK, SENSITIVITY, STATUSES, Profile
from fidm.io.excluded import COLUMN as EXCLUDED
from fidm.pages.scene import map_scene
from fidm.report import words
from fidm.report.episodes import Tables, episode_part
from fidm.report.known import Known, rounded

Progress = Callable[[str, int, int], None]


def shared_part(known: Known, *, chosen: Sequence[str] | None = None) -> dict[str, Any]:
    """Return what all people's parts refer to: maps, channels, where everybody lies, and the list of people.

    Parameters
    ----------
    known : Known
        What is known of everybody.
    chosen : sequence of str, optional
        Who is listed, in this order; everybody by default.
    """
    of_channel = {channel.name: channel for channel in known.fit.channels}
    channels = []
    for name in known.found.channels:
        said = words.channel_words(name, of_channel[name].column)
        yes_no = name in known.found.yes_no
        channels.append({"name": name, "words": said.name, "unit": said.unit or None, "yes_no": yes_no})
    tops = known.found.counted["unexpectedness"].filter(known.found.counted["unexpectedness"].is_finite())
    return {
        "scenes": [map_scene(task) for task in known.tasks if task.grid is not None],
        "channels": channels,
        "parameters": _spreads(known.profile),
        "level": known.profile.level,
        "unexpectedness": {
            "p90": rounded(tops.quantile(0.9, "linear")) if len(tops) else None,
            "p99": rounded(tops.quantile(0.99, "linear")) if len(tops) else None,
            "top": rounded(float(tops.max())) if len(tops) else None,  # type: ignore[arg-type]
        },
        "label": None if known.label is None else words.column_words(known.label),
        "statuses": dict(words.GROUNDED),
        "has_words": known.behind.words is not None,
        "deidentified": known.is_deidentified,
        "people": _listed(known, chosen),
    }


def _listed(known: Known, chosen: Sequence[str] | None) -> list[dict[str, Any]]:
    """What the list of people shows, sorts and filters by."""
    profile, row_of = known.profile, {name: row for row, name in enumerate(known.cohort.ids)}
    means = dict(known.found.people.select("participant", "mean_unexpectedness").iter_rows())
    rows = []
    for n, name in enumerate(row_of if chosen is None else chosen, start=1):
        row = row_of[name]
        values = dict(zip(profile.parameters, map(rounded, profile.estimate[row]), strict=True))
        about = _about(known, row)
        rows.append(
            {
                "n": n,
                "id": name,
                "label": about["label"],
                "split": about["split"],
                "flags": flags(profile, row),
                "values": {**values, "mean_unexpectedness": rounded(means.get(name))},
            }
        )
    return rows


def _spreads(profile: Profile) -> list[dict[str, Any]]:
    """Where people lie in each parameter; ``n`` says of how many finite estimates the numbers are."""
    rows = []
    for k, name in enumerate(profile.parameters):
        values = profile.estimate[:, k]
        finite = values[np.isfinite(values)]
        low, p10, middle, p90, high = (
            np.quantile(finite, (0, 0.1, 0.5, 0.9, 1)) if len(finite) else np.full(5, np.nan)
        )
        rows.append(
            {
                "parameter": name,
                "words": words.parameter_words(name),
                "unit": None,
                "log": name == SENSITIVITY,
                "n": len(finite),
                "n_infinite": int(np.isinf(values).sum()),
                "p10": rounded(p10),
                "median": rounded(middle),
                "p90": rounded(p90),
                "low": rounded(low),
                "high": rounded(high),
            }
        )
    return rows


def people_parts(
    known: Known, *, chosen: Sequence[str] | None = None, on_progress: Progress | None = None
) -> Iterator[dict[str, Any]]:
    """Give each person's part, in the order of the cohort or of those chosen.

    Parameters
    ----------
    known : Known
        What is known of everybody.
    chosen : sequence of str, optional
        Whose parts; everybody's by default.
    on_progress : callable, optional
        Called as ``on_progress(doing, done, of)``.
    """
    tables = Tables.of(known)
    row_of = {name: row for row, name in enumerate(known.cohort.ids)}
    places = _places(known.profile)
    wanted = list(row_of) if chosen is None else list(chosen)
    for i, name in enumerate(wanted):
        if on_progress and i % 20 == 0:
            on_progress("people", i, len(wanted))
        row = row_of[name]
        yield {
            "id": name,
            **_about(known, row),
            "profile": _profile(known.profile, row, places),
            "episodes": [episode_part(known, tables, e, i) for i, e in enumerate(tables.episodes_of(row))],
        }
    if on_progress:
        on_progress("people", len(wanted), len(wanted))


def _about(known: Known, row: int) -> dict[str, Any]:
    """Label, split and what else is known of a person."""
    cells = known.cohort.participants.row(row, named=True)
    cells.pop("participant")
    cells.pop(EXCLUDED, None)
    label = None if known.label is None else cells.pop(known.label, None)
    split = cells.pop("split", None)
    facts = [] if known.is_deidentified else [[words.column_words(k), _cell(v)] for k, v in cells.items()]
    return {
        "label": None if label is None else str(label),
        "split": None if split is None else str(split),
        "facts": [fact for fact in facts if fact[1] is not None],
    }


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return rounded(value)
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def _places(profile: Profile) -> NDArray[np.float64]:
    """The share of the others who lie below each person, in per cent; NaN where there is no estimate."""
    found = np.full(profile.estimate.shape, np.nan)
    for k in range(profile.estimate.shape[1]):
        is_known = ~np.isnan(profile.estimate[:, k])
        if is_known.sum() > 1:
            below = rankdata(profile.estimate[is_known, k]) - 1  # ties count half
            found[is_known, k] = 100 * below / (is_known.sum() - 1)
    return found


def _profile(profile: Profile, row: int, places: NDArray[np.float64]) -> list[dict[str, Any]]:
    found = []
    for k, name in enumerate(profile.parameters):
        status = STATUSES[int(profile.status[row, k])]
        found.append(
            {
                "parameter": name,
                "words": words.parameter_words(name),
                "estimate": rounded(profile.estimate[row, k]),
                "low": rounded(profile.low[row, k]),
                "high": rounded(profile.high[row, k]),
                "status": status,
                "n": int(profile.n[row, k]),
                "rests_on": words.rests_on(name, int(profile.n[row, k])),
                "percentile": rounded(places[row, k]),
                "said": words.against(status, profile.method),
            }
        )
    return found


def flags(profile: Profile, row: int) -> list[str]:
    """Return what is to be said against a person's estimates, in a few words each."""
    return [
        f"{words.parameter_words(name)}: {words.FLAGS[STATUSES[code]]}"
        for name, code in zip(profile.parameters, profile.status[row].tolist(), strict=True)
        if code != OK
    ]
