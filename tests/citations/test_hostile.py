"""Texts made to keep a rule busy: every check ends soon, whoever wrote the answer or the source."""

import json
import subprocess
import sys
from pathlib import Path

from tests.citations.test_answers import block

from leadline.citations import check_answer

ROOT = Path(__file__).parents[2]
SIZES = (200, 1_100, 20_000)
# What is repeated, and what stands around it.
HOSTILE = {
    "letters joined by dashes": "The motif of the gene is {G-A-} in 2011 [1].",
    "words in capitals": "The gene {Aa }is new [1].",
    "figures": "{1 }[1].",
    "amounts": "{1 m }[1].",
    "names that do something": "{Aa bought }Bolt [1].",
    "a negation": "It {not }costs [1].",
    "a short negation": "It {n't }costs [1].",
    "quotation marks": '{"a }[1].',
    "colons": "{:}x",
    "blanks": "x{ }x",
    "bars": "{| }x\n|--|",
    "denying words": "{documents do not }[1].",
    "initials": "{A.}[1].",
    "dates": "{1.1.2011 }[1].",
    "brackets": "{[1 }",
    "emphasis": "{**a }",
    "names beside words": "{Mira opened }it [1].",
    "clauses": "{Bolts cost 1 EUR, }it [1].",
    "passives": "{was founded by }Bolt [1].",
}
CHECK = """
import json, sys
from leadline.citations import check_answer
from tests.citations.test_answers import block
plain = "The motif was sequenced by Mira Stone in 2011. It doesn't cost 20 EUR. No USA was founded by her."
other = "The motif was not sequenced by 2 Bolt people in 2012 [1]."
for name, texts in json.load(sys.stdin).items():
    for hostile in texts:
        for answer, source in [(hostile, plain), (other, hostile)]:
            assert check_answer(answer, [block(1, source)], "What is the motif?").grounding
    print(name, flush=True)
"""


def hostile_texts(pattern: str) -> list[str]:
    """The text of each size."""
    before, _, rest = pattern.partition("{")
    repeated, _, behind = rest.partition("}")
    return [before + repeated * (size // len(repeated)) + behind for size in SIZES]


def test_a_hostile_text_is_checked_soon() -> None:
    """No check hangs; it would take minutes, or longer than anyone lives, where a rule tries every way to read it. A
    process of its own can be ended in the midst of that."""
    asked = json.dumps({name: hostile_texts(pattern) for name, pattern in HOSTILE.items()})
    command = [sys.executable, "-c", CHECK]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        try:
            checked, told = process.communicate(asked, timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            checked, told = process.communicate()
    assert checked.splitlines() == [*HOSTILE], told  # the first that is missing is the one that hangs or fails


def test_a_sentence_too_long_to_be_checked_is_not_verified() -> None:
    """What no rule looks at is not grounded, and the reason is named."""
    said = "The gene " + "that codes " * 200 + "is new"
    check = check_answer(f"{said} [1].", [block(1, f"{said}.")], "What is new?")
    assert (check.grounding, [p.what for p in check.problems]) == ("ungrounded", ["too long to be checked"])
