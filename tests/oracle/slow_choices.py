"""Rival accounts of choice once more, one choice at a time, written from their definitions.

A task is a dict as in :mod:`oracle.slow_values`, with what else is known of it beside: which goal a pair
achieves, and the place of a state.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from oracle import slow_values


class Slow:
    """A task by dicts and loops."""

    def __init__(self, task, place=None):
        self.model, self.actions, self.goal, self.kept = task, {}, {}, {}
        for s in range(task.n_states):
            self.actions[s] = {}
            for k in range(task.offsets[s], task.offsets[s + 1]):
                links = range(task.successor_offsets[k], task.successor_offsets[k + 1])
                chances = {int(task.successor[i]): float(task.probability[i]) for i in links}
                self.actions[s][int(task.action[k])] = (float(task.reward[k]), chances)
                if task.goal[k] >= 0:
                    self.goal[s, int(task.action[k])] = int(task.goal[k])
        self.place = place or (lambda s: s)
        self.n_goals = len(task.goals)

    def solved(self, gamma=None, actions=None):
        m = self.model
        gamma = m.gamma if gamma is None else gamma
        return slow_values.infinite_horizon(actions or self.actions, gamma, m.tau, m.normaliser)[0]

    def shallow(self, depth, beyond=None):
        """Q over so many steps, by recursion: the last one leads to what lies beyond."""
        m = self.model

        def value(s, steps):
            if not self.actions[s]:
                return 0.0
            if steps == 0:
                return 0.0 if beyond is None else beyond[s]
            return slow_values.soft_maximum(
                [worth(s, a, steps) for a in self.actions[s]], m.tau, m.normaliser
            )

        def worth(s, a, steps):
            reward, chances = self.actions[s][a]
            return reward + m.gamma * sum(p * value(after, steps - 1) for after, p in chances.items())

        return {s: {a: worth(s, a, depth) for a in own} for s, own in self.actions.items()}

    def alone(self, goal):
        """Q where the other goals pay nothing."""
        if goal not in self.kept:
            self.kept[goal] = self.solved(actions=self.paying(goal))
        return self.kept[goal]

    def paying(self, goal):
        return {
            s: {
                a: (0.0 if self.goal.get((s, a), goal) != goal else reward, chances)
                for a, (reward, chances) in own.items()
            }
            for s, own in self.actions.items()
        }

    def distance(self, start, goal):
        """Steps to a state in which the goal can be achieved, achieving no other on the way."""
        seen, queue = {start}, deque([(start, 0)])
        while queue:
            s, steps = queue.popleft()
            if any(self.goal.get((s, a)) == goal for a in self.actions[s]):
                return steps
            for a, (_, chances) in self.actions[s].items():
                if self.goal.get((s, a), goal) == goal:
                    for after in chances:
                        if after not in seen:
                            seen.add(after)
                            queue.append((after, steps + 1))
        return math.inf

    def likely(self, s, a):
        chances = self.actions[s][a][1]
        return max(chances, key=lambda after: (chances[after], -after))


def log_softmax(worth):
    top = max(worth.values())
    total = sum(math.exp(value - top) for value in worth.values())
    return {a: value - top - math.log(total) for a, value in worth.items()}


def spread(tables):
    """The root mean square of distances from the mean of the row, over rows with two options or more."""
    squares = []
    for table in tables:
        for own in table.values():
            if len(own) > 1:
                mean = sum(own.values()) / len(own)
                squares += [(value - mean) ** 2 for value in own.values()]
    return math.sqrt(sum(squares) / len(squares))


def softly(slow, q, eta):
    return lambda s, before, came: log_softmax({a: eta * v for a, v in q[s].items()})


def lapsing(slow, q, eta, rate):
    def log_p(s, before, came):
        p = log_softmax({a: eta * v for a, v in q[s].items()})
        return {a: math.log((1 - rate) * math.exp(v) + rate / len(p)) for a, v in p.items()}

    return log_p


def sticking(slow, q, eta, repeat=0.0, back=0.0):
    def log_p(s, before, came):
        worth = {}
        for a, v in q[s].items():
            worth[a] = eta * v
            if a == before:
                worth[a] += repeat
            to = slow.place(slow.likely(s, a))
            if came is not None and to == slow.place(came) and to != slow.place(s):
                worth[a] += back
        return log_softmax(worth)

    return log_p


def mixed(first, second, share):
    def log_p(s, before, came):
        one, other = first(s, before, came), second(s, before, came)
        return {a: math.log((1 - share) * math.exp(one[a]) + share * math.exp(other[a])) for a in one}

    return log_p


def trials_of(lengths):
    """The trial of every choice of a person: the episode, or a quarter of the only one."""
    if len(lengths) == 1:
        return [i * 4 // lengths[0] for i in range(lengths[0])]
    return [e for e, n in enumerate(lengths) for _ in range(n)]


def person_steps(cohort, j):
    """Of every step of a person: episode, task name, state, action, and what was before it."""
    steps = []
    for e in range(cohort.episode_offsets[j], cohort.episode_offsets[j + 1]):
        before = came = None
        for i in range(cohort.step_offsets[e], cohort.step_offsets[e + 1]):
            s, a = int(cohort.state[i]), int(cohort.action[i])
            steps.append((e, cohort.episodes["task"][e], s, a, before, came))
            before, came = a, s
    return steps


def by_trial(cohort, j, log_p):
    """The log-likelihood of each trial of a person; log_p is by the name of the task."""
    steps = person_steps(cohort, j)
    lengths = [sum(1 for one in steps if one[0] == e) for e in sorted({one[0] for one in steps})]
    found: dict = {}
    for trial, (_, task, s, a, before, came) in zip(trials_of(lengths), steps, strict=True):
        found[trial] = found.get(trial, 0.0) + log_p[task](s, before, came)[a]
    return [found[trial] for trial in sorted(found)]


def by_chosen_goal(cohort, j, slows, tables, eta):
    """The same where a goal is chosen at random after each one achieved; tables are by task and goal."""
    steps = person_steps(cohort, j)
    lengths = [sum(1 for one in steps if one[0] == e) for e in sorted({one[0] for one in steps})]
    parts, achieved, last = [], 0, None
    for trial, (e, task, s, a, _, _) in zip(trials_of(lengths), steps, strict=True):
        achieved = 0 if e != last else achieved
        last = e
        if not parts or parts[-1][0] != (trial, e, achieved):
            parts.append(((trial, e, achieved), task, []))
        parts[-1][2].append((s, a))
        achieved += (s, a) in slows[task].goal
    found: dict = {}
    for (trial, _, _), task, choices in parts:
        slow = slows[task]
        open_now = [g for g in range(slow.n_goals) if slow.distance(choices[0][0], g) < math.inf]
        used = [tables[task][g] for g in open_now] or [slow.solved()]
        p = [
            math.exp(sum(log_softmax({b: eta * v for b, v in q[s].items()})[a] for s, a in choices))
            for q in used
        ]
        found[trial] = found.get(trial, 0.0) + math.log(sum(p) / len(p))
    return [found[trial] for trial in sorted(found)]


def nearest_table(slow, states):
    """Q of the nearest open goal alone; of the whole task where none is open."""
    alone, whole, found = [slow.alone(g) for g in range(slow.n_goals)], slow.solved(), {}
    for s in states:
        away = [slow.distance(s, g) for g in range(slow.n_goals)]
        found[s] = alone[away.index(min(away))][s] if min(away) < math.inf else whole[s]
    return found


def integral(log_likelihood, axes, means, sds):
    """Log evidence, posterior means and a function for quantiles, on a fine even grid of free numbers."""
    places = np.meshgrid(*axes, indexing="ij")
    log_p = log_likelihood(*places)
    for place, mean, sd, axis in zip(places, means, sds, axes, strict=True):
        log_p = log_p - 0.5 * ((place - mean) / sd) ** 2 - math.log(sd * math.sqrt(2 * math.pi))
        log_p = log_p + math.log(axis[1] - axis[0])
    top = log_p.max()
    weight = np.exp(log_p - top)
    total = weight.sum()
    mean = [float((weight * place).sum() / total) for place in places]

    def quantile(k, share):
        others = tuple(i for i in range(len(axes)) if i != k)
        up_to = np.cumsum(weight.sum(axis=others)) / total
        return float(np.interp(share, up_to, axes[k] + 0.5 * (axes[k][1] - axes[k][0])))

    return float(top + math.log(total)), mean, quantile


def random_effects(evidence, rounds=2000):
    """Frequencies of models by the variational loop of Stephan et al. (2009), person by person."""
    from scipy.special import digamma

    models, people = len(evidence), len(evidence[0])
    alpha = [1.0] * models
    share: list = []
    for _ in range(rounds):
        share = []
        for j in range(people):
            log_u = [evidence[m][j] + digamma(alpha[m]) - digamma(sum(alpha)) for m in range(models)]
            top = max(log_u)
            u = [math.exp(value - top) for value in log_u]
            share.append([value / sum(u) for value in u])
        alpha = [1.0 + sum(one[m] for one in share) for m in range(models)]
    return alpha, share
