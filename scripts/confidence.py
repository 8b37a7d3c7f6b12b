"""Learn how probable the rules' readings are to be right, from phrasings the rules were not written with.

Run from the repository root after a change of the rules; some minutes::

    python scripts/confidence.py            # cross-validated figures only
    python scripts/confidence.py --write    # and opinion.npz and confidence.json in src/fidm/grounding/rules

First the second opinion (``fidm.grounding.rules.opinion``) is learned from all phrasings but the held-out
ones: what they mean does not depend on the rules. Then the probability that a reading is right is learned
from ``calibration*``, which those who work on the rules have not read, and from simulated people, with
opinions that were learned from other authors. Each phrasing is taken as written and as a recogniser would
write it, without punctuation and capitals. What is printed is cross-validated over authors and so what to
expect of new people: how many readings the rules are confident of, how many of those are right, and how well
probabilities agree with shares.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from statsmodels.stats.proportion import proportion_confint

import fidm
from fidm.grounding.base import UNCLEAR, Context, Segment, placed, read_phrasings
from fidm.grounding.dialog import Reader
from fidm.grounding.route.program import Program, parse_program
from fidm.grounding.route.replay import DOUBTFUL, Terrain, replay
from fidm.grounding.rules.confidence import floored
from fidm.grounding.rules.grounder import LASTING, SURE, Read, Rules, preferred
from fidm.grounding.rules.opinion import KINDS, USES, Looked, Regressions, Second, kinds, uses
from fidm.grounding.segment import cut_dialog
from fidm.grounding.settings import Settings

ROOT = Path(__file__).parent.parent
RULES = ROOT / "src" / "fidm" / "grounding" / "rules"
PHRASINGS = ROOT / "tests" / "data" / "phrasings"
BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
THRESHOLDS = (0.7, 0.75, 0.8, 0.82, 0.85, 0.88, 0.9, 0.92)
SELDOM = 8
"""What stands in fewer phrasings is not learned from."""
STRENGTH = {"kinds": 5.0, "uses": 20.0}
"""The inverse of how much weights are drawn towards 0."""
FOLDS = 8
SIMULATED = 30
"""How many simulated people speak in each language."""
KNOWN, NEW = "known", "new"
"""Simulated people whose talk opinions are learned from, and others, who use the same wordings."""

DEPTH = 3


class Author:
    """What one author had people say in one language, and what the rules make of it."""

    def __init__(self, name: str, language: str, *, is_judging: bool) -> None:
        self.name, self.language, self.is_judging = name, language, is_judging
        self.rules = Rules()
        self.reads: list[Read] = []
        self.meant: list[Program | None] = []
        self.wanted: list[list[int] | None] = []  # the true actions; none where nothing is settled
        self.groups: list[tuple[str, str, str, str]] = []

    @classmethod
    def of(cls, path: Path) -> Author:
        """The phrasings of a file, as written and without punctuation."""
        name, language = path.stem.rsplit("_", 1)
        author = cls(name, language, is_judging=name.startswith("calibration"))
        own = read_phrasings(path, language=language)
        for form, items in (("as written", own), ("unpunctuated", [item.unpunctuated() for item in own])):
            for item, segment, context, wanted in placed(items):
                is_clear = item.program != UNCLEAR
                meant = parse_program(item.program, context.terrain.places) if is_clear else None
                author.add(segment, context, meant, wanted, (name, language, form, item.kind))
        return author

    @classmethod
    def simulated(cls, language: str, name: str, seed: int) -> Author:
        """The talk of simulated people, whose words are known: long segments without digressions."""
        author = cls(name, language, is_judging=name != KNOWN)
        task = fidm.load_task("grocery")
        reader = Reader(Terrain(task), Settings())
        talks = fidm.simulate_talks(task, SIMULATED, seed=seed, language=language)
        for transcript, programs in zip(talks.transcripts, talks.programs, strict=True):
            cut = cut_dialog(
                transcript, reader.vocabulary(language), reader.terrain.spec, reader.settings.segmenting
            )
            position = reader.terrain.start()
            for segment, said in zip(cut.segments, programs, strict=True):
                for phase in segment.opened:
                    position = reader.terrain.tell(position, phase, cut.told)
                meant = parse_program(said, reader.terrain.places)
                done = replay(meant, reader.terrain, position, told=cut.told)
                context = Context(reader.terrain, position, language, cut.told)
                author.add(segment, context, meant, done.actions, (name, language, "as written", "simulated"))
                position = done.end
        return author

    def add(
        self, segment: Segment, context: Context, meant: Program | None, wanted: list[int] | None,
        group: tuple[str, str, str, str],
    ) -> None:  # fmt: skip
        """Read one segment."""
        self.reads.append(self.rules.read(segment, context))
        self.meant.append(meant)
        self.wanted.append(wanted)
        self.groups.append(group)

    def weigh(self, second: Second) -> None:
        """Compare what each segment may mean, given what its words speak for."""
        self.facts: list[list[dict[str, float]]] = []  # of each candidate
        self.right: list[list[bool]] = []
        self.stopped: list[list[bool]] = []  # whether it may not be trusted, however probable
        for read, wanted in zip(self.reads, self.wanted, strict=True):
            candidates, facts = self.rules.weigh(read, second.on(read.looked))
            self.facts.append(facts)
            self.right.append([one.done.actions == wanted for one in candidates])
            doubts = [self.rules.doubts_of(read, one) for one in candidates]
            self.stopped.append([bool((DOUBTFUL | LASTING).intersection(found)) for found in doubts])


def regress(lists: Sequence[Sequence[str]], answers: NDArray[np.float64], strength: float) -> Regressions:
    """Learn to answer yes-or-no questions from named facts; NaN is a question that was not asked."""
    seen: dict[str, int] = {}
    for names in lists:
        for name in names:
            seen[name] = seen.get(name, 0) + 1
    row = {name: i for i, name in enumerate(sorted(name for name, n in seen.items() if n >= SELDOM))}
    found = [[row[name] for name in names if name in row] for names in lists]
    values = np.concatenate([np.full(len(rows), 1 / np.sqrt(max(1, len(rows)))) for rows in found])
    ends = np.cumsum([0, *map(len, found)])
    table = csr_matrix(
        (values, np.concatenate([np.array(rows, dtype=int) for rows in found]), ends), (len(lists), len(row))
    )
    weights, bias = np.zeros((len(row), answers.shape[1])), np.zeros(answers.shape[1])
    for i in range(answers.shape[1]):
        asked = ~np.isnan(answers[:, i])
        model = LogisticRegression(C=strength, solver="liblinear").fit(table[asked], answers[asked, i] > 0)
        weights[:, i], bias[i] = model.coef_[0], model.intercept_[0]
    weights = weights.astype(np.float16).astype(float)
    return Regressions(row, weights, bias.astype(np.float32).astype(float))


def learn_second(authors: Sequence[Author]) -> Second:
    """Learn what words speak for."""
    looked: list[Looked] = [read.looked for author in authors for read in author.reads]
    meant = [program for author in authors for program in author.meant]
    given = [kinds(program) if program is not None else {UNCLEAR} for program in meant]
    of_kinds = np.array([[kind in found for kind in KINDS] for found in given], dtype=float)
    words: list[Sequence[str]] = []
    answers: list[list[float]] = []
    for one, program in zip(looked, meant, strict=True):
        for kind, value, around in one.words if program is not None else ():
            found = dict(uses(kind, value, program or ()))
            words.append((*one.whole, *around))
            answers.append([float(found[use]) if use in found else np.nan for use in USES])
    return Second(
        regress([one.runs for one in looked], of_kinds, STRENGTH["kinds"]),
        regress(words, np.array(answers), STRENGTH["uses"]),
    )


def learner() -> GradientBoostingClassifier:
    """Small trees of three questions each."""
    return GradientBoostingClassifier(
        n_estimators=500, max_depth=DEPTH, learning_rate=0.05, subsample=0.6, min_samples_leaf=20,
        max_features=0.2, random_state=0,
    )  # fmt: skip


def tables(authors: Sequence[Author], names: Sequence[str]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """What the probability of every candidate depends on, and whether it is right."""
    rows = [
        [facts.get(name, 0.0) for name in names]
        for author in authors
        for row in author.facts
        for facts in row
    ]
    return np.array(rows), np.concatenate([right for author in authors for right in author.right])


def trees(model: GradientBoostingClassifier, names: Sequence[str]) -> dict[str, Any]:
    """The trees of a model, each filled up to the same depth."""
    inner = 2**DEPTH - 1
    written = []
    for (found,) in model.estimators_:
        tree = found.tree_
        asks, limits, leaves = [names[0]] * inner, [1e9] * inner, [0.0] * (inner + 1)

        def fill(node: int, place: int) -> None:
            if place >= inner:
                leaves[place - inner] = round(model.learning_rate * float(tree.value[node, 0, 0]), 5)  # noqa: B023
                return
            is_leaf = tree.children_left[node] < 0  # noqa: B023
            if not is_leaf:
                asks[place] = names[tree.feature[node]]  # noqa: B023
                limits[place] = round(float(tree.threshold[node]), 5)  # noqa: B023
            fill(node if is_leaf else tree.children_left[node], 2 * place + 1)  # noqa: B023
            fill(node if is_leaf else tree.children_right[node], 2 * place + 2)  # noqa: B023

        fill(0, 0)
        written.append({"asks": asks, "limits": limits, "leaves": leaves})
    start = round(float(np.log(model.init_.class_prior_[1] / model.init_.class_prior_[0])), 4)
    return {"start": start, "facts": list(names), "trees": written}


def share(right: NDArray[np.bool_]) -> str:
    """Write a share with its Wilson interval."""
    if not len(right):
        return "none"
    low, high = proportion_confint(int(right.sum()), len(right), method="wilson")
    return f"{right.mean():.1%} ({low:.1%} to {high:.1%})"


class Chosen:
    """The most probable candidate of every phrasing, of authors that nothing was learned from."""

    def __init__(self) -> None:
        self.probable: list[float] = []
        self.right: list[bool] = []
        self.stopped: list[bool] = []
        self.before: list[bool] = []
        self.groups: list[tuple[str, str, str, str]] = []

    def add(self, author: Author, probable: Sequence[NDArray[np.float64]]) -> None:
        """Take what was found of an author."""
        for found, right, stopped in zip(probable, author.right, author.stopped, strict=True):
            best = preferred(found)
            self.probable.append(float(found[best]))
            self.right.append(right[best])
            self.before.append(right[0])
            self.stopped.append(stopped[best])
        self.groups.extend(author.groups)

    def tell(self) -> None:
        """Print how reliable probabilities are, what thresholds on them give, and what groups."""
        found, right, stopped = np.array(self.probable), np.array(self.right), np.array(self.stopped)
        for low, high in pairwise(BINS):
            own = (found >= low) & (found < high if high < 1 else found <= high)
            mean = found[own].mean() if own.any() else 0.0
            print(f"  said {low} to {high}: {own.sum():4}, mean {mean:.2f}, right {share(right[own])}")
        for limit in THRESHOLDS:
            own = (found >= limit) & ~stopped
            print(f"  sure from {limit:.2f}: confident {own.mean():.1%}, right {share(right[own])}")
        for part in ((1, 2), (0, 1, 2), (1, 3)):
            names = [" ".join(group[i] for i in part) for group in self.groups]
            for name in sorted(set(names)):
                own = np.array(names) == name
                kept = own & (found >= SURE) & ~stopped
                alone = np.array(self.before)[own].mean()
                told = f"right at all {right[own].mean():.1%} (grammar alone {alone:.1%})"
                print(f"  {name}: {told}, confident {kept.sum() / own.sum():.1%}, right {share(right[kept])}")


def main() -> None:
    """Learn, judge, and write if asked to."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write what was learned")
    given = parser.parse_args()
    paths = [
        path for path in sorted(PHRASINGS.glob("*.jsonl")) if not path.stem.startswith(("heldout", "judging"))
    ]
    authors = [Author.of(path) for path in paths]
    for seed, name in enumerate((KNOWN, NEW), start=77):
        authors.extend(Author.simulated(code, name, seed) for code in ("en", "yue", "zh"))
    judged = [author for author in authors if author.is_judging]
    folds = [names.tolist() for names in np.array_split(sorted({author.name for author in judged}), FOLDS)]
    for fold in folds:
        second = learn_second([author for author in authors if author.name not in fold])
        for author in judged:
            if author.name in fold:
                author.weigh(second)
    names = sorted({name for author in judged for row in author.facts for facts in row for name in facts})
    chosen, simulated = Chosen(), Chosen()
    for fold in folds:
        model = learner().fit(*tables([author for author in judged if author.name not in fold], names))
        for author in judged:
            if author.name in fold:
                probable = model.predict_proba(tables([author], names)[0])[:, 1]
                cuts = np.cumsum([len(found) for found in author.right])[:-1]
                found = [floored(*pair) for pair in zip(author.facts, np.split(probable, cuts), strict=True)]
                (simulated if author.name == NEW else chosen).add(author, found)
    print(f"{len(chosen.right) // 2} phrasings, twice: as written and without punctuation")
    chosen.tell()
    simulated.tell()
    if given.write:
        model = learner().fit(*tables(judged, names))
        (RULES / "confidence.json").write_text(json.dumps(trees(model, names)) + "\n", "utf-8")
        learn_second(authors).save(RULES / "opinion.npz")
        print("Wrote confidence.json and opinion.npz.")


if __name__ == "__main__":
    main()
