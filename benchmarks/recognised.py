"""What transcripts of speech recognisers lose, and what that does to profiles.

Run from the repository root; the usual 40 studies take about six minutes on two processors::

    python benchmarks/recognised.py [--people 40 15] [--seeds 10] [--languages yue en] [--out FILE]

Simulated people with known parameters do the task ``grocery``. Their dialogs are disturbed as recognisers
disturb them, then grounded and fitted like any others:

fillers
    Words such as *uhm* are dropped. The times of words (in proportion to letters) show a silence in their
    place; an utterance that was nothing else is gone.
punctuation
    No commas and question marks, as some recognisers write, though not Whisper.
times
    Every beginning and end of a turn is off by a normal error with an sd of 0.2 s; order is kept.
segments
    Times of whole utterances alone: what one person says until the other speaks is one piece, and no word
    has a time, so that pauses inside it are part of it.
all
    Fillers, times and segments together, but with punctuation.

A row per parameter: the correlation of estimates (η: of log η) with those of the undisturbed transcripts
and with the truth, which the first rows have for undisturbed transcripts; and the mean shift on the log scale
(pause presence: of log odds) where the population was learned from undisturbed transcripts, as if both kinds
were mixed in one study. Each is the median over seeds with the smallest and the largest. ``counts`` is the
share of actions that count for η. Simulated people fill up short talk with fillers, so that utterances of
fillers alone are probably more common than in life.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import fidm
from fidm.grounding.rules.language import load_language
from fidm.grounding.segment import count_letters
from fidm.io.talk import Transcript, Turn, Word
from fidm.model.gaps import forecast
from fidm.simulate.talk import simulate_talks

OFF_S = 0.2
SIGNS, ASKS = " ,，。、?？.!", "?？"
Heard = Callable[[Transcript, np.random.Generator], Transcript]


def words_of(turn: Turn, spaced: bool) -> Iterator[Word]:
    """The words of a turn, or its letters where no spaces are written; times by their share of letters."""
    said = [(place, len(word)) for place, word in split(turn.text, spaced)]
    sizes = [max(1, count_letters(turn.text[a : a + n])) for a, n in said]
    ends = turn.start_s + (turn.end_s - turn.start_s) * np.cumsum([0, *sizes]) / max(1, sum(sizes))
    for (place, n), start, end in zip(said, ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        yield Word(place, place + n, start, end)


def split(text: str, spaced: bool) -> Iterator[tuple[int, str]]:
    """Words with their places; letters where no spaces are written."""
    start = 0
    for place, letter in enumerate(text + " "):
        if letter in SIGNS or (not spaced and place > start):
            if text[start:place].strip(SIGNS):
                yield start, text[start:place]
            start = place + 1 if letter in SIGNS else place


def without_fillers(talk: Transcript) -> Transcript:
    """A talk without fillers, and with the times of the words that are left."""
    language = load_language(talk.language)
    turns = []
    for turn in talk:
        kept = [
            word
            for word in words_of(turn, language.spaced)
            if turn.text[word.start : word.end].casefold() not in language.fillers
        ]
        if not kept:
            continue
        text, placed = "", []
        for word, after in zip(kept, [*kept[1:], None], strict=True):
            placed.append(replace(word, start=len(text), end=len(text) + word.end - word.start))
            text += turn.text[word.start : word.end]
            between = turn.text[word.end : after.start] if after else turn.text[-1:]
            sign = next((letter for letter in between if letter in (SIGNS.strip() if after else ASKS)), "")
            text += sign + " " * (" " in between)
        times = {"start_s": kept[0].start_s, "end_s": kept[-1].end_s}
        turns.append(replace(turn, text=text, words=tuple(placed), **times))
    return replace(talk, turns=tuple(turns))


def bare(talk: Transcript) -> Transcript:
    """A talk without punctuation."""
    space = " " if load_language(talk.language).spaced else ""
    gone = str.maketrans(dict.fromkeys(SIGNS.strip(), space))
    turns = (replace(turn, text=" ".join(turn.text.translate(gone).split())) for turn in talk)
    return replace(talk, turns=tuple(turns))


def shaken(talk: Transcript, rng: np.random.Generator) -> Transcript:
    """A talk whose turns begin and end a little earlier or later, in the same order."""
    turns: list[Turn] = []
    until: dict[str, float] = {}
    latest = 0.0
    for turn in talk:
        start, end = np.array([turn.start_s, turn.end_s]) + OFF_S * rng.normal(size=2)
        latest = max(latest, start, until.get(turn.speaker, 0.0))
        until[turn.speaker] = max(end, latest + 0.05)
        turns.append(replace(turn, start_s=latest, end_s=until[turn.speaker], words=()))
    return replace(talk, turns=tuple(turns))


def whole(talk: Transcript) -> Transcript:
    """A talk in which what one person says until the other speaks is one turn without times of words."""
    turns: list[Turn] = []
    between = ", " if load_language(talk.language).spaced else "，"
    for turn in talk:
        if turns and turns[-1].speaker == turn.speaker:
            last = turns.pop()
            turn = replace(last, end_s=turn.end_s, text=last.text + between + turn.text)
        turns.append(replace(turn, words=()))
    return replace(talk, turns=tuple(turns))


HEARD: dict[str, Heard] = {
    "undisturbed": lambda talk, rng: talk,
    "fillers": lambda talk, rng: without_fillers(talk),
    "punctuation": lambda talk, rng: bare(talk),
    "times": shaken,
    "segments": lambda talk, rng: whole(talk),
    "all": lambda talk, rng: shaken(whole(without_fillers(talk)), rng),
}


def estimates(fit: fidm.Fit, cohort: fidm.Cohort) -> dict[str, np.ndarray]:
    """Everybody's estimates by parameter; log η for η."""
    table = fit.profile(cohort).table
    order = {name: row for row, name in enumerate(cohort.participants["participant"].to_list())}
    found = {name: np.full(len(order), np.nan) for name in table["parameter"].unique(maintain_order=True)}
    for who, name, value in table.select("participant", "parameter", "estimate").iter_rows():
        if value is not None:
            found[name][order[who]] = np.log(value) if name == "action_sensitivity" else value
    return found


def r(one: np.ndarray, other: np.ndarray) -> float:
    """The correlation of those known both ways."""
    known = np.isfinite(one) & np.isfinite(other)
    return float(np.corrcoef(one[known], other[known])[0, 1]) if known.sum() > 2 else np.nan


Found = dict[str, dict[str, list[float]]]


def one_study(task: fidm.TaskModel, n: int, seed: int, language: str) -> Found:
    """Return, for each way to hear, the share that counts, and per parameter r, r with truth and shift."""
    talks = simulate_talks(task, n, seed=seed, language=language)
    truth = {
        name.removeprefix("true_"): talks.cohort.participants[name].to_numpy().astype(float)
        for name in talks.cohort.participants.columns[1:]
    }
    truth["action_sensitivity"] = np.log(truth["action_sensitivity"])
    found: Found = {}
    usual: dict[str, np.ndarray] = {}
    learned = None
    for way, (name, hear) in enumerate(HEARD.items()):
        rng = np.random.default_rng([seed, n, way])
        cohort = fidm.ground([hear(talk, rng) for talk in talks.transcripts], task).cohort
        counted = forecast(cohort)
        fit = fidm.Model(task).fit(cohort)
        own = estimates(fit, cohort)
        learned, usual = (fit, own) if learned is None else (learned, usual)
        mixed = estimates(learned, cohort)
        row = {"counts": [counted["counted"] / counted["actions"]]}
        for parameter, values in own.items():
            moved = mixed[parameter] - usual[parameter]
            shift = float(moved[np.isfinite(moved)].mean())
            row[parameter] = [r(values, usual[parameter]), r(values, truth[parameter]), shift]
        found[name] = row
    return found


def band(values: list[float], form: str) -> str:
    """The median, and the smallest and largest."""
    low, middle, high = np.nanquantile(values, [0, 0.5, 1])
    return f"{middle:{form}} ({low:{form}} to {high:{form}})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, nargs="*", default=[40, 15])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--languages", nargs="*", default=["yue", "en"])
    parser.add_argument("--out", type=Path, help="all numbers, as JSON")
    options = parser.parse_args()
    task = fidm.load_task("grocery")
    kept = {}
    for language in options.languages:
        for n in options.people:
            found = [one_study(task, n, seed, language) for seed in range(1, options.seeds + 1)]
            kept[f"{language}, {n} people"] = found
            print(f"\n{language}, {n} people, {options.seeds} studies", flush=True)
            for way in HEARD:
                print(f"\n{way:21}counts {band([one[way]['counts'][0] for one in found], '.2f')}")
                print(f"  {'':19}{'r, undisturbed':22}{'r, truth':22}shift")
                for name in found[0][way]:
                    if name != "counts":
                        cells = zip(*(one[way][name] for one in found if name in one[way]), strict=True)
                        forms = (".2f", ".2f", "+.2f")
                        said = [band(list(cell), form) for cell, form in zip(cells, forms, strict=True)]
                        print(f"  {name:19}{''.join(f'{one:22}' for one in said)}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
