"""What is left for η of dialogs in which many segments are in doubt: ``python benchmarks/doubts.py``.

Simulated people speak; a grounder that knows the true program of every segment is confident of some and
doubts the others, and is wrong as often as the rules were on phrasings that nobody had tuned them on.
Misreadings are of several kinds: a square more or less, no distance at all, the other direction, the last
step lost, nothing understood, another place, and the program of somebody else.

Printed are, per regime: how many segments are confident, and how many of the doubted ones were confirmed; how
many actions count, as a share of all true ones, as :mod:`fidm.grounding.whereabouts` has it and by the simple
rule that moves wait for the next named place; how many of those that count are true (the action, where it was
taken, and what was completed in its phase); how far log η is from that of the true moves, with its error, and
how much people differ in that.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import fidm
from fidm.files import whole_file
from fidm.grounding.base import Context, Proposal, Segment
from fidm.grounding.dialog import GroundedDialog
from fidm.grounding.route.program import NOTHING, Program, parse_program, same_program
from fidm.grounding.route.replay import Terrain, replay
from fidm.grounding.whereabouts import KNOWN
from fidm.io.talk import Transcript
from fidm.simulate.talk import Talks
from fidm.tasks.model import TaskModel

MIRROR = {"up": "down", "down": "up", "left": "right", "right": "left"}
RIGHT_IF_CONFIDENT = 0.95
DOUBTED = ((0.10, 0.22), (0.30, 0.12), (0.50, 0.17), (0.70, 0.31), (0.82, 0.18))
"""How probable doubted readings were said to be, and how many of them were of each, on calibration sets."""

KINDS = ("farther", "distance", "mirror", "lost", "nothing", "place", "other")
SHARES = (0.2, 0.2, 0.1, 0.1, 0.15, 0.1, 0.15)


def read_programs(talks: Talks) -> list[list[Program]]:
    """The true programs of every dialog."""
    places = Terrain(fidm.load_task(talks.cohort.episodes["task"][0])).places
    return [[parse_program(text, places) for text in programs] for programs in talks.programs]


class Noisy:
    """Knows what is meant, and gets some of it wrong."""

    name = "noisy"

    def __init__(self, talks: Talks, confident: float, seed: int, right: float) -> None:
        programs = read_programs(talks)
        self._talks = {item.participant: own for item, own in zip(talks.transcripts, programs, strict=True)}
        self._all = [program for own in programs for program in own]
        self._confident, self._seed, self._right = confident, seed, right
        self.who = ""

    def provenance(self) -> Mapping[str, Any]:
        """Return nothing of interest."""
        return {"grounder": self.name}

    def close(self) -> None:
        """Nothing to let go of."""

    def ground(self, segment: Segment, context: Context) -> Proposal:
        """Propose the truth, or something wrong."""
        programs = self._talks[self.who]
        truth = programs[segment.number - 1] if segment.number <= len(programs) else NOTHING
        key = [self._seed, segment.number, *self.who.encode()]
        rng = np.random.default_rng(key)
        is_confident = rng.random() < self._confident
        said_to_be, shares = np.array(DOUBTED).T
        p = 0.97 if is_confident else float(rng.choice(said_to_be, p=shares))
        is_right = self._right == 1 or rng.random() < (self._right if is_confident else p)
        said = truth if is_right else self._wrong(truth, context.terrain, rng)
        return Proposal.of([(said, p)], () if is_confident else ("doubted",), self.name)

    def _wrong(self, truth: Program, terrain: Terrain, rng: np.random.Generator) -> Program:
        for _ in range(50):
            kind = str(rng.choice(KINDS, p=SHARES))
            made = self._made(kind, list(truth), terrain, rng)
            if made and not same_program(made, truth):
                return tuple(made)
        return NOTHING

    def _made(self, kind: str, steps: list[Any], terrain: Terrain, rng: np.random.Generator) -> Any:
        i = int(rng.integers(len(steps)))
        step = steps[i]
        if kind == "farther" and step.squares:
            steps[i] = replace(step, squares=max(1, step.squares + int(rng.choice([-1, 1]))))
        elif kind == "distance" and step.op == "MOVE":
            steps[i] = replace(step, squares=None, to_end=False, place="")
        elif kind == "mirror" and step.way in MIRROR:
            steps[i] = replace(step, way=MIRROR[step.way])
        elif kind == "lost" and len(steps) > 1:
            steps = steps[:-1]
        elif kind == "nothing":
            steps = list(NOTHING)
        elif kind == "place" and step.place:
            steps[i] = replace(step, place=str(rng.choice(list(terrain.places))))
        elif kind == "other":
            steps = list(self._all[int(rng.integers(len(self._all)))])
        return steps


def ground(task: TaskModel, talks: Talks, noisy: Noisy, sure: float) -> fidm.Grounded:
    """Ground every dialog, telling the grounder whose it is."""
    from fidm.grounding.dialog import Reader, Settings, Weighing, ground_dialog
    from fidm.grounding.ground import assemble

    terrain = Terrain(task)
    settings = Settings(weighing=Weighing(sure=sure))
    reader = Reader(terrain, settings)
    dialogs = []
    for item in talks.transcripts:
        noisy.who = item.participant
        dialogs.append(ground_dialog(item, noisy, reader))
    return assemble(dialogs, terrain, settings, {"grounder": "noisy"})


def until_named(dialog: GroundedDialog, terrain: Terrain) -> list[float]:
    """Weights by the simple rule: after a doubt moves wait for the next named place."""
    moves, position = set(terrain.move_code), terrain.start()
    is_sure = knows_done = True
    found: list[float] = []
    for one in dialog.segments:
        for phase in one.segment.opened:
            position = terrain.tell(position, phase, dialog.told)
            knows_done = True
        done = replay(one.proposal.program, terrain, position, told=dialog.told)
        position = done.end
        in_doubt = bool(one.doubts)
        for action in done.actions:
            is_sure |= action not in moves and not in_doubt
            found.append(float(is_sure and knows_done and not in_doubt))
        steps = [step for reading in one.proposal.readings for step in reading.program if step.op != "NONE"]
        if in_doubt:
            is_sure = False
            may = one.proposal.program[0].op == "NONE"
            may |= any(step.op not in ("MOVE", "TURN", "ALONG", "BACK") or step.place for step in steps)
            knows_done &= not may
        elif not is_sure and any(step.place or step.op == "PAY" for step in one.proposal.program):
            is_sure = True
    return found


def naming(task: TaskModel, talks: Talks, share: float, seed: int) -> Talks:
    """The same dialogs in which the assessor often says where the figure is, if something is beside it."""
    terrain = Terrain(task)
    rng = np.random.default_rng(seed)
    items: list[Transcript] = []
    for item, programs in zip(talks.transcripts, read_programs(talks), strict=True):
        reader_turns = list(item.turns)
        position, number, spoke = terrain.start(), 0, False
        for i, turn in enumerate(reader_turns):
            if turn.role == "participant":
                spoke = True
            elif turn.role == "assessor" and "moved" in turn.text and spoke:
                if number < len(programs):
                    position = replay(programs[number], terrain, position, told=frozenset()).end
                number, spoke = number + 1, False
                cell = terrain.cell(position.state)
                near = [p for p in terrain.places if cell in terrain.reach[p]]
                if len(near) == 1 and rng.random() < share:
                    label = near[0].replace("_", " and ")
                    reader_turns[i] = replace(turn, text=f"{turn.text}. You're at the {label}")
        items.append(replace(item, turns=tuple(reader_turns)))
    return replace(talks, transcripts=tuple(items))


def figures(task: TaskModel, talks: Talks, grounded: fidm.Grounded) -> dict[str, float]:
    """What counts, and how much of it is true."""
    truth, found = talks.cohort, grounded.cohort
    right = counted = right_old = counted_old = total = 0
    assert found.weight is not None
    for j, dialog in enumerate(grounded.dialogs):
        a, b = int(truth.step_offsets[j]), int(truth.step_offsets[j + 1])
        c, d = int(found.step_offsets[j]), int(found.step_offsets[j + 1])
        rows = grounded.moves[c:d]
        numbers = rows["segment"].cast(int).to_numpy() - 1
        meant: dict[int, list[tuple[int, int]]] = {}
        assert truth.segment is not None
        for s, st, ac in zip(truth.segment[a:b], truth.state[a:b], truth.action[a:b], strict=True):
            meant.setdefault(int(s), []).append((int(st), int(ac)))
        total += b - a
        old = until_named(dialog, grounded.terrain)
        for k in range(d - c):
            state, action = int(found.state[c + k]), int(found.action[c + k])
            is_true = any(_agree(state, other, grounded.terrain) and action == done
                          for other, done in meant.get(int(numbers[k]), []))  # fmt: skip
            counted += found.weight[c + k] > 0
            right += found.weight[c + k] > 0 and is_true
            counted_old += old[k] > 0
            right_old += old[k] > 0 and is_true
    doubted = (grounded.segments["status"] == "needs_review").mean()
    own_doubts = grounded.segments["doubts"].str.contains("confirmed")
    return {
        "confident": 1 - float(doubted or 0.0),  # type: ignore[arg-type]
        "confirmed": float(own_doubts.mean() or 0.0),  # type: ignore[arg-type]
        "counted": counted / total,
        "true": right / max(1, counted),
        "counted_until_named": counted_old / total,
        "true_until_named": right_old / max(1, counted_old),
    }


def _agree(state: int, other: int, terrain: Terrain) -> bool:
    """Whether two states are the same but for what was completed in an earlier phase."""
    if state == other or terrain.end in (state, other):
        return state == other
    return terrain.cell(state) == terrain.cell(other) and terrain.phase(state) == terrain.phase(other) > 0


def bias(task: TaskModel, truth: fidm.Cohort, found: fidm.Cohort) -> tuple[float, float, float]:
    """How far log η is from that of the true moves: mean over people, its error, and their spread."""
    fits = [fidm.Model(task, channels=()).fit(cohort) for cohort in (truth, found)]
    means = [
        np.log(fit.profile(cohort).estimate[:, 0]) for fit, cohort in zip(fits, (truth, found), strict=True)
    ]
    apart = means[1] - means[0]
    apart = apart[np.isfinite(apart)]
    spread = float(apart.std(ddof=1))
    return float(apart.mean()), spread / float(np.sqrt(len(apart))), spread


def main() -> None:
    """Run the regimes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--people", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--sure", type=float, default=KNOWN, help="weighing.sure of grounding.toml")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    console = Console(highlight=False, width=120)
    task = fidm.load_task("grocery")
    table = Table(
        "regime", "confident", "confirmed", "count", "true", "until named", "true", "log η off",
        "until named", "apart", "until named",
    )  # fmt: skip
    results = []
    regimes = [
        ("56 % confident", 0.56, RIGHT_IF_CONFIDENT, 0.0),
        ("56 %, assessor names places", 0.56, RIGHT_IF_CONFIDENT, 0.5),
        ("56 %, never wrong", 0.56, 1.0, 0.0),
        ("80 % confident", 0.8, RIGHT_IF_CONFIDENT, 0.0),
        ("80 %, never wrong", 0.8, 1.0, 0.0),
    ]
    for name, confident, right, named in regimes:
        rows = []
        for seed in range(options.seeds):
            talks = fidm.simulate_talks(task, options.people, seed=seed, language="en")
            talks = naming(task, talks, named, seed) if named else talks
            grounded = ground(task, talks, Noisy(talks, confident, seed, right), options.sure)
            row = figures(task, talks, grounded)
            row["off"], row["off_error"], row["apart"] = bias(task, talks.cohort, grounded.cohort)
            simple = [w for dialog in grounded.dialogs for w in until_named(dialog, grounded.terrain)]
            named_only = replace(grounded.cohort, weight=np.array(simple))
            row["off_named"], _, row["apart_named"] = bias(task, talks.cohort, named_only)
            rows.append(row)
        mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        results.append({"regime": name, **mean})
        table.add_row(
            name, f"{mean['confident']:.0%}", f"{mean['confirmed']:.0%}", f"{mean['counted']:.1%}",
            f"{mean['true']:.1%}", f"{mean['counted_until_named']:.1%}", f"{mean['true_until_named']:.1%}",
            f"{mean['off']:+.3f} ± {mean['off_error'] / np.sqrt(options.seeds):.3f}",
            f"{mean['off_named']:+.3f}", f"{mean['apart']:.3f}", f"{mean['apart_named']:.3f}",
        )  # fmt: skip
    console.print(table)
    if options.out:
        with whole_file(options.out) as part:
            part.write_text(json.dumps(results, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
