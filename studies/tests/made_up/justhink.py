"""Tiny made-up files in the formats of the JUSThink corpus: nobody ever laid these tracks or said these words.

The network has five mines and seven tracks, so 128 sets. Pairs choose by how dear a track is; the logs hold every
kind of slip the real ones do, each as often as the constants say.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

MINES = ("Mount Aal", "Mount Bo", "Mount St. Cor", "Mount Dee", "Mount Eck")
TRACKS = ((0, 1, 2), (1, 2, 3), (2, 3, 2), (3, 4, 3), (4, 0, 4), (0, 2, 5), (1, 3, 4))
"""Two mines and a cost each."""

LEAST = 10
TEAMS = ("03", "04", "05", "06", "08", "11")
TALKING = ("03", "05", "06")
LAID_TWICE, REMOVED_TWICE, OTHER_COST, NOT_JOINED = 2, 1, 2, 1
"""How often each slip occurs in all logs together."""

N_LOADS = 6
WORDS = ("um", "we take the dear one", "no 3", "yes yes", "from here to there")


def write(folder: Path, *, seed: int = 1) -> None:
    """Write all files into the data set's own folder."""
    rng = np.random.default_rng(seed)
    for name in ("logs", "metadata", "test_responses", "transcripts"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    network = {
        "nodes": [{"label": label, "x": 0, "y": 0, "id": i} for i, label in enumerate(MINES)],
        "links": [{"source": a, "target": b, "cost": cost} for a, b, cost in TRACKS],
    }
    (folder / "metadata" / "network.json").write_text(json.dumps(network), "utf-8")
    for team in TEAMS:
        log = _Log(team, rng)
        for attempt in (1, 2, 3):
            log.attempt(attempt)
        log.write(folder / "logs" / f"justhink19_log_{team}.csv")
        if team in TALKING:
            _talk(folder / "transcripts" / f"justhink19_transcript_{team}.csv", team, log, rng)
    for name in ("pre", "post"):
        _test(folder / "test_responses" / f"justhink19_{name}test.csv", rng)
    (folder / "LICENSE").write_text("made up\n", "utf-8")


class _Log:
    """One team's log as it grows; slips are put into the first teams' logs."""

    def __init__(self, team: str, rng: np.random.Generator) -> None:
        self.team, self.rng = team, rng
        self.rows: list[str] = []
        self.time, self.turn, self.edits, self.attempt_no = 1.0, 1, 0, 1
        self.board: set[int] = set()
        self.robot: list[float] = []

    def event(self, subject: str, verb: str, thing: str) -> None:
        self.time += float(self.rng.gamma(2.0, 2.0))
        self.rows.append(
            f"{int(self.team)}\t{self.attempt_no}\t{self.turn}\t{len(self.rows) + 1}\t{self.time:.3f}\t"
            f"{subject}\t{verb}\t{thing}"
        )

    def change(self, track: int, verb: str, *, logged: bool = True) -> None:
        a, b, _ = TRACKS[track]
        (self.board.add if verb == "adds" else self.board.discard)(track)
        if not logged:
            return
        if self.edits and self.edits % 2 == 0:
            self.turn += 1
        self.edits += 1
        self.event("AB"[self.turn % 2], verb, f"{MINES[a][6:]}-{MINES[b][6:]} ({a}-{b})")

    def attempt(self, number: int) -> None:
        self.attempt_no = number
        self.event("R", "says", "let us build")
        self.robot.append(self.time)
        if number == 2:  # an earlier solution, and one track of it out again
            self.event("A", "presses", "apply (enabled)")
            self.board = {0, 1, 2, 3, 6}
            self.event("A", "loads", str([TRACKS[i][:2] for i in sorted(self.board)]))
            self.change(6, "removes")
        first_team = number == 1 and self.team in TEAMS[:2]
        if first_team:
            self.change(5, "adds")
            self.change(5, "adds")  # its removal between the two was not logged
        if number == 1 and self.team == TEAMS[2]:
            self.change(4, "removes")  # that it was laid was not logged
        if number == 3 and self.team == TEAMS[0]:  # the last track that joins all was not logged
            for track in (0, 1, 2):
                self.change(track, "adds")
            self.change(3, "adds", logged=False)
        else:
            while not _joins(self.board):
                dear = np.array([cost for _, _, cost in TRACKS])
                free = [i for i in range(len(TRACKS)) if i not in self.board]
                chance = np.exp(-0.8 * dear[free])
                self.change(int(self.rng.choice(free, p=chance / chance.sum())), "adds")
                if self.board and self.rng.random() < 0.25:
                    self.change(max(self.board, key=lambda i: TRACKS[i][2]), "removes")
        cost = sum(TRACKS[i][2] for i in self.board)
        if number == 2 and self.team == TEAMS[1]:
            cost += 1  # the board is not what was submitted
        self.event("T", "submits", f"cost={cost} (opt_cost={LEAST})")
        self.board = set()

    def write(self, path: Path) -> None:
        head = "team_no\tattempt_no\tturn_no\tevent_no\ttime\tsubject\tverb\tobject"
        path.write_text("\n".join([head, *self.rows]) + "\n", "utf-8")


def _joins(board: set[int]) -> bool:
    reached = {0}
    for _ in MINES:
        for track in board:
            a, b, _ = TRACKS[track]
            if a in reached or b in reached:
                reached |= {a, b}
    return len(reached) == len(MINES)


def _talk(path: Path, team: str, log: _Log, rng: np.random.Generator) -> None:
    said = [(at + 0.3, at + 1.3, "R", "let us build") for at in log.robot]
    now = 2.0
    while now < log.time + 5.0:
        seconds = float(rng.gamma(2.0, 0.6)) + 0.2
        who = "AB"[int(rng.random() < 0.45)]
        said.append((now, now + seconds, who, WORDS[int(rng.integers(len(WORDS)))]))
        now += seconds + 0.1 + float(rng.exponential(0.8))
    rows = [
        f"{int(team)}\t{i}\t{start:.3f}\t{end:.3f}\t{who}\t{text}"
        for i, (start, end, who, text) in enumerate(sorted(said))
    ]
    head = "team_no\tutterance_no\tstart\tend\tinterlocutor\tutterance"
    path.write_text("\n".join([head, *rows]) + "\n", "utf-8")


def _test(path: Path, rng: np.random.Generator) -> None:
    columns = [f"q{i}_{child}" for child in "AB" for i in range(1, 11)]
    key = [str(one) for one in rng.integers(0, 3, 10)] * 2
    lines = [",".join(["team_no", *columns]), ",".join(["key", *key])]
    for team in TEAMS:
        right = rng.random(20) < 0.6
        answers = [one if ok else str((int(one) + 1) % 3) for one, ok in zip(key, right, strict=True)]
        lines.append(",".join([str(int(team)), *answers]))
    path.write_text("\n".join(lines) + "\n", "utf-8")
