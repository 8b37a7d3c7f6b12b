"""Every doubt that the package can raise has words."""

import re
from importlib import resources

from fidm.grounding.review import verdicts as meanings
from fidm.grounding.review.verdicts import MEANINGS, doubt_in_words
from fidm.grounding.rules.grounder import REREAD

RULES, MODEL = (resources.files(f"fidm.grounding.{name}") for name in ("rules", "llm"))
SOURCES = "".join(
    file.read_text("utf-8")
    for folder in (RULES, MODEL)
    for file in folder.iterdir()
    if file.name.endswith(".py")
)


def test_every_doubt_of_the_rules_has_words():
    grammar = (RULES / "grammar.toml").read_text("utf-8")
    raised = set(re.findall(r'doubt\("([a-z_]+)"\)', SOURCES)) | set(
        re.findall(r"=> doubt ([a-z_]+)", grammar)
    )
    raised.add(REREAD)
    assert len(raised) > 15
    assert raised <= set(MEANINGS)
    assert raised == set(meanings.OF_RULES)


def test_every_failure_of_a_server_has_words():
    raised = set(re.findall(r'(?:Unanswered|InvalidAnswer)Error\("([a-z_]+)"\)', SOURCES))
    assert {"timeout", "wrong_form", "pending"} <= raised <= set(MEANINGS)


def test_an_unknown_code_is_shown_as_it_is():
    assert doubt_in_words("my_own_code") == "my own code"
