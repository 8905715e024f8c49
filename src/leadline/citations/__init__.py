"""Citations: reading the marks of an answer and checking each sentence against the place it cites. Pure functions."""

from leadline.citations.answers import AnswerCheck, Claim, check_answer
from leadline.citations.markers import Marker, MarkerStream, clean_answer, parse_markers
from leadline.citations.meaning import Meaning, MeaningByLikeness
from leadline.citations.mending import rewritten, without
from leadline.citations.no_answer import NO_ANSWER, says_no_answer
from leadline.citations.rules import Problem, check_sentence
from leadline.citations.sentences import Sentence, answer_sentences

__all__ = [
    "NO_ANSWER",
    "AnswerCheck",
    "Claim",
    "Marker",
    "MarkerStream",
    "Meaning",
    "MeaningByLikeness",
    "Problem",
    "Sentence",
    "answer_sentences",
    "check_answer",
    "check_sentence",
    "clean_answer",
    "parse_markers",
    "rewritten",
    "says_no_answer",
    "without",
]
