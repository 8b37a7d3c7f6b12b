"""Tiny grounded studies for the review page, and a server of one in a process of its own."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import fidm
from fidm.grounding.store import write_grounding
from fidm.io.talk import Transcript, Turn

STRANGE = "go up two squares <script>alert(1)</script> 𠮷野 \u202eשלום"
"""Said in one of the dialogs: markup, letters beyond the first plane, and text from right to left."""

SAID = {
    "P1": ["go left one square and up two squares", "go up", "go to the meat and take it"],
    "P2": ["go left one square", STRANGE, "I go to the vegetables"],
    "P3": ["go left two squares, no wait, three squares", "then up to the seasoning"],
}


def spoken(participant, texts):
    """A dialog in which the assessor moves the figure after everything that is said."""
    turns = [Turn("ASS", 0.0, 1.0, "Please buy the meat and the vegetables.", role="assessor")]
    for i, text in enumerate(texts):
        start = 2.0 + 6 * i
        turns.append(Turn("PAR", start, start + 3, text, role="participant"))
        turns.append(Turn("ASS", start + 4, start + 5, "OK, moved.", role="assessor"))
    return Transcript(participant, tuple(turns), language="en")


def make_study(folder, said=None, task="grocery"):
    """A study whose dialogs are grounded by the rules."""
    dialogs = [spoken(who, texts) for who, texts in (said or SAID).items()]
    grounded = fidm.ground(dialogs, fidm.load_task(task))
    write_grounding(folder, grounded, tasks=[task])
    return Path(folder)


class Server:
    """``fidm review`` in a process of its own, until it is told to stop."""

    def __init__(self, study, *options):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fidm", "review", str(study), "--no-open", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "COLUMNS": "200"},
        )
        self.said = []
        for line in self.process.stdout:
            self.said.append(line)
            found = re.search(r"Open (http://127\.0\.0\.1:(\d+)/)#(\S+)", line)
            if found:
                self.origin, self.port, self.token = found[1].rstrip("/"), int(found[2]), found[3]
                self.address = f"{self.origin}/#{self.token}"
                return
        raise AssertionError("".join(self.said))

    def stop(self, number=signal.SIGTERM):
        """End it with a signal; returns everything it said, and its exit code."""
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        if not self.process.stdout.closed:
            rest, _ = self.process.communicate(timeout=60)
            self.said.append(rest)
        return "".join(self.said), self.process.returncode


def make_talks(folder, n=6):
    """A study of simulated people, enough of them to be fitted."""
    task = fidm.load_task("grocery")
    talks = fidm.simulate_talks(task, n, seed=3, language="en")
    write_grounding(folder, fidm.ground(talks.transcripts, task), tasks=["grocery"])
    return Path(folder)
