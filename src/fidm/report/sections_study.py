"""The sections about the study: people, how words became moves, audits, and how the report came about."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np
import polars as pl

from fidm.errors import FidmError, count
from fidm.grounding.review.apply import read_proposed
from fidm.grounding.review.audit import Agreement, AuditScore, agreements, audits, score_audit
from fidm.grounding.review.trail import Trail
from fidm.grounding.review.verdicts import doubt_in_words
from fidm.grounding.store import FOLDER
from fidm.io.columns import count_reasons, say_reasons, say_without
from fidm.model.gaps import forecast, named, omitted, say_counted, say_forecast, say_one_speaker, segment_uses
from fidm.pages import map_scene
from fidm.plot.maps import draw_map, value_field
from fidm.present.numbers import PERCENT, RESIDUALS, in_one_way, sentence
from fidm.present.study import say_agreement
from fidm.present.task import say_best_agent
from fidm.report.opening import Opened, doubtful_weight, reviewer_names
from fidm.report.parts import (
    GROUNDED,
    column,
    column_words,
    figure,
    place_words,
    section,
    status_bar,
    table,
    text_column,
    with_interval,
)
from fidm.tasks.behaviour import worth_of_cells
from fidm.tasks.check import TaskCheck, check_task
from fidm.tasks.grid import DIAGONALS, MOVES
from fidm.tasks.model import TaskModel
from fidm.tasks.sketch import Sketch
from fidm.tasks.solve import solve
from fidm.types import Omission, Values, kept_omissions, omission

NOBODY = (
    "Nobody has audited this grounding. Draw a random sample with fidm audit sample, or judge one in "
    "fidm review, before you rely on it."
)


def audit_tables(opened: Opened) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the tables of all audits and of how reviewers agree, and what there is to say."""
    scored, said = _sheets(opened)
    rows = [_score_row(name, one) for name, one in scored]
    tables, more = _decisions(opened, rows)
    said += more
    if rows:
        tables.insert(
            0,
            table(
                "audits",
                "Audits: random dialogs, judged by a person",
                [
                    text_column("audit"),
                    column("n_dialogs", "dialogs"),
                    *with_interval(
                        "consistent", "without a wrong segment", low="low", high="high", unit=PERCENT
                    ),
                    column("n_segments", "segments"),
                    *with_interval("right", unit=PERCENT),
                ],
                rows,
                note="95 % intervals (Wilson). Segments of a dialog go together, so theirs are a little too "
                "narrow. The paper judged 20 dialogs and found 19 consistent.",
            ),
        )
    elif not tables and not said:
        said.append(NOBODY)
    return tables, said


def _sheets(opened: Opened) -> tuple[list[tuple[str, AuditScore]], list[str]]:
    """The scores of the study's audit sheets, and what is to be said of those that have none."""
    scored, said = [], []
    for i, path in enumerate(sorted((opened.folder / FOLDER).glob("audit-*.csv")), start=1):
        name = f"sheet {i}" if opened.known.is_deidentified else path.name
        try:
            scored.append((name, score_audit(opened.folder, path)))
        except FidmError as error:
            n = len(error.problems)
            why = f"{count(n, 'row')} without a verdict that can be used" if n else "it cannot be read"
            said.append(f"The audit {name} is not in the table: {why}.")
    return scored, said


def _score_row(name: str, one: AuditScore) -> tuple[Any, ...]:
    return (
        name,
        one.n_dialogs,
        one.n_consistent / one.n_dialogs if one.n_dialogs else None,
        *one.dialogs,
        one.n_segments,
        one.n_right / one.n_segments if one.n_segments else None,
        *one.segments,
    )


def _decisions(opened: Opened, rows: list[tuple[Any, ...]]) -> tuple[list[dict[str, Any]], list[str]]:
    """How reviewers agree, and the audits they judged on the review page, which are added to the rows."""
    trail = Trail(opened.folder)
    decisions = trail.decisions
    if not decisions:
        return [], []
    hide = opened.known.is_deidentified
    names = reviewer_names([one.reviewer for one in decisions], hide=hide, secret=opened.secret)
    said = [
        f"{count(len(decisions), 'decision')} by {count(len(names), 'person', 'people')} "
        f"({', '.join(names.values())}) on the review page are taken up in the tables of this report."
    ]
    task = next(
        (one for one in opened.known.tasks if one.fingerprint == opened.provenance.get("task_fingerprint")),
        None,
    )
    if trail.samples and task is not None:
        proposed = read_proposed(opened.folder, task)
        number = {name: i for i, name in enumerate(names)}  # not in the order of names that are hidden
        judged = audits(trail.samples, proposed, decisions)
        for sample, reviewer, score in sorted(judged, key=lambda one: (one[0].number, number[one[1]])):
            rows.append(_score_row(f"{sample.name}, {names[reviewer]}", score))
            if score.n_left:
                left = f"{count(score.n_left, 'segment')} of the sample {sample.name}"
                said.append(f"{names[reviewer]} has not judged {left} yet; dialogs count once judged whole.")
    pairs = agreements(decisions)
    if not pairs:
        return [], said
    return [_agreement_table(pairs, names)], said


def _agreement_table(pairs: Sequence[Agreement], names: Mapping[str, str]) -> dict[str, Any]:
    """A row per pair, in the order of what reviewers are called here, which may be numbers."""
    called, place, rows = list(names.values()), {name: i for i, name in enumerate(names)}, {}
    for one in pairs:
        first, second = sorted((place[one.one], place[one.other]))
        numbers = (one.n, one.agreement, one.low, one.high, one.kappa, one.same_moves)
        rows[first, second] = (called[first], called[second], *numbers)
    return table(
        "agreement",
        "How far reviewers agree",
        [
            text_column("one"),
            text_column("other"),
            column("n", "segments both judged"),
            *with_interval("agreement", "same verdict", low="low", high="high", unit=PERCENT),
            column("kappa", "Cohen's κ"),
            column("same_moves", "same moves", unit=PERCENT),
        ],
        [row for _, row in sorted(rows.items())],
        note="95 % intervals (Wilson). Kappa is undefined where both said the same of everything.",
    )


MOST_SPLITS = 12
"""A column with more different values than this is no table of groups."""

COMPASS = "On the map N is up, S is down, E is right and W is left."
DIAGONAL_COMPASS = "NE is up right, SE is down right, SW is down left and NW is up left."


def overview(opened: Opened) -> dict[str, Any]:
    """Return who is in the study and who is not."""
    known, cohort = opened.known, opened.known.cohort
    said = [f"{_what_they_did(opened)}; {_named_tasks([task.name for task in known.tasks])}."]
    if opened.is_simulated:
        said.append(
            "These people are simulated, and made to resemble the paper's: agreement with it is partly "
            "built in."
        )
    said += [*_left_out(opened), *opened.notes]
    tables = [
        table(
            "numbers",
            "What the study holds",
            [text_column("what"), column("n", "number")],
            [
                ("participants in this report", len(cohort)),
                *([("tasks", len(known.tasks))] if len(known.tasks) > MOST_TASKS else []),
                ("episodes" if known.has_speech else "trials", cohort.n_episodes),
                ("steps" if known.has_speech else "choices", cohort.n_steps),
                *([("segments", cohort.n_segments)] if known.has_speech else []),
            ],
        )
    ]
    groups = _groups(opened)
    tables += [groups] if groups else []
    if opened.excluded.height and not known.is_deidentified:
        columns = [text_column("participant"), text_column("reason")]
        rows = opened.excluded.select("participant", "reason").iter_rows()
        tables.append(table("excluded", "Who is excluded, and why", columns, rows))
    omissions = [
        (one.what + ("s" if one.n != 1 else ""), one.why, one.n, one.of or "everything", named(one.who))
        for one in _omissions(opened)
    ]
    if omissions:
        columns = [
            text_column("what"), text_column("why"), column("n", "number"), text_column("of", "left out of"),
            text_column("who"),
        ]  # fmt: skip
        tables.append(table("left-out", "Left out, and why", columns, omissions))
    return section("overview", "Overview", said, tables=tables)


def _what_they_did(opened: Opened) -> str:
    """How much there is of people: of speech, or of choices alone."""
    cohort = opened.known.cohort
    who = count(len(cohort), "participant")
    if not opened.known.has_speech:
        return f"{who} with {count(cohort.n_episodes, 'trial')} and {count(cohort.n_steps, 'choice')}"
    return (
        f"{who} with {count(cohort.n_episodes, 'episode')}, {count(cohort.n_steps, 'step')} and "
        f"{count(cohort.n_segments, 'segment')} of speech"
    )


MOST_TASKS = 4
"""Of more tasks what holds for all is said once, and the rest is in tables of all."""


def _named_tasks(names: Sequence[str]) -> str:
    """Tasks by their names; where there are many, how many and which are the first and the last."""
    if len(names) <= MOST_TASKS:
        return f"{'task' if len(names) == 1 else 'tasks'}: {', '.join(names)}"
    return f"{len(names)} tasks: {names[0]}, {names[1]}, … {names[-1]}"


def _omissions(opened: Opened) -> list[Omission]:
    """All that was left out on the way here; a de-identified report names neither people nor files."""
    hide, problems = opened.known.is_deidentified, opened.known.cohort.problems
    kept = kept_omissions(opened.provenance)
    excluded = opened.excluded.with_columns(reason=pl.lit("on purpose")) if hide else opened.excluded
    found = [replace(one, who=()) for one in kept] if hide else kept
    for (problem,), rows in problems.group_by("problem", maintain_order=True):
        who = rows["participant"].drop_nulls().unique(maintain_order=True)
        is_there = who.is_in(opened.known.cohort.ids.implode())
        found += omission("participant", str(problem), who.filter(~is_there).to_list())
        found += omission(
            "participant", str(problem), who.filter(is_there).to_list(), of="the episodes concerned"
        )
    status = (
        pl.Series("status", [], dtype=pl.String) if opened.grounded is None else opened.grounded["status"]
    )
    known = opened.known
    return found + omitted(known.cohort, status, known.gaps, excluded, inferred=known.fit.inferred)


def _left_out(opened: Opened) -> list[str]:
    said = []
    if opened.excluded.height and opened.known.is_deidentified:
        n = count(opened.excluded.height, "participant")
        said.append(f"{n} excluded. The reasons are free text, and left out of a de-identified report.")
    elif opened.excluded.height:
        said.append(sentence(say_reasons(count_reasons(opened.excluded))))
    else:
        said.append("Nobody is excluded.")
    cohort = opened.known.cohort
    if cohort.problems.height:
        said.append(f"{say_without(cohort.problems, cohort.ids)} left out because of problems in their data.")
    if opened.grounded is not None:
        uses = segment_uses(opened.known.cohort, inferred=opened.known.fit.inferred)
        said.append(sentence(say_counted(uses, opened.grounded["status"])))
    return [*said, *(sentence(text) for text in opened.known.gaps.say(opened.known.behind.source))]


def _groups(opened: Opened) -> dict[str, Any] | None:
    """How many people of each status are in each part, and how many of them have an estimate of η."""
    people, label = opened.known.cohort.participants, opened.known.label
    split = "split" if "split" in people.columns else None
    keys = list(dict.fromkeys(name for name in (label, split) if name is not None))
    if not keys or any(people[name].n_unique() > MOST_SPLITS for name in keys):
        return None
    people = people.with_columns(with_estimate=~np.isnan(opened.known.profile.estimate[:, 0]))
    grouped = people.group_by([pl.col(name).cast(pl.String) for name in keys])
    counted = grouped.agg(pl.len(), pl.sum("with_estimate")).sort(keys)
    columns = [text_column(name, column_words(name)) for name in keys]
    columns += [column("len", "participants"), column("with_estimate", "with an estimate of η")]
    return table("groups", "Groups", columns, counted.iter_rows())


# ---------------------------------------------------------------------- tasks


def task_section(opened: Opened) -> dict[str, Any]:
    """Return what the check says of every task, with its map and its values.

    Of more than :data:`MOST_TASKS` tasks there is a row each, what holds for several is said once, and the
    first few are drawn.
    """
    known, tables, figures = opened.known, [], []
    checked: list[tuple[TaskModel, TaskCheck]] = []
    many, drawn = len(known.tasks) > MOST_TASKS, 0
    for i, task in enumerate(known.tasks):
        if opened.asked.on_progress:
            opened.asked.on_progress("checking tasks", i, len(known.tasks))
        found = check_task(task, vary=False)
        if _in_many_trials(opened, task):
            sure = tuple(one for one in found.findings if one.code != "little_information")
            found = replace(found, findings=sure)
        checked.append((task, found))
        if not many:
            tables += _task_tables(task, found, i)
        if not task.has_places or (many and drawn == MOST_DRAWN):
            continue
        drawn += 1
        values = solve(task)
        if task.grid is not None:
            tables += [_place_table(task, i)] if many else []
            figures.append(_map_figure(task, i))
        figures.append(_value_figure(task, values, i))
        tables.append(_value_table(task, values, i))
    said = _said_once(checked) if many else [text for one in checked for text in _task_words(*one)]
    title = "Task" if len(checked) == 1 else "Tasks"
    first = [_row_each(checked), *_all_tasks(checked)] if many else []
    return section("task", title, said, tables=[*first, *tables], figures=figures)


def _in_many_trials(opened: Opened, task: TaskModel) -> bool:
    """Whether most people did several episodes, so that what a single one tells does not matter."""
    cohort = opened.known.cohort
    return bool(len(cohort)) and float(np.median(np.diff(cohort.episode_offsets))) > 2 and task.grid is None


def _said_once(checked: Sequence[tuple[TaskModel, TaskCheck]]) -> list[str]:
    """What is to be said of tasks; what holds for several of them once."""
    of_text: dict[str, list[str]] = {}
    for task, found in checked:
        for text in _task_words(task, found):
            plain = text.removeprefix(f"{task.name}: ").replace("The task can", "They can")
            of_text.setdefault(plain, []).append(task.name)
    said = []
    for text, names in of_text.items():
        every = len(names) == len(checked)
        who = f"All {len(checked)} tasks" if every else _few_tasks(names)
        said.append(text if text == COMPASS and every else f"{who}: {text}")
    return said


def _few_tasks(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= MOST_TASKS else f"{len(names)} tasks ({names[0]}, … {names[-1]})"


def _all_tasks(checked: Sequence[tuple[TaskModel, TaskCheck]]) -> list[dict[str, Any]]:
    """What the check found, and how much goals are worth, of all tasks in a table each."""
    of_finding: dict[tuple[str, str], list[str]] = {}
    goals = []
    for task, found in checked:
        for one in found.findings:
            text = in_one_way(f"{one.says} {one.advice}".strip())
            of_finding.setdefault((one.level, text), []).append(task.name)
        named = _place_names(task)
        goals += [
            (task.name, place_words(goal.goal, named), goal.typical, goal.worst, goal.incomplete)
            for goal in found.goals
            if not np.isnan([goal.typical, goal.worst, goal.incomplete]).all()
        ]
    rows = [
        (level, "all" if len(names) == len(checked) else _few_tasks(names), text)
        for (level, text), names in of_finding.items()
    ]
    tables = [
        table(
            "findings",
            "What the checks found",
            [text_column("level"), text_column("tasks"), text_column("finding")],
            rows or [("–", "all", "Nothing to be said against them.")],
        )
    ]
    if goals:
        tables.append(
            table(
                "goals",
                "By how much each goal is worth more than walking on",
                [text_column("task"), text_column("goal"), column("typical"), column("worst", "at worst"),
                 column("incomplete", "earlier goals missing")],
                goals,
                note="In units of reward.",
            )
        )  # fmt: skip
    return tables


def _map_figure(task: TaskModel, i: int) -> dict[str, Any]:
    return figure(
        f"map-{i}",
        f"The map of {task.name}",
        draw_map(task),
        alt=f"Map of the task {task.name} with its walls, shelves, start and end.",
        table=f"places-{i}",
    )


def _value_figure(task: TaskModel, values: Values, i: int) -> dict[str, Any]:
    return figure(
        f"value-{i}",
        f"What places are worth at the start of {task.name}",
        value_field(task, values),
        alt=f"Map of {task.name}; darker or lighter cells are worth more at the start.",
        table=f"values-{i}",
    )


MOST_DRAWN = 3
"""Of more than :data:`MOST_TASKS` tasks, so many are drawn."""


def _row_each(checked: Sequence[tuple[TaskModel, TaskCheck]]) -> dict[str, Any]:
    """A row per task: whether it can be used, and how large it is."""
    rows = [
        (one.task, "yes" if one.usable else "no", one.n_states, one.n_actions, one.n_pairs,
         one.fewest_actions, one.gamma, one.tau)
        for _, one in checked
    ]  # fmt: skip
    columns = [text_column("task"), text_column("usable"), column("states"), column("actions"),
               column("choices", "legal choices"), column("fewest", "fewest actions to the end"),
               column("gamma"), column("tau")]  # fmt: skip
    return table("tasks", "Tasks", columns, rows)


def _task_words(task: TaskModel, found: TaskCheck) -> list[str]:
    verdict = "can be used" if found.usable else "cannot be used: what follows says why"
    said = [
        f"{task.name}: {found.n_states:,} states, {found.n_actions} actions and {found.n_pairs:,} legal "
        f"choices. The task {verdict}. gamma {found.gamma:g}, tau {found.tau:g}, normaliser "
        f"{found.normaliser}.",
        say_best_agent(found),
    ]
    if task.grid is not None and set(MOVES) <= set(task.actions):
        said.append(COMPASS)
        if set(DIAGONALS) <= set(task.actions):
            said.append(DIAGONAL_COMPASS)
    return said


def _task_tables(task: TaskModel, found: TaskCheck, i: int) -> list[dict[str, Any]]:
    rows = [(one.level, in_one_way(f"{one.says} {one.advice}".strip())) for one in found.findings]
    named = _place_names(task)
    tables = [
        table(
            f"findings-{i}",
            f"What the check of {task.name} found",
            [text_column("level"), text_column("finding")],
            rows or [("–", "Nothing to be said against it.")],
        ),
        table(
            f"goals-{i}",
            f"By how much each goal of {task.name} is worth more than walking on",
            [text_column("goal"), column("typical"), column("worst", "at worst"),
             column("incomplete", "earlier goals missing")],
            [(place_words(goal.goal, named), goal.typical, goal.worst, goal.incomplete)
             for goal in found.goals],
            note="In units of reward.",
        ),
    ]  # fmt: skip
    return tables if task.grid is None else [*tables, _place_table(task, i)]


def _place_table(task: TaskModel, i: int) -> dict[str, Any]:
    """Where the places of a task are."""
    assert task.grid is not None  # noqa: S101
    grid = task.grid.grid
    places = []
    for symbol, said in {**task.grid.spec.place_names, **task.grid.spec.ground_names}.items():
        rows_of, columns_of = (grid.symbol == symbol).nonzero()
        places.append((said, len(rows_of), int(rows_of.min()) + 1, int(columns_of.min()) + 1))
    return table(
        f"places-{i}",
        f"Places of {task.name}",
        [text_column("place"), column("cells"), column("row", "first row"), column("column", "first column")],
        places,
    )


def _place_names(task: TaskModel) -> dict[str, str]:
    """What each place is called on the map, by its name in actions and goals."""
    if task.grid is None:
        return {}
    return {one["name"]: one["words"] for one in map_scene(task)["labels"]}


def _value_table(task: TaskModel, values: Values, i: int) -> dict[str, Any]:
    """What each cell, or each place of a task with coordinates, is worth at the start."""
    if task.grid is None:
        sketch = Sketch.of(task)
        known, first = np.unique(sketch.place, return_index=True)
        places = [
            (task.describe(state), *task.coordinates[state].tolist(), float(values.v[state]))
            for state in first[known >= 0].tolist()
            if task.coordinates is not None
        ]
        return table(
            f"values-{i}",
            f"What standing in each place of {task.name} is worth at the start",
            [text_column("place"), column("x"), column("y"), column("value")],
            places,
            note="In units of reward, in the first state at each place.",
        )
    grid, worth = task.grid.grid, worth_of_cells(task, values)
    known = ~np.isnan(worth)
    cells = zip(
        *((numbers[known]).tolist() for numbers in (grid.row + 1, grid.column + 1, worth)), strict=True
    )
    seen = "" if known.all() else " Cells where nobody can be without having seen hidden cells are left out."
    return table(
        f"values-{i}",
        f"What standing in each cell of {task.name} is worth at the start",
        [column("row"), column("column"), column("value")],
        cells,
        note=f"In units of reward, with nothing completed yet.{seen}",
    )


# ---------------------------------------------------------------------- grounding


EFFORT_COUNTS = (
    "Effort counts the moves of every segment that has any, also those that a planner filled in and those of "
    "segments that await review."
)
"""The rule of effort, where words became moves."""


def grounding_section(opened: Opened) -> dict[str, Any]:
    """Return how the words became moves, how sure that is, and what people who looked at it found."""
    title = "From words to moves"
    if opened.grounded is None:
        why = (
            "The steps of this study were not made from dialogs by fidm ground, so there is nothing to say "
            "about how words became moves."
            if not opened.provenance
            else "The grounding of this study cannot be used here; the overview says why."
        )
        return section("grounding", title, [why])
    segments = opened.grounded
    counts = Counter(segments["status"].fill_null("unknown").to_list())
    ordered = {
        name: counts[name] for name in (*GROUNDED, *sorted(set(counts) - set(GROUNDED))) if counts[name]
    }
    said = [_grounder_words(opened)]
    if agreement := opened.provenance.get("agreement"):
        said.append(say_agreement(agreement, opened.provenance.get("check_share", 1.0)))
    tables = []
    figures = []
    if ordered:
        total = sum(ordered.values())
        tables.append(
            table(
                "statuses",
                "Segments by what became of them",
                [text_column("status"), column("n", "segments"), column("share", unit=PERCENT)],
                [(GROUNDED.get(name, name), n, n / total) for name, n in ordered.items()],
            )
        )
        figures.append(
            figure(
                "status-bar",
                "What became of the segments",
                status_bar(ordered),
                alt="One bar: "
                + ", ".join(f"{GROUNDED.get(k, k)} {100 * n / total:.0f} %" for k, n in ordered.items()),
                table="statuses",
            )
        )
    tables += _doubt_table(segments)
    audits, told = audit_tables(opened)
    counted = say_forecast(forecast(opened.known.cohort, inferred=opened.known.fit.inferred))
    said += [f"{counted}.", *_inferred_words(opened), EFFORT_COUNTS, *told]
    if alone := (opened.provenance or {}).get("one_speaker", 0):
        said.append(f"{say_one_speaker(alone)}.")
    tables += audits
    if (opened.folder / FOLDER / "problems.csv").is_file():
        tables += _problem_table(opened)
    return section("grounding", title, said, tables=tables, figures=figures)


def _grounder_words(opened: Opened) -> str:
    how = opened.provenance
    said = f"The dialogs were read by the grounder “{how.get('grounder', 'unknown')}”"
    asked = how["model"] if isinstance(how.get("model"), Mapping) else how
    if isinstance(asked.get("model"), str):
        said += f" with the model {asked['model']}"
    if isinstance(asked.get("template_sha256"), str):
        said += f" and the prompt {asked['template_sha256'][:12]}"
    return (
        f"{said}. It reads a segment of talk as a route program; the map, not the grounder, turns that into "
        f"legal moves.{_doubtful_words(opened)}"
    )


def _doubtful_words(opened: Opened) -> str:
    """What moves count that nobody can be sure of, as the grounding itself says."""
    weight = doubtful_weight(opened.provenance)
    if weight is None:
        return ""
    if weight == 1:
        return " Moves of segments that need review count like all others."
    how = "do not count" if weight == 0 else f"count with weight {weight:g}"
    who = "anybody's action sensitivity until somebody has looked"
    return f" Moves of segments that need review {how} in {who}."


def _inferred_words(opened: Opened) -> list[str]:
    actions = opened.known.found.actions
    n = int(actions["inferred"].sum())
    if not n:
        return []
    return [
        f"{100 * n / actions.height:.1f} % of all steps were filled in by a planner and not said "
        "(“I go to the vegetables”). "
        f"In action sensitivity they count with weight {opened.known.fit.inferred:g}."
        + ("" if opened.known.other_way is None else " Everybody's estimates have it the other way too.")
    ]


def _doubt_table(segments: pl.DataFrame) -> list[dict[str, Any]]:
    waiting = segments.filter(pl.col("status") == "needs_review")["doubts"].drop_nulls()
    counts = Counter(code for codes in waiting for code in codes.split())
    if not counts:
        return []
    rows = [(doubt_in_words(code), n, n / segments.height) for code, n in counts.most_common()]
    return [
        table(
            "doubts",
            "Why a person should look at segments",
            [text_column("doubt"), column("n", "segments"), column("share", "of all", unit=PERCENT)],
            rows,
            note="A segment may have several.",
        )
    ]


def _problem_table(opened: Opened) -> list[dict[str, Any]]:
    """What was wrong with dialogs or traces: sentences of the package, counted."""
    path = opened.folder / FOLDER / "problems.csv"
    try:
        found = pl.read_csv(path, infer_schema=False, columns=["participant", "problem"])
    except (OSError, pl.exceptions.PolarsError):
        return []
    counted = found.group_by("problem").agg(pl.col("participant").n_unique().alias("n"))
    return [
        table(
            "grounding-problems",
            "What was wrong with dialogs or traces",
            [text_column("problem"), column("n", "dialogs")],
            counted.sort("n", "problem", descending=[True, False]).iter_rows(),
        )
    ]


LIBRARIES = ("numpy", "scipy", "polars", "scikit-learn", "matplotlib", "jinja2")

SHAREABLE = (
    "grounder", "fidm", "fidm_version", "rules_version", "rules", "model", "check_share", "model_weight",
    "agreement", "model_file_sha256", "template_sha256", "schema_sha256", "languages_sha256",
    "learned_sha256", "settings", "task", "task_fingerprint", "counting", "segmenter", "segmenting",
    "weighing", "language", "context_turns", "n_steps", "n_segments", "answers",
)  # fmt: skip
"""What a de-identified report may say of a grounding: no names of people or files, and no hash with them."""

METHODS = (
    "Unexpectedness is −log of the probability of an action under the person's own fitted policy: 0 is an "
    "action nobody would be surprised at, such as the only one there was; ∞ is one that somebody who only "
    "ever chose best actions would never take.",
    RESIDUALS,
    "Estimates describe how a person went through this task on that day. They depend on the task, on the "
    "people they are compared with and on how speech was read as moves.",
)


OF_TRIALS = (
    "Estimates describe how a person chose in these tasks on that day. They depend on the tasks and on the "
    "people they are compared with."
)
"""What estimates are of, where nobody spoke."""


def method_section(opened: Opened, *, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the notes on methods, and all that is needed to make the report again."""
    record = opened.known.found.record
    rows: list[tuple[str, Any]] = [
        ("fidm", record.version),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in LIBRARIES),
        *((f"task {name}", hash_) for name, hash_ in record.tasks.items()),
        *([] if opened.known.is_deidentified else [("data", record.data)]),  # a hash of people's names, too
        *((f"fit: {key}", value) for key, value in _flat(record.settings)),
        *((f"report: {key}", value) for key, value in _flat(settings)),
    ]
    tables = [table("provenance", "How this report came about", _COLUMNS, rows)]
    how: Mapping[str, Any] = {
        key: value for key, value in opened.provenance.items() if key not in ("omissions", "unmatched")
    }
    if opened.known.is_deidentified:
        how = {key: how[key] for key in SHAREABLE if key in how}
    if how:
        tables.append(table("grounding-provenance", "How words became moves", _COLUMNS, _flat(how)))
    has_speech = opened.known.has_speech
    said = [
        METHODS[0],
        _counting_words(opened),
        "" if opened.grounded is None else EFFORT_COUNTS,
        *(METHODS[1:] if has_speech else [OF_TRIALS]),
        f"What people share was {opened.source.rstrip('.')}.",
    ]
    return section("method", "Methods and provenance", said, tables=tables)


def _counting_words(opened: Opened) -> str:
    """Which actions count, as this fit and this grounding have it."""
    inferred, doubtful = opened.known.fit.inferred, doubtful_weight(opened.provenance)
    if not opened.known.has_speech and not opened.known.found.actions["inferred"].any():
        return (
            "Actions that the task leaves out do not count in action sensitivity; such steps are hatched. A "
            "choice with one option counts, though it says nothing about η."
        )
    weights = {"that a planner filled in": inferred}
    if doubtful is not None:
        after = (
            "stated after a segment that needs review or was rejected, until the place and what is completed "
            "are known again"
        )
        weights |= {"of segments that need review": doubtful, after: doubtful}
    never = [what for what, weight in weights.items() if weight == 0]
    less = [f"those {what} with weight {weight:g}" for what, weight in weights.items() if 0 < weight < 1]
    said = "Leaving, and waiting where the task leaves it out, do not count in action sensitivity"
    said += f", nor do actions {', or '.join(never)}; " if never else "; "
    said += "such steps are hatched. A step with one legal action counts, though it says nothing about η."
    return said + (f" Other actions count less: {', and '.join(less)}." if less else "")


_COLUMNS = (text_column("what"), text_column("value"))


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Settings within settings as rows."""
    for key, value in values.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{name}: ")
        elif isinstance(value, list | tuple):
            yield name, ", ".join(map(str, value))
        else:
            yield name, f"{value:g}" if isinstance(value, float) else value
