"""The JUSThink Dialogue and Actions Corpus: pairs of children build a railway network and talk about it.

A participant is a child, named by team and place ("07A"). An episode is an attempt, or the part of one
between two loadings of earlier solutions, since a loading puts another board on the table. Both children of a
team have all steps of it, but those of the other child, and submissions, have the weight 0: they are walked
through and do not count. A submission needs both children, and is a question too: the robot then says how far
they are from the least cost, and they may go on. Segments are the turns at the board of the ten teams that
were transcribed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fidm.cohort import Cohort, offsets_of
from fidm.errors import DataError
from fidm.types import Progress
from fidm_studies.dataset import Dataset, Loaded, Source, read_manifest, require_files, visible_files
from fidm_studies.justhink.network import TASK, Network, network_task, read_network, set_costs, set_parts
from fidm_studies.justhink.replay import (
    CHILDREN,
    LAID_TWICE,
    LOG_SCHEMA,
    NOT_JOINED,
    OTHER_COST,
    REMOVED_TWICE,
    Replayed,
    read_table,
    read_transcript,
    replay,
    robot_lag,
    spoken,
)

NETWORK = "metadata/network.json"
TESTS = {
    "before": "test_responses/justhink19_pretest.csv",
    "after": "test_responses/justhink19_posttest.csv",
}
"""The files with children's answers before and after the activity."""

_TEAM = re.compile(r"[0-9]{1,4}")

N_ITEMS = 10
"""How many questions each test has."""

OBSERVED = ("n_moves", "role", "duration_s", "n_characters", "n_turns", "pause_s")


def read(folder: Path, on_progress: Progress) -> Loaded:
    """Read the logs, the transcripts and the tests from a folder."""
    paths = visible_files(folder / "logs", "justhink19_log_*.csv")
    if not paths:
        raise DataError("There is no log of a team (logs/justhink19_log_*.csv).", source=str(folder))
    require_files([folder / NETWORK, *(folder / test for test in TESTS.values())])
    network = read_network(folder / NETWORK)
    parts = set_parts(network)
    if parts[-1] != 1:
        raise DataError("All tracks together do not join all mines.", source=NETWORK)
    replays, speech, clocks, lost = {}, {}, [], 0
    for i, path in enumerate(paths):
        on_progress("teams", i, len(paths))
        number = _team_of(path)
        log = read_table(path, LOG_SCHEMA)
        replays[number] = replay(log, network, parts, source=path.name)
        said = folder / "transcripts" / f"justhink19_transcript_{number}.csv"
        if said.exists():
            transcript = read_transcript(said)
            speech[number], outside = spoken(replays[number].turns, transcript)
            lost += outside
            clocks += [(int(number), lag) for lag in robot_lag(transcript, log)]
    on_progress("teams", len(paths), len(paths))
    people = _people(folder, list(replays))
    cohort = _cohort(people, replays, speech)
    tables = {
        "network": _network_table(network),
        "submissions": pl.concat(one.submissions for one in replays.values()),
        "slips": pl.concat(one.slips for one in replays.values()),
        "edits": _edits(replays, parts),
        "clocks": pl.DataFrame(clocks, schema={"team": pl.Int64, "lag_s": pl.Float64}, orient="row"),
        "logged": pl.DataFrame(
            {
                "n_edits": [sum(one.n_edits for one in replays.values())],
                "n_loads": [sum(one.n_loads for one in replays.values())],
                "n_utterances_outside": [lost],
                "least_cost": [float(set_costs(network)[parts == 1].min())],
            }
        ),
    }
    return Loaded(
        dataset=DATASET,
        tasks=(network_task(network, parts),),
        cohort=cohort,
        tables=tables,
        notes=_notes(tables, cohort, len(speech)),
    )


def _network_table(network: Network) -> pl.DataFrame:
    return pl.DataFrame({"track": network.tracks, "cost": network.costs})


def _edits(replays: Mapping[str, Replayed], parts: NDArray[np.int8]) -> pl.DataFrame:
    """Every possible change in the order of the teams: whose it was, what was at stake, what came of it."""
    key = ["team", "attempt", "part"]
    steps = pl.concat(
        one.steps.with_columns(
            participant=pl.lit(team) + pl.col("child"),
            episode=pl.Series(_names(one.steps), dtype=pl.String),
            step=pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over(key),
        )
        for team, one in replays.items()
    ).filter(pl.col("child").is_not_null())
    laid = pl.col("verb") == "adds"
    joins = parts[steps["after"].to_numpy()] != parts[steps["state"].to_numpy()]
    # within a part, the next thing that can happen to a track that was laid is that it is removed
    next_removed = (pl.col("verb").shift(-1) == "removes").over([*key, "action"]).fill_null(value=False)
    return steps.with_columns(
        closes_a_circle=laid & ~pl.Series(joins),
        edits_before=pl.int_range(pl.len()).over(key),
        edits_after=pl.int_range(pl.len(), 0, -1).over(key) - 1,
        removed_later=laid & next_removed,
    )


def _people(folder: Path, teams: list[str]) -> pl.DataFrame:
    """One row per child: right answers before and after, and the gain, absolute and relative."""
    scores = {when: _scores(folder / path) for when, path in TESTS.items()}
    rows: list[dict[str, Any]] = []
    for team in teams:
        for child in CHILDREN:
            before, after = (scores[when].get((int(team), child)) for when in ("before", "after"))
            rows.append(
                {
                    "participant": f"{team}{child}",
                    "team": team,
                    "child": child,
                    "test_before": before,
                    "test_after": after,
                    "gain": None if before is None or after is None else after - before,
                    "relative_gain": None
                    if before is None or after is None
                    else relative_gain(before, after),
                }
            )
    whole = {"test_before": pl.Int64, "test_after": pl.Int64, "gain": pl.Int64, "relative_gain": pl.Float64}
    return pl.DataFrame(rows, schema_overrides=whole)


def relative_gain(before: int, after: int, of: int = N_ITEMS) -> float:
    """Return how much of what could be gained was gained, or of what could be lost was lost.

    It is (after − before) / (of − before) for a gain and (after − before) / before for a loss, as the authors
    have it in their analyses.

    Examples
    --------
    >>> relative_gain(6, 8), relative_gain(8, 6), relative_gain(10, 10)
    (0.5, -0.25, 0.0)
    """
    if after == before:
        return 0.0
    return (after - before) / (of - before if after > before else before)


def _scores(path: Path) -> dict[tuple[int, str], int]:
    """How many answers of each child are those of the key."""
    columns = [f"q{item}_{child}" for child in CHILDREN for item in range(1, N_ITEMS + 1)]
    table = read_table(path, dict.fromkeys(["team_no", *columns], pl.String), separator=",")
    keys = table.filter(pl.col("team_no") == "key")
    if keys.height != 1:
        raise DataError("The test needs one row 'key' with the right answers.", source=path.name)
    found: dict[tuple[int, str], int] = {}
    for number, row in enumerate(table.iter_rows(named=True), 1):
        if row["team_no"] == "key":
            continue
        if not _TEAM.fullmatch(row["team_no"]):
            raise DataError(f"The team of row {number} is not a number.", source=path.name)
        team = int(row["team_no"])
        if (team, CHILDREN[0]) in found:
            raise DataError(f"Row {number} is of a team that has a row already.", source=path.name)
        for child in CHILDREN:
            right = [row[name] == keys[name][0] for name in columns if name.endswith(child)]
            found[team, child] = sum(right)
    return found


def _team_of(path: Path) -> str:
    """The number of a team, as the name of its log says."""
    found = path.stem.rsplit("_", 1)[1]
    if not _TEAM.fullmatch(found):
        raise DataError("Its name does not say of which team it is.", source=path.name)
    return found


def _cohort(
    people: pl.DataFrame, replays: Mapping[str, Replayed], speech: Mapping[str, pl.DataFrame]
) -> Cohort:
    """Everybody's steps and segments, child after child."""
    key = ["attempt", "part"]
    episodes, steps, segments, of_episode = [], [], [], []
    for team, child in people.select("team", "child").iter_rows():
        own = replays[team].turns.select(key).unique(maintain_order=True).with_row_index("episode")
        own = own.with_columns(pl.col("episode").cast(pl.Int64))
        walked = (
            replays[team]
            .steps.join(own, on=key, maintain_order="left")
            .with_columns(
                weight=(pl.col("child") == child).fill_null(value=False).cast(pl.Float64), own=pl.lit(-1)
            )
        )
        talk = speech.get(team)
        counts = np.zeros(own.height, dtype=np.int64)
        if talk is not None:
            talk = talk.filter(pl.col("child") == child).join(own, on=key, maintain_order="left")
            talk = talk.with_columns(own=pl.int_range(pl.len()).over("episode"))
            counts = np.bincount(talk["episode"].to_numpy(), minlength=own.height)
            segments.append(
                talk.select(pl.col("turn").cast(pl.String).alias("segment"),
                            pl.col("n_edits").cast(pl.Int32).alias("n_moves"), *OBSERVED[1:])
            )  # fmt: skip
            walked = walked.drop("own").join(
                talk.select("episode", "turn", "own"), on=["episode", "turn"], how="left",
                maintain_order="left",
            )  # fmt: skip
        episodes.append(own.with_columns(n_steps=_counted(walked["episode"], own.height)))
        of_episode.append(counts)
        steps.append(walked)
    every, walked = pl.concat(episodes), pl.concat(steps, how="diagonal_relaxed")
    step_offsets = offsets_of(every["n_steps"].to_numpy())
    empty = pl.DataFrame(schema={"segment": pl.String, "n_moves": pl.Int32})
    return Cohort(
        participants=people,
        episodes=pl.DataFrame(
            {"episode": _names(every), "task": [TASK] * every.height}, schema_overrides={"task": pl.String}
        ),
        episode_offsets=offsets_of([one.height for one in episodes]),
        step_offsets=step_offsets,
        state=walked["state"].to_numpy().astype(np.int32),
        action=walked["action"].to_numpy().astype(np.int32),
        end_state=_ends(walked["after"].to_numpy(), step_offsets),
        segments=pl.concat(segments) if segments else empty,
        segment_offsets=offsets_of(np.concatenate(of_episode)),
        weight=walked["weight"].to_numpy().copy(),
        segment=walked["own"].fill_null(-1).to_numpy().astype(np.int32),
    )


def _counted(episode: pl.Series, n: int) -> pl.Series:
    return pl.Series(np.bincount(episode.to_numpy(), minlength=n))


def _names(episodes: pl.DataFrame) -> list[str]:
    """An attempt's number; with a point and the number of the part, from the second part on."""
    return [str(a) if p == 1 else f"{a}.{p}" for a, p in episodes.select("attempt", "part").iter_rows()]


def _ends(after: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """The board after each episode's last step; unknown where an episode has no step."""
    ends = np.full(len(offsets) - 1, -1, dtype=np.int32)
    some = np.flatnonzero(np.diff(offsets) > 0)
    ends[some] = after[offsets[some + 1] - 1]
    return ends


def _notes(tables: Mapping[str, pl.DataFrame], cohort: Cohort, n_transcribed: int) -> tuple[str, ...]:
    slips = tables["slips"]["slip"].to_list()
    logged, sent = tables["logged"].row(0, named=True), tables["submissions"]
    laid, removed = slips.count(LAID_TWICE), slips.count(REMOVED_TWICE)
    return (
        f"{laid + removed:,} of {logged['n_edits']:,} logged changes are not possible on the replayed board "
        f"and were left out: {laid} lay a track that lies already, {removed} remove one that does not lie. "
        "An event before each was not logged; the replayed board is right about that track again from there "
        "on.",
        f"{sent.height - slips.count(OTHER_COST):,} of {sent.height:,} submitted costs are those of the "
        "replayed board; at the others a track too many or too few lies on it. Their changes were kept.",
        f"{slips.count(NOT_JOINED)} submissions were left out because the replayed board does not join all "
        "mines.",
        f"{logged['n_loads']:,} times an earlier solution was put on the board; a new episode begins there.",
        f"{n_transcribed} teams were transcribed; {logged['n_utterances_outside']} utterances of children "
        "begin after the last logged event and belong to no turn.",
        f"Children without a test before or after the activity: {cohort.participants['gain'].null_count()}.",
    )


_COMMIT = "1f45c7f5364dff70dd3a5b4200950050f1a4cbf0"

DATASET = Dataset(
    name="justhink",
    title="JUSThink Dialogue and Actions Corpus",
    folder="justhink_dialogue_actions",
    summary="Pairs of children built a railway network of least cost on two tablets while talking; every "
    "track laid or removed was logged, and ten pairs were transcribed with times.",
    people="78 children of 9 to 12 years in 39 pairs, 20 of them with speech",
    licence="CC BY 4.0",
    licence_url="https://creativecommons.org/licenses/by/4.0/",
    terms="The files may be used and shared, also changed, by whoever names their authors and this licence.",
    citation=(
        "Norman, U., Dinkar, T., Bruno, B., & Clavel, C. (2022). Studying alignment in a collaborative "
        "learning activity via automatic methods: The link between what we say and do. Dialogue & Discourse, "
        "13(2), 1–48. https://doi.org/10.5210/dad.2022.201",
        "Norman, U., Dinkar, T., Nasir, J., Bruno, B., Clavel, C., & Dillenbourg, P. (2021). JUSThink "
        "Dialogue and Actions Corpus (v1.0.0) [Data set]. Zenodo. https://doi.org/10.5281/zenodo.4627104",
        "Nasir, J., Norman, U., Bruno, B., & Dillenbourg, P. (2020). When positive perception of the robot "
        "has no effect on learning. RO-MAN 2020, 313–320. https://doi.org/10.1109/RO-MAN47096.2020.9223343",
    ),
    sources=(
        Source(
            home="https://github.com/chili-epfl/justhink-dialogue-and-actions-corpus",
            version=_COMMIT,
            base_url="https://raw.githubusercontent.com/chili-epfl/justhink-dialogue-and-actions-corpus/"
            f"{_COMMIT}/",
            within="",
        ),
    ),
    manifest=read_manifest("justhink.txt"),
    read=read,
)
