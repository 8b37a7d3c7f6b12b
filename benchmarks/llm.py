"""What the language-model grounder costs on top of the model, and how well a very small model reads.

Run from the repository root, with the development environment and ``tests/llm/requirements.txt``::

    python benchmarks/llm.py --out benchmarks/results/llm.json [--quick]

(a) Overhead. Eight threads ground different segments with :class:`fidm.grounding.llm.grounder.LanguageModel`
and its cache, against a server in a process of its own that takes 0.2 s for every answer, whatever is asked.
The ideal is the number of answers times 0.2 s, over eight. The first call, which also finds out whether
schemas are enforced, is made before the clock starts. Then the same against a real server (SmolLM2-135M,
llama.cpp, two slots, one thread each), where the ideal is a bare loop: the same bodies, sent by http.client
from eight threads, their answers thrown away. The two take turns, and each counts with its shortest time. The
server's memory of prompts is warmed by a run of each beforehand. The exit code is 1 if an overhead is 5 % or
more.

(b) Accuracy. The share of ``tests/data/phrasings/development_en.jsonl`` in which the replayed moves are
exactly those of the given program, at temperature 0, with the same small model. It is a number about this
model, which is there to be small, not about what a laboratory would use. The held-out phrasings are not
touched.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rich.console import Console
from rich.table import Table

import fidm
from fidm.files import whole_file
from fidm.grounding.base import Context, Proposal, Segment
from fidm.grounding.llm.grounder import LanguageModel
from fidm.grounding.route.program import parse_program
from fidm.grounding.route.replay import Terrain, replay

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "llm"))

from fake_server import FakeServer  # noqa: E402
from real_server import running_server, weights  # noqa: E402

THREADS, SERVICE_S, GATE = 8, 0.2, 0.05
PHRASINGS = ROOT / "tests" / "data" / "phrasings" / "development_en.jsonl"


def serve_slowly(connection: Any) -> None:
    with FakeServer(service_s=SERVICE_S) as server:
        connection.send(server.url)
        connection.recv()


@contextmanager
def slow_server() -> Iterator[str]:
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=serve_slowly, args=(there,))
    process.start()
    try:
        yield here.recv()
    finally:
        here.send("stop")
        process.join()


def timed(work: Callable[[Any], Any], items: Sequence[Any]) -> float:
    with ThreadPoolExecutor(THREADS) as pool:
        started = time.perf_counter()
        list(pool.map(work, items))
        return time.perf_counter() - started


def segment(text: str) -> Segment:
    return Segment(1, text, (0,), (0,), (0,))


def overhead_known(n_answers: int) -> dict[str, Any]:
    land = Terrain(fidm.load_task("grocery"))
    context = Context(land, land.position(9, 14, "up"))
    walls = []
    with slow_server() as url, tempfile.TemporaryDirectory() as folder:
        for repeat in range(3):
            model = LanguageModel(url, "fake-model", cache=Path(folder) / f"{repeat}.sqlite")
            model.ground(segment("up three first"), context)
            texts = [f"up three {i}" for i in range(n_answers)]
            walls.append(timed(lambda text, model=model: model.ground(segment(text), context), texts))
            model.close()
    ideal = n_answers * SERVICE_S / THREADS
    return {
        "n_answers": n_answers,
        "wall_s": min(walls),
        "all_walls_s": walls,
        "ideal_s": ideal,
        "overhead": min(walls) / ideal - 1,
        "client_ms_per_answer": 1000 * (min(walls) - ideal) / n_answers,
    }


def overhead_real(url: str, n_answers: int, n_repeats: int) -> dict[str, Any]:
    land = Terrain(fidm.load_task("grocery"))
    context = Context(land, land.position(9, 14, "up"))
    model = LanguageModel(url, samples=2, max_instructions=1)  # samples: every body is sent exactly once
    segments = [segment(f"go up {word}") for word in ("one", "two", "three", "four", "five", "six")]
    segments = (segments * n_answers)[: n_answers // 2]
    bodies = [
        json.dumps(model._request(prompt, prompt.messages(s, context, 6), seed=seed).body)
        for prompt in [model._prompt(context)]
        for s in segments
        for seed in (1, 2)
    ]
    target = urlsplit(url)

    def bare(body: str) -> None:
        connection = http.client.HTTPConnection(target.hostname or "", target.port or 80, timeout=300)
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
        connection.getresponse().read()
        connection.close()

    def pairs(index: int) -> None:
        for body in bodies[2 * index : 2 * index + 2]:
            bare(body)

    def ours(index: int) -> Proposal:
        return model.ground(segments[index], context)

    numbers = range(len(segments))
    ours(0)
    timed(pairs, numbers)
    timed(ours, numbers)
    walls: dict[str, list[float]] = {"bare": [], "fidm": []}
    for repeat in range(n_repeats):
        turn = [("bare", pairs), ("fidm", ours)]
        for name, work in turn if repeat % 2 else turn[::-1]:
            walls[name].append(timed(work, numbers))
    model.close()
    ratios = [a / b for a, b in zip(walls["fidm"], walls["bare"], strict=True)]
    return {
        "n_answers": len(bodies),
        "wall_s": min(walls["fidm"]),
        "ideal_s": min(walls["bare"]),
        "all_walls_s": walls,
        "overhead": min(walls["fidm"]) / min(walls["bare"]) - 1,
        "median_paired_overhead": statistics.median(ratios) - 1,
    }


def accuracy(url: str, limit: int | None) -> dict[str, Any]:
    items = [json.loads(line) for line in PHRASINGS.read_text("utf-8").splitlines() if line.strip()][:limit]
    lands = {name: Terrain(fidm.load_task(name)) for name in {item["task"] for item in items}}
    model = LanguageModel(url, model_file=weights())
    counts = dict.fromkeys(("right", "confident", "right_where_confident", "no_answer"), 0)

    def one(item: dict[str, Any]) -> tuple[bool, Proposal]:
        land = lands[item["task"]]
        place = land.position(item["row"], item["column"], item["heading"])
        found = model.ground(segment(item["text"]), Context(land, place))
        gold = replay(parse_program(item["program"], land.places), land, place)
        return replay(found.program, land, place).actions == gold.actions, found

    started = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(one, items))
    for right, found in results:
        counts["right"] += right
        counts["confident"] += found.is_confident
        counts["right_where_confident"] += right and found.is_confident
        counts["no_answer"] += "no_answer" in found.doubts
    by_kind: dict[str, list[int]] = {}
    for item, (right, _) in zip(items, results, strict=True):
        kind = by_kind.setdefault(item["kind"], [0, 0])
        kind[0] += right
        kind[1] += 1
    provenance = model.provenance()
    model.close()
    seconds = time.perf_counter() - started
    return {"n": len(items), **counts, "by_kind": by_kind, "seconds": seconds, "provenance": provenance}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true", help="fewer answers and phrasings")
    options = parser.parse_args()
    known = overhead_known(80 if options.quick else 400)
    with running_server(slots=2) as url:
        real = overhead_real(url, *((8, 2) if options.quick else (24, 3)))
        read = accuracy(url, 10 if options.quick else None)
    console = Console()
    table = Table("overhead", "answers", "wall, s", "ideal, s", "overhead", title=f"{THREADS} threads")
    for name, found in (("server of 0.2 s", known), ("SmolLM2-135M", real)):
        table.add_row(
            name,
            str(found["n_answers"]),
            f"{found['wall_s']:.2f}",
            f"{found['ideal_s']:.2f}",
            f"{100 * found['overhead']:.1f} %",
        )
    console.print(table)
    kinds = ", ".join(f"{kind} {right}/{n}" for kind, (right, n) in sorted(read["by_kind"].items()))
    console.print(
        f"SmolLM2-135M reads {read['right']} of {read['n']} phrasings exactly ({kinds}). It is confident in "
        f"{read['confident']}, of which {read['right_where_confident']} are right."
    )
    passed = known["overhead"] < GATE and real["overhead"] < GATE
    console.print(f"Overhead below {100 * GATE:.0f} %: {'yes' if passed else 'NO'}")
    if options.out:
        machine = {"cores": os.cpu_count(), "python": platform.python_version(), "fidm": fidm.__version__}
        result = {"machine": machine, "known": known, "real": real, "accuracy": read, "passed": passed}
        with whole_file(options.out) as part:
            part.write_text(json.dumps(result, indent=2) + "\n", "utf-8")
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
