"""Grounds a few segments one after the other, as a run does; killed in the middle by a test."""

from __future__ import annotations

import sys
from pathlib import Path

from llm_dialogs import context, segment

from fidm.grounding.llm.grounder import LanguageModel

SHORT = str(Path(__file__).with_name("short.toml"))
TEXTS = ("go up three squares", "I go to the meat", "turn left", "hm, let me see", "down one and left two")


def main(url: str, cache: str) -> None:
    model = LanguageModel(url, "smollm2", template=SHORT, cache=cache, max_instructions=2)
    for number, text in enumerate(TEXTS, start=1):
        model.ground(segment(text, number), context())
        print(number, flush=True)
    model.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
