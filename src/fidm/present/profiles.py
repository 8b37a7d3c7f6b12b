"""What ``fidm fit`` shows in the terminal: everybody's profile in a table, and what to know about it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from fidm.fit.inferred import BothWays
from fidm.fit.profile import Profile
from fidm.io.columns import say_reasons
from fidm.line import FittedStudy
from fidm.present import NOT_A_DIAGNOSIS
from fidm.present.terminal import note, table_of, warn


def show_fitted(found: FittedStudy, console: Console, *, estimated: bool) -> None:
    """Print what was learned, everybody's profile in a table, and what was written.

    Parameters
    ----------
    found : FittedStudy
        What :func:`fidm.line.fit_study` gave.
    console : Console
        Where to.
    estimated : bool
        Whether the lapse rate was estimated, so that it is shown even if it is 0.
    """
    fitted = found.fit
    how = {"eb": "empirical Bayes", "mle": "maximum likelihood"}[fitted.method]
    joint = ", joint prior" if fitted.joint is not None else ""
    console.print(f"[bold]{len(found.profile):,} participants[/], {how}{joint}, {fitted.level:.0%} intervals")
    dim = [f"what people share was learned from {fitted.n_learned:,} ({found.part})"]
    if found.reviewed is not None:
        dim.append(_say_reviewed(found.reviewed))
    if found.reasons:
        dim.append(say_reasons(found.reasons))
    for line in dim:
        console.print(Text(line), style="dim", soft_wrap=True)
    show_summary(found.profile, console)
    if found.ways is not None:
        console.print(Text(say_inferred(found.ways, is_new=found.is_new)), soft_wrap=True)
    if fitted.lapse or estimated:
        known = f" ± {fitted.lapse_se:.3f}" if math.isfinite(fitted.lapse_se) else ""
        console.print(f"lapse rate {fitted.lapse:.3f}{known}")
    warn(console, *fitted.warnings)
    if found.problems.height:
        left_out = found.problems["participant"].n_unique()
        warn(
            console,
            f"{left_out:,} participants left out for {found.problems.height:,} problems, "
            f"listed in {found.folder / 'problems.csv'}",
        )
    *names, last = found.files
    console.print(Text(f"\nWrote {', '.join(names)} and {last} to {found.folder}"), soft_wrap=True)
    console.print(NOT_A_DIAGNOSIS, style="dim")


def show_summary(profile: Profile, console: Console) -> None:
    """Print a profile's summary as a table."""
    header, rows, notes = profile.summary().lines()
    console.print(table_of(header, rows))
    note(console, *notes)


def say_inferred(ways: BothWays | str, *, is_new: bool) -> str:
    """Return the comparison of the sensitivity with inferred moves and without as a line."""
    if isinstance(ways, str):
        return f"not estimated with inferred moves left out: {ways}"
    return f"{ways}{'' if is_new else ' (both with the prior of the earlier fit)'}"


def _say_reviewed(reviewed: Mapping[str, int]) -> str:
    rejected = reviewed["n_rejected"]
    more = f", {rejected:,} {'is' if rejected == 1 else 'are'} rejected and left out" if rejected else ""
    of = f"{reviewed['n_reviewed']:,} of the study's {reviewed['n_segments']:,} segments"
    return f"{of} are as reviewers read them{more}"
