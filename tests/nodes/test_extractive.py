"""Quoting: which sentences, in which order, and how they stand in the answer."""

from collections.abc import Sequence
from typing import Any

import pytest

from leadline.citations import answer_sentences
from leadline.nodes.extractive import Quote, as_answer, quotes_for


class Given:
    """A scorer with the logits it is given."""

    def __init__(self, *logits: float) -> None:
        self.logits = logits
        self.read: list[list[str]] = []

    def score_sentences(self, question: str, sentences: Sequence[str]) -> list[float]:
        self.read.append(list(sentences))
        return list(self.logits)


def block(passage: Any, n: int, *sentences: str, **metadata: Any) -> Any:
    """A numbered passage of these sentences."""
    spans, at = [], 0
    for sentence in sentences:
        spans.append((at, at + len(sentence), sentence))
        at += len(sentence) + 1
    document = passage(" ".join(sentences), f"c{n}", **metadata)
    return {"n": n, "chunk_id": f"c{n}", "sentences": spans, "document": document}


def texts(quotes: Sequence[Quote]) -> list[str]:
    """What is quoted."""
    return [quote.text for quote in quotes]


def test_at_most_three_and_only_positive_ones(passage: Any) -> None:
    """Weak, negative, unscored and infinite ones are left out."""
    evidence = [block(passage, 1, "One is a.", "Two is b.", "Three is c.", "Four is d.", "Five is e.")]
    assert texts(quotes_for("q", evidence, Given(4, 4, 4, 4, -1))) == ["One is a.", "Two is b.", "Three is c."]
    assert texts(quotes_for("q", evidence, Given(4, 0.1, -1, 0.0, float("nan")))) == ["One is a."]
    assert quotes_for("q", evidence, Given(-1, -1, -1, 0.0, float("inf"))) == []


def test_a_passage_that_answers_nothing_counts_against_its_sentences(passage: Any) -> None:
    """Present at a meeting is not the row of the telephone list."""
    row, present = "Oleg Marchenko, 140.", "Present: Oleg Marchenko and others."
    evidence = [block(passage, 1, row), block(passage, 2, present)]
    assert texts(quotes_for("q", evidence, Given(2, 3))) == [row, present]
    rank(evidence, 0.8, -3)
    assert texts(quotes_for("q", evidence, Given(2, 3))) == [row, present]
    assert texts(quotes_for("q", evidence, Given(2, 2))) == [row]
    assert texts(quotes_for("q", evidence, Given(-1, 1.6))) == [present]
    assert quotes_for("q", evidence, Given(-1, 1.4)) == []


@pytest.mark.parametrize("zero", [-1000, 0, 50])
def test_where_the_zero_of_the_passages_is_makes_no_difference(passage: Any, zero: float) -> None:
    """A calibration moves it for passages, not for sentences; and passages above it are equal."""
    evidence = [block(passage, 1, "One is a."), block(passage, 2, "Two is b.")]
    rank(evidence, -1.0 - zero, -1.75 - zero)
    assert len(quotes_for("q", evidence, Given(2, 2))) == 2
    assert len(quotes_for("q", evidence, Given(2, 0.3))) == 1


def rank(evidence: Sequence[Any], *logits: float) -> None:
    """Gives passages their logits."""
    for one, logit in zip(evidence, logits, strict=True):
        one["document"]["rerank_score"] = logit


def test_another_season_is_no_answer(passage: Any) -> None:
    """A sentence on summer, however well it matches, doesn't say what is so in winter; its heading may name that."""
    fee = block(passage, 1, "The harbour fee is 25 euros a day in summer.", "In winter boats pay 12 euros a day.")
    asked = "How much is the harbour fee in winter?"
    assert texts(quotes_for(asked, [fee], Given(4, 1))) == ["In winter boats pay 12 euros a day."]
    assert texts(quotes_for("How much is the harbour fee?", [fee], Given(4, 1)))[0].endswith("summer.")
    under = block(passage, 1, "Unlike in summer, boats pay 12 euros.", headings=["Fees in winter"])
    assert len(quotes_for(asked, [under], Given(4))) == 1
    closed = block(passage, 1, "The shop is closed on Sundays.")
    assert len(quotes_for("Is the shop open on Sunday?", [closed], Given(4))) == 1


def test_order_of_the_passages_not_of_the_logits(passage: Any) -> None:
    """Quotes stand as they are read: best passage first, then down the text."""
    evidence = [block(passage, 2, "Two says this.", "Two goes on."), block(passage, 1, "One says that.")]
    quotes = quotes_for("q", evidence, Given(3, 3.5, 4))
    assert [(quote.n, quote.text) for quote in quotes] == [
        (2, "Two says this."),
        (2, "Two goes on."),
        (1, "One says that."),
    ]


def test_the_same_thing_is_said_once(passage: Any) -> None:
    """A near-duplicate of a better sentence is left out."""
    evidence = [
        block(passage, 1, "The vault code is 7719 since last May."),
        block(passage, 2, "The vault code is 7719 since May."),
    ]
    assert [quote.n for quote in quotes_for("q", evidence, Given(3, 4))] == [2]


def test_questions_and_headings_answer_nothing(passage: Any) -> None:
    """They hold the question's words, and no answer."""
    scorer = Given(1)
    evidence = [block(passage, 1, "# Codes", "What is the code?", "It is 7719.", headings=["Vault", "Codes"])]
    assert texts(quotes_for("q", evidence, scorer)) == ["It is 7719."]
    assert scorer.read == [["Vault, Codes: It is 7719."], ["It is 7719."]]


def test_the_name_of_a_file_answers_nothing_else(passage: Any) -> None:
    """Alone, a file's name or the passage's own title says nothing of who; where a file is asked for, it does."""
    evidence = [block(passage, 1, "zen_of_python.txt", "The Zen", "Tim wrote it.", headings=["The Zen"])]
    assert texts(quotes_for("Who wrote the Zen?", evidence, Given(1))) == ["Tim wrote it."]
    found = quotes_for("Which file has the Zen?", evidence, Given(5, -1, -1))
    assert texts(found) == ["zen_of_python.txt"]


def test_rows_stand_alone_and_sentences_run_on() -> None:
    """However they are joined, each quote is one sentence with its own mark."""
    quotes = [
        Quote(1, 0, "Berth: 3; Depth m: 6.8"),
        Quote(1, 30, "Berth: 4; Depth m: 7"),
        Quote(2, 0, "Ships wait."),
        Quote(3, 0, "Boats go."),
    ]
    answer = "".join(as_answer(quotes))
    assert answer.endswith("Ships wait. [2] Boats go. [3]")
    assert [(sentence.text, sentence.numbers) for sentence in answer_sentences(answer)] == [
        ("Berth: 3; Depth m: 6.8", (1,)),
        ("Berth: 4; Depth m: 7", (1,)),
        ("Ships wait.", (2,)),
        ("Boats go.", (3,)),
    ]


def test_a_number_in_the_question_must_be_in_the_quote(passage: Any) -> None:
    """Berth 3 is not berth 7, however alike the rows are; a number that nothing names is no reason to say nothing."""
    evidence = [block(passage, 1, "Berth: 7; depth: 7.2", "Berth: 3; depth: 6.8")]
    assert texts(quotes_for("How deep is berth 3?", evidence, Given(4, 3.9))) == ["Berth: 3; depth: 6.8"]
    flood = [block(passage, 1, "The water stood 2.3 metres above the tide.", headings=["The flood of 1953"])]
    quotes = quotes_for("How high stood the water in 1953?", flood, Given(4))
    assert texts(quotes) == ["The water stood 2.3 metres above the tide."]


def test_a_code_that_no_passage_names_is_not_answered(passage: Any) -> None:
    """What is said of the FP-200 is no answer about the FP-300, unless the passage names it somewhere."""
    evidence = [block(passage, 1, "The FP-200 weighs 19.5 kg.")]
    assert quotes_for("How much does the FP-300 weigh?", evidence, Given(4)) == []
    assert texts(quotes_for("How much does the fp 200 weigh?", evidence, Given(4))) == ["The FP-200 weighs 19.5 kg."]
    under = [block(passage, 1, "It weighs 23 kg.", headings=["Pump FP-300"])]
    assert texts(quotes_for("How much does the FP-300 weigh?", under, Given(4))) == ["It weighs 23 kg."]


def test_a_single_capital_names_too(passage: Any) -> None:
    """Site D is not site B, though both have wells and only the headings tell."""
    evidence = [
        block(passage, 1, "Its well is 21 metres deep.", headings=["Site B"]),
        block(passage, 2, "Its well is 18 metres deep.", headings=["Site D"]),
    ]
    assert texts(quotes_for("How deep is the well at site D?", evidence, Given(4, 4))) == [
        "Its well is 18 metres deep."
    ]


def test_what_a_list_item_says_itself_decides_among_its_like(passage: Any) -> None:
    """Under one heading all items score alike; the one that speaks of the thing asked is quoted."""

    class OnItsOwn(Given):
        def score_sentences(self, question: str, sentences: Sequence[str]) -> list[float]:
            under = sentences[0].startswith("Ginger cake")
            return [3.0, 2.9] if under else [-2.0, 1.0]

    evidence = [block(passage, 1, "- 250 g flour", "- 2 tsp ginger", headings=["Ginger cake"])]
    assert texts(quotes_for("How much ginger?", evidence, OnItsOwn())) == ["- 2 tsp ginger"]


def test_the_header_of_a_table_states_nothing(passage: Any) -> None:
    """A header row and the rule under it are not quoted; a row is."""
    evidence = [block(passage, 1, "| Part | Kg |", "|---|---|", "| Bolt | 2 |")]
    assert texts(quotes_for("How heavy is the bolt?", evidence, Given(4))) == ["| Bolt | 2 |"]


class AfterABridge(Given):
    """Logits of the first passage's sentence, of the second's, and of the second's after the first's."""

    def score_sentences(self, question: str, sentences: Sequence[str]) -> list[float]:
        first, second, both = self.logits
        return [both if "directed" in s and "born" in s else first if "directed" in s else second for s in sentences]


def test_what_a_hop_led_to_is_read_after_the_sentence_that_led_there(passage: Any) -> None:
    """By itself it shares no word with the question. Both are quoted, where the second adds something to the first."""
    asked = "Where was the director of Alpha born?"
    alpha = block(passage, 1, "Mira Stone directed it.", headings=["Alpha"])
    led = {"chunk_id": "c1", "name": "Mira Stone"}
    mira = block(passage, 2, "She was born in Halden.", headings=["Mira Stone"], led_by=led)
    both = ["Mira Stone directed it.", "She was born in Halden."]
    assert texts(quotes_for(asked, [alpha, mira], AfterABridge(2, -1, 4))) == both
    assert texts(quotes_for(asked, [alpha, mira], AfterABridge(2, -1, 2.2))) == both[:1]
    assert quotes_for(asked, [alpha, mira], AfterABridge(-1, -1, 4)) == []
    found = block(passage, 2, "She was born in Halden.", headings=["Mira Stone"])
    assert texts(quotes_for(asked, [alpha, found], AfterABridge(2, -1, 4))) == both[:1]


def test_a_row_about_another_thing_is_not_quoted_since_a_name_led_to_its_table(passage: Any) -> None:
    """What a hop led to counts where it stands under the name, not for being in the same passage."""
    asked = "Where was the director of Alpha born?"
    alpha = block(passage, 1, "Mira Stone directed it.", headings=["Alpha"])
    led = {"chunk_id": "c1", "name": "Mira Stone"}
    table = block(passage, 2, "Tom Hale was born in Aldport.", "Mira Stone was born in Halden.", led_by=led)
    quoted = texts(quotes_for(asked, [alpha, table], AfterABridge(2, -1, 4)))
    assert quoted == ["Mira Stone directed it.", "Mira Stone was born in Halden."]


@pytest.mark.parametrize(
    ("question", "text", "quoted"),
    [
        ("What is the 2024 budget?", "The 2025 budget is 20 crowns.", False),
        ("What is the budget of 2024?", "The budget of 2025 is 20 crowns.", False),
        ("Wie hoch ist das Budget von 2024?", "Das Budget von 2025 beträgt 20 Kronen.", False),
        ("What is the 2025 budget?", "The 2025 budget is 20 crowns.", True),
        ("What is the budget?", "The 2025 budget is 20 crowns.", True),
        ("What are the dues in 2026?", "The dues since January 2025 are 9 crowns.", True),
        ("How many boats were there in 2024?", "There were 12 boats by the end of 2023.", True),
        ("What was built after 2010?", "The pier was built in 2015.", True),
        ("Who led the port in 2011?", "Mira Stone led the port 2009 and again 2014.", True),
        ("How many berths were there in 2024?", "There are 2025.5 metres of berths.", True),
    ],
)
def test_what_is_said_of_another_year_is_no_answer(passage: Any, question: str, text: str, quoted: bool) -> None:
    """Where the passage never names the year that is asked about, unless a year ends a time or stands around it."""
    assert bool(quotes_for(question, [block(passage, 1, text)], Given(4))) is quoted


def test_a_year_may_stand_elsewhere_in_the_passage(passage: Any) -> None:
    """In its headings, its file's name or another sentence: then the sentence may well be of it."""
    asked, text = "What is the 2024 budget?", "The plan of 2023 gives it 20 crowns."
    for named in ({"headings": ["Budget 2024"]}, {"file_name": "budget-2024.md"}):
        assert quotes_for(asked, [block(passage, 1, text, **named)], Given(4))
    assert quotes_for(asked, [block(passage, 1, "This is about 2024.", text)], Given(4, 4))
