"""How much faster a second run is when the vectors of what people said are kept in a file.

Run from the repository root, with the development environment::

    python benchmarks/language.py --out benchmarks/results/language.json [--people 60] [--quick]

An encoder of BERT's base size (12 layers, 768 wide, 102 million weights) is made with random weights in a
temporary folder; it costs the same computation as the real one. Simulated people talk Cantonese, and
:class:`fidm.classify.language.LanguageFeatures` encodes what they said, on the processor. The two runs are
processes of their own, so that nothing is in memory when they begin; the files are as warm for the first as
for the second.

Two ratios are given. "Features" counts from the call that asks for the vectors to the vectors: in the first
run that is hashing the weights, importing PyTorch and transformers, loading and encoding; in the second,
hashing the weights and reading the file. "Process" counts everything, starting Python and importing fidm
included. Both grow with the number of people and with how much they say. The exit code is 1 if the second run
gives its features less than 20 times faster than the first, or not the same to the last bit, or imports
PyTorch.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import fidm
from fidm.classify.language import participant_texts
from fidm.files import whole_file
from fidm.languages import PHRASES
from fidm.registry import LANGUAGES
from fidm.simulate.talk import simulate_talks

GATE = 20.0
SEED = 1
TOKENS = 21_128
"""As many as bert-base-chinese knows."""

RUN = """
import hashlib, json, pickle, sys, time
from pathlib import Path
from fidm.classify.language import LanguageFeatures
encoder, cache, talk = map(Path, sys.argv[1:])
cohort, texts = pickle.loads(talk.read_bytes())
begun = time.perf_counter()
found = LanguageFeatures(texts, encoder, cache=cache, device="cpu").fit_transform(cohort)
seconds = time.perf_counter() - begun
print(json.dumps({"features_s": seconds, "shape": found.shape, "torch": "torch" in sys.modules,
                  "sha256": hashlib.sha256(found.tobytes()).hexdigest()}))
"""


def make_encoder(folder: Path, *, layers: int) -> int:
    """Save an encoder of base size with random weights; returns how many weights it has."""
    import torch
    import transformers

    torch.manual_seed(SEED)
    transformers.utils.logging.disable_progress_bar()
    model = transformers.BertModel(transformers.BertConfig(vocab_size=TOKENS, num_hidden_layers=layers))
    model.save_pretrained(folder)
    phrases = LANGUAGES.read("yue", PHRASES)
    letters = sorted({letter for letter in phrases.lower() if not letter.isspace()})
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", "utf-8")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}', "utf-8")
    return sum(weight.numel() for weight in model.parameters())


def run(*paths: Path) -> dict[str, Any]:
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, paths)], stdout=subprocess.PIPE, text=True, check=True
    )
    return {**json.loads(done.stdout), "process_s": time.perf_counter() - begun}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--quick", action="store_true", help="two layers and few people; tells nothing")
    options = parser.parse_args()
    people, layers = (10, 2) if options.quick else (options.people, 12)
    talks = simulate_talks(fidm.load_task("grocery"), people, seed=SEED)
    texts = participant_texts(talks.transcripts)
    characters = sum(len(utterance) for said in texts.values() for utterance in said)
    with tempfile.TemporaryDirectory() as place:
        encoder, cache, talk = (Path(place) / name for name in ("encoder", "vectors.sqlite", "talk"))
        n_weights = make_encoder(encoder, layers=layers)
        talk.write_bytes(pickle.dumps((talks.cohort, texts)))
        first, second = run(encoder, cache, talk), run(encoder, cache, talk)
    ratios = {name: first[f"{name}_s"] / second[f"{name}_s"] for name in ("features", "process")}
    same = first["sha256"] == second["sha256"]
    table = Table(
        "", "first run, s", "second run, s", "faster", title=f"{people} people, {characters:,} characters"
    )
    for name, ratio in ratios.items():
        table.add_row(name, f"{first[f'{name}_s']:.2f}", f"{second[f'{name}_s']:.3f}", f"{ratio:.0f} ×")
    console = Console()
    console.print(table)
    passed = ratios["features"] >= GATE and same and not second["torch"]
    console.print(f"At least {GATE:.0f} times faster, and the same: {'yes' if passed else 'NO'}")
    if options.out:
        machine = {"cores": os.cpu_count(), "python": platform.python_version(), "fidm": fidm.__version__}
        result = {
            "machine": machine, "people": people, "characters": characters, "layers": layers,
            "weights": n_weights, "first": first, "second": second, "ratios": ratios, "same": same,
            "passed": passed,
        }  # fmt: skip
        with whole_file(options.out) as part:
            part.write_text(json.dumps(result, indent=2) + "\n", "utf-8")
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
