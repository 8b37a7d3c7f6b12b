"""Defaults and options that verbs and the functions behind them share, and nothing slow to import."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

MAX_PEOPLE = 20_000
"""What people share is learned from at most so many of them unless told otherwise."""

LABEL, NORMAL = "diagnosis", "normal"
"""The column with people's status and the status of healthy people, unless others are named."""

SCORE = "score_total"
"""The column with the total score, unless another is named."""

FOLDS, REPEATS = 5, 5
"""Into how many parts people are cut, and how often that is repeated."""

PERMUTATIONS = 100
"""How often labels are scrambled."""

BOOTSTRAP, LOCALIZE_BOOTSTRAP = 1_000, 2_000
"""How often participants are resampled for intervals of reliability, and of localisation."""


@dataclass(frozen=True, kw_only=True)
class GroundOptions:
    """How dialogs are grounded; what is left out is as grounding.toml says.

    Parameters
    ----------
    talks
        Where the dialogs are; by default the folder talks in the study.
    task
        A built-in task or the path of a task file; by default the one study.toml names.
    by
        Who reads the dialogs: rules, a language model on this machine (llm), the model where rules are unsure
        (hybrid), or a grounder of another package; see fidm list grounders.
    language
        The dialogs' language (see fidm list languages) or a language file; by default each file's own.
    roles
        A file that says which speaker is the participant and which the assessor.
    endpoint
        The address of the language model's server.
    model
        The name of the language model.
    samples
        How many answers to take from the language model; different ones are kept as alternatives.
    workers
        How many dialogs are read at the same time (llm and hybrid).
    allow_remote
        Allow a server on another machine. What participants said then leaves this one.
    skip_bad
        Leave out dialogs that cannot be read, and list what is wrong with them.
    """

    talks: Path | None = None
    task: str | None = None
    by: str | None = None
    language: str | None = None
    roles: Path | None = None
    endpoint: str | None = None
    model: str | None = None
    samples: int | None = None
    workers: int | None = None
    allow_remote: bool = False
    skip_bad: bool = False


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """How people are fitted, from whom what they share is learned, and where it is written.

    Parameters
    ----------
    method
        eb shrinks every estimate by what people are like; mle takes each alone, as in the paper.
    population
        random fits what people share with an intercept per person; pooled as if all were one (the paper).
    joint
        Learn one prior over all parameters together.
    regress
        What the mean of people's parameters depends on, as a formula over columns of the participants:
        "age + C(group)"; or one for each of some parameters: "duration ~ age; turns ~ age + C(sex)".
    cluster
        A column of the participants whose values, such as sites, may go together.
    lapse
        The share of choices made at random: a number, or "estimate". By default eb estimates it, mle takes 0.
    inferred
        How much a move counts that a planner filled in (column "inferred" of the steps): from 0, the default,
        which leaves such moves out, to 1, like any other. Where there are such moves, the sensitivity is also
        estimated the other way: with all moves, or with 1 without the inferred ones.
    draws
        Average over so many sampled groundings of the dialogs, so that intervals carry the grounding's doubt.
        0 takes the most probable grounding, with moves in doubt left out.
    seed
        The same seed gives the same draws.
    split
        Learn from the participants with this value of "split"; by default from "train" where there is a
        split, else from everybody. "all" learns from everybody. Everybody is profiled.
    use
        A fit.json to profile people with, instead of learning from this study.
    max_people
        Learn from at most so many participants.
    workers
        Threads; by default one per processor. Changes no number.
    out
        Where to write; by default into the study folder.
    """

    method: Literal["eb", "mle"] = "eb"
    population: Literal["random", "pooled"] = "random"
    joint: bool = False
    regress: str | None = None
    cluster: str | None = None
    lapse: str | None = None
    inferred: float | None = None
    draws: int = 0
    seed: int = 1
    split: str | None = None
    use: Path | None = None
    max_people: int = MAX_PEOPLE
    workers: int | None = None
    out: Path | None = None


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """What the whole line is asked for.

    Parameters
    ----------
    label
        The participants' column with their status.
    normal
        The status of healthy people, who are told from all others.
    seed
        The same seed gives the same numbers.
    skip_bad
        Leave out dialogs and participants whose data have problems, instead of refusing the study.
    skip
        What is left out where data have problems: the participant, the episode, or the rest of the episode
        ("episode" and "rest" imply --skip-bad).
    again
        Do every step again, even if it is up to date.
    workers
        Threads and processes; by default one per processor. Changes no number.
    """

    label: str = LABEL
    normal: str = NORMAL
    seed: int = 1
    skip_bad: bool = False
    skip: Literal["participant", "episode", "rest"] = "participant"
    again: bool = False
    workers: int | None = None
