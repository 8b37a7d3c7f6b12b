"""Moves that a planner filled in inflate η if they count; averaging over groundings makes intervals honest.

The bands were written down before the first run.

Filled-in moves: 400 people on the grocery task, up to 60 actions each, log η with mean log 24 and sd 0.42. Every
walk is cut into stretches of 3.5 actions on average. A random 40 % of them are walked by a planner that always
takes a best action (ties at random) and are flagged inferred; in the others the person chooses with their own
η. So the truth is known, and given the state every stated move is an honest choice.

Groundings: 300 people make 40 choices each, among three options of random value. What they chose is stated in a
random half; the words leave the other half open. A grounder that knows what people are like draws these as a
multiple imputation should: first η from the person's posterior given the stated half, then the choices from that η.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import polars as pl

import fidm
from fidm.fit.averaged import average_profiles

SEEDS = range(5)
PEOPLE, ACTIONS, STRETCH, FILLED = 400, 60, 3.5, 0.4

UNBIASED = 0.05
"""Mean error of log η with inferred moves left out: at most this, to either side."""
INFLATED = 0.20
"""Mean error of log η with inferred moves counted: at least this."""
COVERAGE = (0.93, 0.97)
"""Share of 95 % intervals that hold the true η, with inferred moves left out."""
LOST_COVERAGE = 0.85
"""The same with inferred moves counted: at most this."""

DRAWS = 20
AVERAGED_COVERAGE = (0.92, 0.98)
"""Share of 95 % intervals averaged over 20 groundings that hold the true η."""
SINGLE_COVERAGE = 0.90
"""The same with one grounding taken for certain: at most this."""
GAIN = 0.05
"""By how much averaging must raise the coverage at least."""


@functools.cache
def grocery():
    task = fidm.load_task("grocery")
    values = fidm.solve(task)
    return task, values, values.q[task.pair_state, task.action]


def filled_walk(eta, rng):
    """States, actions and flags of one person whose walk a planner has filled in here and there."""
    task, _, q = grocery()
    states, actions, flags = [task.start], [], []
    planned = rng.random() < FILLED
    while len(actions) < ACTIONS and not task.terminal[states[-1]]:
        first, last = int(task.offsets[states[-1]]), int(task.offsets[states[-1] + 1])
        below = q[first:last] - q[first:last].max()
        weight = (below > -1e-8).astype(float) if planned else np.exp(eta * below)
        pair = first + rng.choice(last - first, p=weight / weight.sum())
        actions.append(int(task.action[pair]))
        states.append(int(task.handover[task.successor[task.successor_offsets[pair]]]))
        flags.append(planned)
        if rng.random() < 1 / STRETCH:
            planned = rng.random() < FILLED
    return states, actions, flags


def filled_cohort(seed):
    rng = np.random.default_rng(seed)
    log_eta = 3.178 + 0.42 * rng.standard_normal(PEOPLE)
    traces, flags = [], []
    for j in range(PEOPLE):
        states, actions, own = filled_walk(np.exp(log_eta[j]), rng)
        traces.append(
            fidm.Trace(
                "grocery",
                np.array(states, np.int32),
                np.array(actions, np.int32),
                finished=False,
                label=f"P{j:03d}",
            )
        )
        flags += own
    return replace(fidm.Cohort.from_traces(traces), inferred=np.array(flags)), log_eta


@functools.cache
def both_ways():
    """Errors of log η and coverage, inferred moves left out and counted, one row per person and seed."""
    found = {0.0: ([], []), 1.0: ([], [])}
    for seed in SEEDS:
        cohort, truth = filled_cohort(seed)
        for weight, (errors, inside) in found.items():
            model = fidm.Model(grocery()[0], channels=(), inferred=weight, values=grocery()[1])
            profile = model.fit(cohort).profile(cohort)
            errors.append(profile.log_sensitivity - truth)
            inside.append((np.log(profile.low[:, 0]) <= truth) & (truth <= np.log(profile.high[:, 0])))
    return {weight: (np.concatenate(e), np.concatenate(i)) for weight, (e, i) in found.items()}


def test_leaving_inferred_moves_out_is_unbiased():
    errors, inside = both_ways()[0.0]
    print(f"left out: bias of log η {errors.mean():+.3f}, coverage {inside.mean():.3f}")
    assert abs(errors.mean()) <= UNBIASED
    assert COVERAGE[0] <= inside.mean() <= COVERAGE[1]


def test_counting_inferred_moves_inflates_the_sensitivity():
    errors, inside = both_ways()[1.0]
    print(f"counted: bias of log η {errors.mean():+.3f}, coverage {inside.mean():.3f}")
    assert errors.mean() >= INFLATED
    assert inside.mean() <= LOST_COVERAGE


# ---------------------------------------------------------------------- several groundings

CHOOSERS, CHOICES, OPTIONS, KINDS = 300, 40, 3, 50


@functools.cache
def menu():
    """A task of single choices: fifty states of three options each, all of which end it."""
    values = np.random.default_rng(7).normal(size=(KINDS, OPTIONS))
    end = np.full((KINDS + 1, OPTIONS), KINDS)
    end[KINDS] = -1
    reward = np.vstack([values, np.zeros(OPTIONS)])
    return fidm.TaskModel.from_arrays(end, reward, gamma=0.9, tau=0.1, name="menu"), values


def choose(values, eta, rng):
    """One choice per row by softmax(η · values)."""
    weight = np.exp(eta[..., None] * (values - values.max(axis=-1, keepdims=True)))
    share = np.cumsum(weight, axis=-1) / weight.sum(axis=-1, keepdims=True)
    return (rng.random(values.shape[:-1])[..., None] > share[..., :-1]).sum(axis=-1).astype(np.int32)


def menu_cohort(state, action, weight=None):
    people, choices = state.shape
    n = people * choices
    return fidm.Cohort(
        participants=pl.DataFrame({"participant": [f"P{j:03d}" for j in range(people)]}),
        episodes=pl.DataFrame({"episode": [str(i) for i in range(choices)] * people, "task": ["menu"] * n}),
        episode_offsets=choices * np.arange(people + 1),
        step_offsets=np.arange(n + 1),
        state=state.reshape(-1).astype(np.int32),
        action=action.reshape(-1),
        end_state=np.full(n, KINDS, np.int32),
        segments=pl.DataFrame(schema={"segment": pl.String, "n_moves": pl.Int32}),
        segment_offsets=np.zeros(n + 1, np.int64),
        weight=None if weight is None else weight.reshape(-1),
    )


@functools.cache
def groundings():
    """Coverage of a single grounding, averaged over the draws, and of all draws together."""
    task, values = menu()
    single, averaged, shares = [], [], []
    for seed in SEEDS:
        rng = np.random.default_rng([seed, 1])
        truth = 0.5 * rng.standard_normal(CHOOSERS)
        state = rng.integers(0, KINDS, (CHOOSERS, CHOICES))
        action = choose(values[state], np.repeat(np.exp(truth)[:, None], CHOICES, axis=1), rng)
        stated = rng.random(state.shape) < 0.5
        sure = menu_cohort(state, action, stated.astype(float))
        fit = fidm.Model(task, channels=()).fit(sure)
        known = fit.profile(sure)
        profiles = []
        for _ in range(DRAWS):
            eta = np.exp(known.log_sensitivity + known.log_sensitivity_se * rng.standard_normal(CHOOSERS))
            drawn = choose(values[state], np.repeat(eta[:, None], CHOICES, axis=1), rng)
            profiles.append(fit.profile(menu_cohort(state, np.where(stated, action, drawn))))
        together = average_profiles(profiles)
        for profile, place in [(p, single) for p in profiles] + [(together, averaged)]:
            place.append((np.log(profile.low[:, 0]) <= truth) & (truth <= np.log(profile.high[:, 0])))
        shares.append(together.grounding_share[:, 0])
    return [float(np.concatenate(part).mean()) for part in (single, averaged, shares)]


def test_averaged_intervals_cover_better_than_those_of_one_grounding():
    single, averaged, share = groundings()
    print(
        f"coverage of η: one grounding {single:.3f}, {DRAWS} averaged {averaged:.3f}; grounding's share {share:.2f}"
    )
    assert single <= SINGLE_COVERAGE
    assert AVERAGED_COVERAGE[0] <= averaged <= AVERAGED_COVERAGE[1]
    assert averaged >= single + GAIN
