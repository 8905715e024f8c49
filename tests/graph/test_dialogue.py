"""Conversations of several turns in five languages: topics that stay, topics that change, and small talk between."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.servers.chat_server import LITELLM_WARNINGS, ChatServer, Reply, says

from leadline.config import RunContext, Settings
from leadline.graph.conversations import open_conversations
from leadline.graph.run import App

pytestmark = LITELLM_WARNINGS

# What is said, and as what it is understood; None: small talk.
DIALOGUES = {
    "en": [
        ("What does Acme Corp make?", "What does Acme Corp make?"),
        ("Who founded it?", "Who founded it? (Acme Corp)"),
        ("Thanks!", None),
        ("Since when?", "Since when? (Acme Corp)"),
        ("How do I prune roses?", "How do I prune roses?"),
        ("Hello!", None),
        ("Where should I cut them?", "Where should I cut them? (prune, roses)"),
    ],
    "de": [
        ("Was stellt Acme her?", "Was stellt Acme her?"),
        ("Wer hat sie gegründet?", "Wer hat sie gegründet? (Acme)"),
        ("Danke!", None),
        ("Und Globex?", "Wer hat sie gegründet? (Globex)"),
        ("Wie viel Wasser brauchen Tomaten?", "Wie viel Wasser brauchen Tomaten?"),
        ("Seit wann?", "Seit wann? (Wasser, Tomaten)"),
    ],
    "es": [
        ("¿Qué fabrica Acme?", "¿Qué fabrica Acme?"),
        ("¿Cuándo se fundó?", "¿Cuándo se fundó? (Acme)"),
        ("¡Gracias!", None),
        ("¿Y Globex?", "¿Cuándo se fundó? (Globex)"),
        ("¿Cuándo se podan las rosas?", "¿Cuándo se podan las rosas?"),
    ],
    "fr": [
        ("Que fabrique Acme ?", "Que fabrique Acme ?"),
        ("Quand a-t-elle été fondée ?", "Quand a-t-elle été fondée ? (Acme)"),
        ("Merci !", None),
        ("Et Globex ?", "Quand a-t-elle été fondée ? (Globex)"),
        ("Qu'est-ce que le compost ?", "Qu'est-ce que le compost ?"),
    ],
    "zh": [
        ("北京大学在哪里？", "北京大学在哪里？"),
        ("它是什么时候成立的？", "它是什么时候成立的？（北京大学）"),
        ("谢谢", None),
        ("那上海大学呢？", "它是什么时候成立的？（上海大学）"),
        ("玫瑰什么时候修剪？", "玫瑰什么时候修剪？"),
    ],
}
ABSTENTIONS = [
    ("Who signed the treaty of Quokka?", "I don't find the answer"),
    ("Wer hat den Vertrag von Quokka unterschrieben?", "finde ich keine Antwort"),
    ("¿Quién firmó el tratado de Quokka?", "No encuentro la respuesta"),
    ("Qui a signé le traité de Quokka ?", "Je ne trouve pas la réponse"),
    ("谁签署了条约？", "没有找到答案"),
    ("Chi ha firmato il trattato di Quokka?", "Non trovo la risposta"),
    ("Кто подписал договор?", "Я не нахожу ответа"),
    ("Kto podpisał traktat z Quokka?", "Nie znajduję odpowiedzi"),
]


@pytest.fixture
async def app(tmp_path: Path, over: Any, garden: Any) -> AsyncIterator[App]:
    """Toy legs over a garden, and conversations in a file."""
    settings = Settings(data_dir=tmp_path)
    async with open_conversations(settings) as conversations:
        library: Any = None
        yield App(settings, library, conversations, over(garden))


@pytest.mark.parametrize("language", list(DIALOGUES))
async def test_topics_stay_and_change(app: App, language: str) -> None:
    """A follow-up is about the topic before it, over small talk too; a new topic has nothing of the old one."""
    for said, understood in DIALOGUES[language]:
        result = await app.ask(said, thread_id=language)
        assert result["question"] == (understood or said)
        assert result["degraded"] == []
        assert bool(result["queries"]) == (understood is not None)


@pytest.mark.parametrize(("question", "words"), ABSTENTIONS)
async def test_an_abstention_is_in_the_language_of_the_question(app: App, question: str, words: str) -> None:
    """Also beyond the languages that small talk is known in, and also in a conversation that began in another."""
    await app.ask("When are roses pruned?", thread_id="t")
    result = await app.ask(question, thread_id="t")
    assert result["status"] == "abstained"
    assert words in result["answer"]


async def test_an_llm_sees_the_conversation_and_its_rewrite_is_searched_for(
    tmp_path: Path, over: Any, garden: Any, llm_behind: Any, chat_server: ChatServer
) -> None:
    """From turn two on: what was said is in its prompt, what it makes of the follow-up is the question; where it drags
    in what nobody spoke of, the rule's question stands."""
    rewrites = iter(["Where should I cut the roses?", "When did Globex buy the roses in 2011?"])

    def reply(request: dict[str, Any]) -> Reply:
        system = request["messages"][0]["content"]
        return says("Roses are pruned in early spring [1]." if "numbered passages" in system else next(rewrites))

    chat_server.script(reply)
    settings, context = Settings(data_dir=tmp_path), RunContext(llm="openai/scripted", max_retries=0)
    async with open_conversations(settings) as conversations:
        library: Any = None
        app = App(settings, library, conversations, over(garden, chat=llm_behind()))
        await app.ask("When are roses pruned?", context=context, thread_id="t")
        assert len(chat_server.requests) == 1, "a first question is not rewritten"
        await app.ask("Thanks!", context=context, thread_id="t")
        chat_server.requests.clear()
        second = await app.ask("Where should I cut them?", context=context, thread_id="t")
        assert second["question"] == "Where should I cut the roses?"
        shown = chat_server.requests[0]["messages"][1]["content"]
        assert "When are roses pruned?" in shown
        assert "early spring" in shown
        third = await app.ask("And when was that?", context=context, thread_id="t")
    assert third["question"] == "And when was that? (cut, roses)"
    assert "planner" in third["degraded"]
