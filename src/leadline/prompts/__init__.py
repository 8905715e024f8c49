"""The prompts, one Markdown file each, and the one function that fills them in.

Knows how to keep documents data: evidence is delimited, numbered and labelled, and what could pass for a delimiter, a
role, a comment or a citation mark in it is made harmless. Doesn't know models.
"""

import re
from collections.abc import Sequence
from functools import cache
from importlib import resources

from leadline.citations import parse_markers
from leadline.prompts.orders import orders_among
from leadline.state import EvidenceBlock

_SYSTEM, _USER = "# System", "# User"
_PLACE = re.compile(r"\{\{(\w+)\}\}")
# The prompts' own tags, those of roles, those that models think between, and comments.
_TAGS = re.compile(
    r"<(?=\s*/?\s*(?:evidence|passage|question|conversation|found|tried|missing|sentences|system|user|assistant|developer|"
    r"tool|think|thinking|thought|reasoning|instructions?)\b)|<(?=!--)",
    re.IGNORECASE,
)
_ROLE_SIGNS = re.compile(
    r"<\||\|>|<(?=/?s>)|\[(?=/?(?:INST|SYS|THINK|TOOL_CALLS|AVAILABLE_TOOLS)\])|<<(?=/?SYS>>)|"
    r"<(?=(?:start|end)_of_turn>)",
    re.IGNORECASE,
)
# Who speaks, at the beginning of a line or in capitals anywhere: in a passage nobody does.
_SPEAKERS = re.compile(
    r"(?im:^(?P<lead>[\s>|*#\-\"'(]*)(?P<who>system|assistant|developer|user|human|ai|instructions?)(?=\s{0,3}[:：]))"
    r"|\b(?P<loud>SYSTEM|ASSISTANT|DEVELOPER|INSTRUCTIONS?)(?=\s{0,3}[:：])"
)
_MAX_LABEL_CHARS = 160
# Zero-width and direction signs, soft hyphens, tag characters, and controls but line breaks and tabs.
_UNSEEN = re.compile(
    r"[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
    r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)


def render(name: str, **values: str) -> list[dict[str, str]]:
    """The system and the user message of prompt `name`, each `{{place}}` filled with its value.

    Values are put in as they are: give documents through `format_evidence`, other text through `harmless`.
    KeyError where a value is missing, ValueError where one has no place.
    """
    system, user = _template(name)
    places = {*_PLACE.findall(system), *_PLACE.findall(user)}
    if unknown := values.keys() - places:
        raise ValueError(f"The prompt {name} has no place for {', '.join(sorted(unknown))}.")
    return [
        {"role": role, "content": _PLACE.sub(lambda place: values[place[1]], text)}
        for role, text in (("system", system), ("user", user))
    ]


def answer_prompt(question: str, evidence: Sequence[EvidenceBlock]) -> list[dict[str, str]]:
    """The messages that ask for an answer from `evidence`. The question stands in them whole."""
    return render("answer", question=harmless(question), evidence=format_evidence(evidence))


def format_evidence(blocks: Sequence[EvidenceBlock]) -> str:
    """The numbered passages, each between its own tags with its number, file, page or address."""
    return "\n".join(["<evidence>", *(_passage(block) for block in blocks), "</evidence>"])


def harmless(text: str) -> str:
    """`text` without signs that can't be seen, and with what could end or open a part of a prompt escaped.

    Nothing else changes and nothing is cut.
    """
    text = _UNSEEN.sub("", text)
    text = _TAGS.sub("‹", text)
    return _ROLE_SIGNS.sub(lambda sign: sign[0].translate(str.maketrans("<>[", "‹›(")), text)


def _passage(block: EvidenceBlock) -> str:
    metadata = block["document"]["metadata"]
    labels = {
        "n": block["n"],
        "file": metadata.get("file_name"),
        "page": metadata.get("page"),
        "section": " > ".join(_nobody_speaks(str(heading)) for heading in metadata.get("headings") or []),
        "web": metadata.get("url"),
        "title": metadata.get("title"),
    }
    shown = " ".join(f'{key}="{_label(str(value))}"' for key, value in labels.items() if value not in (None, ""))
    return f"<passage {shown}>\n[{block['n']}] {_text(block)}\n</passage>"


def _text(block: EvidenceBlock) -> str:
    """The sentences as the passage has them, a sign where some were left out."""
    content, text, last = block["document"]["content"], "", 0
    for start, end, sentence in block["sentences"]:
        between = content[last:start] if last else ""
        text += (" … " if between.strip() else between) + sentence
        last = end
    return _nobody_speaks(harmless(_without_own_marks(text.strip())))


def _nobody_speaks(text: str) -> str:
    """The text with `SYSTEM:` and its like in quotation marks: words of the passage, not of whoever runs the model."""
    return _SPEAKERS.sub(lambda found: f'{found["lead"] or ""}"{found["who"] or found["loud"]}"', text)


def _without_own_marks(text: str) -> str:
    """The text with round brackets around its own `[3]`, which would pass for the number of a passage."""
    for marker in reversed(parse_markers(text)):
        numbers = ", ".join(map(str, marker.numbers))
        text = f"{text[: marker.start]}({numbers}){text[marker.end :]}"
    return text


def _label(text: str) -> str:
    """A value that can't end its label, on one line and of a length that leaves the passage its room."""
    one_line = " ".join(text.split())
    if orders_among([one_line]):
        return "(left out: it gives orders to a model)"
    plain = _nobody_speaks(harmless(one_line)).replace('"', "'").replace("<", "‹").replace(">", "›")
    return plain if len(plain) <= _MAX_LABEL_CHARS else f"{plain[: _MAX_LABEL_CHARS - 1]}…"


@cache
def _template(name: str) -> tuple[str, str]:
    if not re.fullmatch(r"[a-z_]+", name):
        raise KeyError(name)
    text = resources.files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8")
    _, _, body = text.partition(f"{_SYSTEM}\n")
    system, _, user = body.partition(f"\n{_USER}\n")
    return system.strip(), user.strip()
