"""What the page of the Space Adventure Task shows: rows and verdicts for its template, tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from fidm.plot.style import INK, LOOKS, QUIET, RESIDUAL_MAP, RULE, ink_on, new_axes, quieten
from fidm.present.numbers import MINUS
from fidm_studies.analysis import Findings, Reanalysis
from fidm_studies.dataset import Loaded
from fidm_studies.space_adventure.analysis import analyse
from fidm_studies.space_adventure.dataset import STUDENTS
from fidm_studies.space_adventure.files import FASTEST_MS, N_ITEMS
from fidm_studies.space_adventure.people import (
    CLINICAL,
    IN_TIME,
    UNDER,
)
from fidm_studies.writing import UNSURE, one_row, read_template, side, write_sections

ALIKE = 0.99
"""From this rank correlation on, two orders of people are called alike."""

SURE = 0.05
"""A corrected p-value below this is called beyond chance."""

METRICS = {"auc": "AUC", "balanced_accuracy": "balanced accuracy"}
COMPARED = {"clinical": "all", "clinical, as published": "with published estimates"}
"""Whom a comparison of alcohol use disorder with controls is of."""


def sections(findings: Findings, loaded: Loaded) -> list[dict[str, Any]]:
    """Return the sections of the page, the summary first."""
    tables = findings.tables
    chosen = {
        **_of_values(tables["values"]),
        **_of_estimates(tables["agreement"], tables["reliability"]),
        **_of_times(findings),
        **_of_age(findings),
        **_of_tests(tables),
        **_of_disorder(tables["groups"]),
    }
    drawn: dict[str, Figure | Axes] = {
        "values": draw_values(tables["values"]),
        "agreement": draw_agreement(tables["people"], loaded.tables["published_fits"]),
        "times": draw_times(tables["reaction_times"]),
        "groups": draw_groups(tables["people"]),
        "ablation": draw_ablation(tables["ablation"]),
        "relations": draw_relations(tables["relations"]),
    }
    template = read_template("fidm_studies.space_adventure")
    return write_sections(template, findings, chosen=chosen, tables=_shown(tables), figures=drawn)


def _shown(tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of the page, with words in place of names."""
    pairs = (
        tables["values"]
        .group_by("task", "steps", "depth")
        .agg(pl.col("is_same").all(), pl.col("misprint").any())
    )
    counts = {"n_pairs": pl.len(), "n_same": pl.col("is_same").sum(), "misprints": pl.col("misprint").sum()}
    groups = in_words(tables["groups"], "parameter")
    ablation = in_words(tables["ablation"], "representation")
    return {
        "values": pairs.group_by("steps", "depth").agg(**counts).sort("steps", "depth"),
        "agreement": in_words(tables["agreement"], "parameter", "published"),
        "reliability": in_words(tables["reliability"], "parameter"),
        "times": tables["reaction_times"],
        "two-kinds": in_words(tables["two_kinds_of_time"], "one", "other"),
        "age": groups.filter(comparison="age"),
        "latent": in_words(tables["latent"], "parameter"),
        "ablation": ablation.with_columns(pl.col("metric").replace(METRICS)),
        "relations": in_words(tables["relations"], "parameter", "test"),
        "with-age": in_words(tables["age"], "measure"),
        "clinical": groups.filter(pl.col("comparison").is_in(list(COMPARED))).with_columns(
            pl.col("comparison").replace(COMPARED)
        ),
    }


def _of_values(values: pl.DataFrame) -> dict[str, Any]:
    """How many published pairs of values are not ours, and the misprint, if that is all there is."""
    wrong = values.filter(~pl.col("is_same"))
    n = wrong.select("task", "block_id", "depth").n_unique()
    misprint = wrong.row(0, named=True) if n == 1 and wrong["misprint"].all() else None
    if misprint:
        misprint |= {"printed": _all_digits(misprint["q"]), "solved": _all_digits(misprint["ours"])}
    return {"n_different": n, "misprint": misprint}


def _all_digits(value: float) -> str:
    """A value as the published table has it."""
    return f"{value:,.3f}".replace("-", MINUS)


def _of_estimates(agreement: pl.DataFrame, halves: pl.DataFrame) -> dict[str, Any]:
    """How η and θ agree with published estimates and with themselves."""
    beta, depth = (
        one_row(agreement, parameter="eta", published=name) for name in ("model_beta", "mean_planning_depth")
    )
    eta, theta = (one_row(halves, halves="mini-blocks", parameter=name) for name in ("eta", "theta"))
    choices = one_row(halves, halves="choices", parameter="theta")
    ends = choices["high"], theta["low"]
    in_time = []
    for name, mixed in (("eta", eta), ("theta", theta)):
        split = one_row(halves, halves=IN_TIME, parameter=name)
        if None not in (mixed["r"], split["r"]):
            lost, less = mixed["n"] - split["n"], split["r"] < mixed["r"]
            words = {"words": WORDS[name], "n_excluded": lost, "is_less": less}
            in_time.append({"mixed": mixed, "split": split, **words})
    return {
        "beta": beta,
        "depth": depth,
        "depth_side": side(depth, 0.0),
        "eta_halves": eta,
        "theta_halves": theta,
        "theta_choices": choices,
        "choices_less": None not in ends and ends[0] < ends[1],
        "in_time": in_time if len(in_time) == 2 else [],
    }


def _of_times(findings: Findings) -> dict[str, Any]:
    kinds = findings.tables["two_kinds_of_time"]
    together = one_row(kinds, one="first_choice", other="later_choices")
    return {
        "slow_s": _typical(findings.tables["reaction_times"], "first"),
        "fast_s": _typical(findings.tables["reaction_times"], "second"),
        "order_alike": findings.numbers["theta_with_and_without_design"] >= ALIKE,
        "together": together,
        "together_side": side(together, 0.0),
        "first_eta": one_row(kinds, one="first_choice", other="eta"),
        "later_eta": one_row(kinds, one="later_choices", other="eta"),
    }


def _typical(shown: pl.DataFrame, choice: str) -> float:
    """The geometric mean of the cells of a choice, of all adults; cells have as many choices each."""
    cells = shown.filter(pl.col("group") == "all adults", pl.col("choice_index") == choice)
    total = cells.select((pl.col("typical_s").log() * pl.col("n_choices")).sum() / pl.col("n_choices").sum())
    return float(total.select(pl.first().exp()).item())


def _of_age(findings: Findings) -> dict[str, Any]:
    """Whether older people are slower and guided less by value, and what distinguishes the groups."""
    numbers, tables = findings.numbers, findings.tables
    auc = tables["ablation"].filter(metric="auc")
    first, later = (
        one_row(tables["groups"], comparison="age", parameter=name)
        for name in ("first_choice", "later_choices")
    )
    latent = {
        f"latent_{name}": one_row(tables["latent"], adjusted="gender", parameter=name)
        for name in ("eta", "theta")
    }
    tested = one_row(tables["latent"], adjusted="gender and other tests", parameter="eta")
    differences = tables["ablation_differences"].filter(metric="auc").iter_rows(named=True)
    return {
        "age_eta_side": side(numbers["age_eta"], 0.5),
        "age_theta_side": side(numbers["age_theta"], 0.5),
        "by_action": one_row(auc, representation="action"),
        "by_effort": one_row(auc, representation="effort"),
        "by_both": one_row(auc, representation="fidm"),
        **latent,
        "latent_eta_side": side(latent["latent_eta"], 1.0, "factor"),
        "latent_theta_side": side(latent["latent_theta"], 1.0, "factor"),
        "tested_eta": tested,
        "first": first,
        "later": later,
        "first_side": side(first, 0.5, "auc"),
        "later_side": side(later, 0.5, "auc"),
        "differences": [
            {"row": row, "side": side(row, 0.0), "words": WORDS[row["against"]]} for row in differences
        ],
    }


def _of_tests(tables: Mapping[str, pl.DataFrame]) -> dict[str, Any]:
    """Which correlations with other tests remain after correction, also with the disorder held fixed."""
    rows, people = tables["relations"], tables["people"]
    young = people.filter(pl.col("age") < UNDER, pl.col("source") != STUDENTS)
    samples = []
    for name in rows["sample"].unique(maintain_order=True):
        own = rows.filter(sample=name)
        sure = [
            {
                **row,
                "words": f"{WORDS[row['parameter']]} with {WORDS[row['test']]}",
                "remains": row["partial_p_holm"] is not None and row["partial_p_holm"] < SURE,
            }
            for row in own.filter(pl.col("p_holm") < SURE).iter_rows(named=True)
        ]
        samples.append({"name": name, "n": max(own["n"].to_list()), "sure": sure})
    return {
        "n_items": N_ITEMS,
        "fastest_ms": FASTEST_MS,
        "sure": SURE,
        "samples": samples,
        "with_age": [
            {**row, "words": WORDS[row["measure"]]}
            for row in tables["age"].iter_rows(named=True)
            if side(row, 0.0) != UNSURE
        ],
        "under": UNDER,
        "n_young": young.height,
        "n_disorder": young.filter(pl.col(CLINICAL.column) == CLINICAL.first).height,
    }


def _of_disorder(groups: pl.DataFrame) -> dict[str, Any]:
    """Alcohol use disorder against controls: everybody, and those with published estimates."""
    eta, theta = (one_row(groups, comparison="clinical", parameter=name) for name in ("eta", "theta"))
    theirs = groups.filter(comparison="clinical, as published")
    fewer = one_row(theirs, parameter="eta")
    return {
        "clinical_eta": eta,
        "clinical_theta": theta,
        "clinical_side": side(eta, 0.5, "auc"),
        "clinical_theta_side": side(theta, 0.5, "auc"),
        "published_eta": fewer,
        "published_beta": one_row(theirs, parameter="model_beta"),
        "n_fewer": eta["n_second"] - fewer["n_second"],
    }


REANALYSIS = Reanalysis(
    name="space-adventure",
    dataset="space-adventure",
    title="Space Adventure Task: planning ahead in older and younger people",
    question=(
        "Do action sensitivity and effort, read from choices and reaction times of a planning task, agree "
        "with what its authors published, and do they tell older from younger people?"
    ),
    analyse=analyse,
    sections=sections,
)


WORDS = {
    "eta": "action sensitivity η",
    "theta": "time offset θ",
    "first_choice": "θ of first choices",
    "later_choices": "θ of later choices",
    "processing_speed": "processing speed",
    "vocabulary": "vocabulary",
    "working_memory": "working memory",
    "model_beta": "published β (response precision)",
    "mean_planning_depth": "published planning depth",
    "model_theta": "published bias",
    "model_alpha": "published learning rate",
    "age": "age",
    "action": "action (η)",
    "effort": "effort (θ)",
    "fidm": "both (η and θ)",
    "fidm-two-times": "η and two θ: first choices, later ones",
}
"""Parameters, tests and representations in words."""


GROUPS = ("older", "younger", "alcohol use disorder", "control", "students")


def in_words(frame: pl.DataFrame, *columns: str) -> pl.DataFrame:
    """Return the same table with the names in these columns in words."""
    return frame.with_columns(pl.col(name).replace(WORDS) for name in columns)


def draw_values(values: pl.DataFrame) -> Axes:
    """Draw published action values against those of the solved task; misprints are left out."""
    ax = new_axes(4.2, 4.0)
    shown = values.filter(~pl.col("misprint"))
    for look, depth in zip(LOOKS, (1, 2, 3), strict=False):
        chosen = shown.filter(depth=depth)
        words = f"{depth} flight{'s' if depth > 1 else ''} to go"
        ax.plot(
            chosen["ours"], chosen["q"], look.marker, ms=4, mfc="none", mec=look.colour, label=words, zorder=3
        )
    ends = [float(shown["q"].min()), float(shown["q"].max())]  # type: ignore[arg-type]
    ax.plot(ends, ends, color=QUIET, lw=0.8, zorder=2)
    ax.set_xlabel("value of the solved task (fuel)")
    ax.set_ylabel("published value (fuel)")
    ax.legend(frameon=False, fontsize=8)
    quieten(ax)
    return ax


def draw_agreement(people: pl.DataFrame, fits: pl.DataFrame) -> Axes:
    """Draw everybody's η against the β that was published of them."""
    ax = new_axes(4.8, 3.8)
    joined = people.join(fits.select("participant", "model_beta"), on="participant", how="inner")
    for look, group in zip(LOOKS, ("alcohol use disorder", "control"), strict=False):
        chosen = joined.filter(clinical_group=group)
        ax.plot(
            chosen["eta"], chosen["model_beta"], look.marker, color=look.colour, ms=5, alpha=0.8, label=group
        )
    ax.set_xscale("log")
    _plain_ticks(ax.xaxis)
    ax.set_xlabel("action sensitivity η (per unit of fuel)")
    ax.set_ylabel("published β")
    ax.legend(frameon=False, fontsize=8)
    quieten(ax)
    return ax


def draw_groups(people: pl.DataFrame) -> Figure:
    """Draw η and θ of everybody in every group, with the group's median."""
    figure = Figure(figsize=(8.6, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    is_in = {
        name: (pl.col("age_group") == name) | (pl.col("clinical_group") == name) | (pl.col("source") == name)
        for name in GROUPS
    }
    for ax, parameter in ((left, "eta"), (right, "theta")):
        for at, (look, who) in enumerate(zip(LOOKS, is_in.values(), strict=False)):
            values = people.filter(who)[parameter].to_numpy()
            aside = at + np.linspace(-0.22, 0.22, max(2, len(values)))[: len(values)]
            ax.plot(aside, values, look.marker, ms=3.5, mfc="none", mec=look.colour, zorder=3)
            if len(values):
                ax.plot([at - 0.3, at + 0.3], [np.median(values)] * 2, color=INK, lw=2, zorder=4)
        ax.set_xticks(range(len(GROUPS)), [name.replace("alcohol use", "alcohol\nuse") for name in GROUPS])
        ax.set_ylabel(WORDS[parameter] + (" (per unit of fuel)" if parameter == "eta" else " (log seconds)"))
        quieten(ax)
        ax.tick_params(axis="x", labelsize=7)
    left.set_yscale("log")
    _plain_ticks(left.yaxis)
    return figure


def draw_times(times: pl.DataFrame) -> Axes:
    """Draw typical reaction times of first, second and third choices, of older and younger people."""
    ax = new_axes(5.6, 3.6)
    for look, group in zip(LOOKS, ("older", "younger"), strict=False):
        for noise, dashes in (("low", "-"), ("high", (0, (3, 2)))):
            chosen = times.filter(pl.col("group") == group, pl.col("noise") == noise)
            for steps in (3, 2):  # how many flights the mini-block has
                place = pl.col("choice_index").to_physical().cast(pl.Int64)
                line = chosen.filter(pl.col("steps_to_go") + place == steps).with_columns(place=place)
                ax.plot(
                    line["place"] + (0.04 if steps == 3 else -0.04),
                    line["typical_s"],
                    look.marker,
                    ls=dashes,
                    color=look.colour,
                    mfc=look.colour if noise == "low" else "white",
                    ms=5,
                    lw=1.4,
                    label=f"{group}, {noise} noise" if steps == 3 else None,
                )
    ax.set_yscale("log")
    ax.set_yticks([0.3, 0.5, 1, 2, 3, 5], ["0.3", "0.5", "1", "2", "3", "5"])
    ax.minorticks_off()
    ax.set_xticks(range(3), ["first", "second", "third"])
    ax.set_xlabel("choice of a mini-block (two or three flights)")
    ax.set_ylabel("typical reaction time (s)")
    ax.legend(frameon=False, fontsize=8)
    quieten(ax)
    return ax


def draw_ablation(ablation: pl.DataFrame) -> Axes:
    """Draw how well each representation tells older from younger people, with its interval."""
    rows = ablation.filter(metric="auc").reverse()
    ax = new_axes(6.2, 0.6 * rows.height + 0.9)
    place = np.arange(rows.height)
    value, low, high = (rows[name].to_numpy() for name in ("value", "low", "high"))
    ax.errorbar(
        value, place, xerr=[value - low, high - value], fmt="o", color=LOOKS[0].colour, capsize=3, lw=2
    )
    for at, number in zip(place, value, strict=True):
        ax.text(number, at + 0.16, f"{number:.2f}", ha="center", va="bottom", fontsize=8, color=INK)
    ax.axvline(0.5, color=QUIET, lw=0.8, ls="--")
    ax.set_yticks(place, [WORDS[name] for name in rows["representation"]])
    ax.set_ylim(-0.5, rows.height - 0.3)
    ax.set_xlim(min(0.4, float(np.nanmin(np.append(low, value))) - 0.02), 1.02)
    ax.set_xlabel("AUC, older against younger (0.5: chance)")
    quieten(ax)
    return ax


def draw_relations(relations: pl.DataFrame) -> Figure:
    """Draw the rank correlations with the other tests; framed are those that remain after correction."""
    samples = relations["sample"].unique(maintain_order=True).to_list()
    tests = relations["test"].unique(maintain_order=True).to_list()
    figure = Figure(figsize=(8.4, 2.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, parameter in zip(axes, ("eta", "theta"), strict=True):
        grid = np.full((len(samples), len(tests)), np.nan)
        sure = np.zeros(grid.shape, dtype=np.bool_)
        for row in relations.filter(parameter=parameter).iter_rows(named=True):
            at = samples.index(row["sample"]), tests.index(row["test"])
            grid[at] = row["value"]
            sure[at] = row["p_holm"] is not None and row["p_holm"] < 0.05
        ax.imshow(np.ma.masked_invalid(grid), cmap=RESIDUAL_MAP, vmin=-1, vmax=1, aspect="auto")
        for (y, x), value in np.ndenumerate(grid):
            said = "–" if np.isnan(value) else f"{value:+.2f}".replace("-", "−")
            colour = "#ffffff" if np.isnan(value) else _hex((value + 1) / 2)
            ax.text(x, y, said, ha="center", va="center", fontsize=9, color=ink_on(colour))
            if sure[y, x]:
                ax.add_patch(_frame(x, y))
        ax.set_xticks(range(len(tests)), [WORDS[test].replace(" ", "\n") for test in tests])
        ax.set_yticks(range(len(samples)), samples)
        ax.set_title(WORDS[parameter], fontsize=9)
        ax.tick_params(length=0, labelsize=8)
        ax.spines[:].set_color(RULE)
    return figure


def _plain_ticks(axis: Axis) -> None:
    """Numbers of a logarithmic axis as people write them."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def _hex(share: float) -> str:
    return to_hex(RESIDUAL_MAP(share))


def _frame(x: int, y: int) -> Rectangle:
    return Rectangle((x - 0.46, y - 0.46), 0.92, 0.92, fill=False, ec=INK, lw=1.6)
