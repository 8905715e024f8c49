"""The citations of an answer whose check broke: its marks lead to the passages that they name, and none is verified."""

from collections.abc import Sequence

from leadline.citations.markers import clean_answer
from leadline.citations.no_answer import without_token
from leadline.citations.sentences import answer_sentences
from leadline.records import Citation, EvidenceBlock


def unchecked_citations(answer: str, evidence: Sequence[EvidenceBlock]) -> tuple[str, list[Citation]]:
    """The answer with only those marks that lead somewhere, and where: to the sentence itself if the passage has it
    word for word, else to the first sentence of the passage that the writer saw."""
    blocks = {block["n"]: block for block in evidence if block["sentences"]}
    text, _ = clean_answer(without_token(answer), set(blocks))
    citations = [
        _citation(sentence.text, blocks[n])
        for sentence in answer_sentences(text, "en")
        for n in sorted(set(sentence.numbers))
        if n in blocks
    ]
    return text, citations


def _citation(sentence: str, block: EvidenceBlock) -> Citation:
    content, metadata = block["document"]["content"], block["document"]["metadata"]
    start, end, _ = block["sentences"][0]
    wanted = sentence.strip()
    if wanted and (found := content.find(wanted.rstrip(".!?。！？"))) >= 0:
        start, end = found, found + len(wanted.rstrip(".!?。！？"))
        end += content.startswith(wanted[-1], end) and not content[start:end].endswith(wanted[-1])
    offset = int(metadata.get("start_char") or 0)
    return {
        "n": block["n"],
        "chunk_id": block["chunk_id"],
        "doc_id": str(metadata.get("doc_id", "")),
        "file_name": str(metadata.get("file_name", "")),
        "page": metadata.get("page"),
        "start_char": offset + start,
        "end_char": offset + end,
        "quote": content[start:end],
        "sentence": sentence,
        "verified": False,
        "source_type": str(metadata.get("source_type", "file")),
        "url": metadata.get("url"),
        "retrieved_at": metadata.get("retrieved_at"),
    }
