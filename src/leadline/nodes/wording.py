"""The few sentences that Leadline says in its own words, in the languages it knows them in.

Knows greetings and thanks, the replies to them, and how to say that the documents hold no answer. Everything else a
run says comes from documents or an LLM. The language is told by script and by the commonest words: enough for these
sentences, not for anything else.
"""

import re
from collections.abc import Sequence
from typing import Literal

Language = Literal["en", "de", "es", "fr", "zh", "ar", "ja"]
Talk = Literal["greeting", "thanks", "farewell", "about"]


def _phrases(text: str) -> frozenset[str]:
    return frozenset(text.split("|"))


_SAID: dict[Talk, frozenset[str]] = {
    "greeting": _phrases(
        "hi|hello|hey|hi there|hello there|hey there|good morning|good afternoon|good evening|how are you|hallo|"
        "guten tag|guten morgen|guten abend|hola|buenos días|buenas tardes|bonjour|salut|bonsoir|你好|您好|早上好|"
        "こんにちは|おはよう|مرحبا|السلام عليكم"
    ),
    "thanks": _phrases(
        "thanks|thank you|thank you very much|thanks a lot|many thanks|thx|danke|vielen dank|danke schön|gracias|"
        "muchas gracias|merci|merci beaucoup|谢谢|谢谢你|ありがとう|ありがとうございます|شكرا"
    ),
    "farewell": _phrases(
        "bye|goodbye|bye bye|see you|good night|tschüss|auf wiedersehen|adiós|hasta luego|au revoir|再见|"
        "さようなら|مع السلامة"
    ),
    "about": _phrases(
        "who are you|what are you|what can you do|help|wer bist du|was kannst du|quién eres|qué puedes hacer|"
        "qui es-tu|que peux-tu faire|你是谁|你能做什么|あなたは誰ですか|من أنت"
    ),
}

_HELLO: dict[Language, str] = {
    "en": "Hello! Ask me something about your documents.",
    "de": "Hallo! Frag mich etwas zu deinen Dokumenten.",
    "es": "¡Hola! Pregúntame algo sobre tus documentos.",
    "fr": "Bonjour ! Posez-moi une question sur vos documents.",
    "zh": "你好！请就你的文档提问。",
    "ja": "こんにちは！文書について質問してください。",
    "ar": "مرحبا! اسألني عن مستنداتك.",
}
_WELCOME: dict[Language, str] = {
    "en": "You're welcome.",
    "de": "Gern geschehen.",
    "es": "De nada.",
    "fr": "Avec plaisir.",
    "zh": "不客气。",
    "ja": "どういたしまして。",
    "ar": "على الرحب والسعة.",
}
_GOODBYE: dict[Language, str] = {
    "en": "Goodbye!",
    "de": "Auf Wiedersehen!",
    "es": "¡Hasta luego!",
    "fr": "Au revoir !",
    "zh": "再见！",
    "ja": "さようなら！",
    "ar": "مع السلامة!",
}
_ABOUT: dict[Language, str] = {
    "en": "I answer questions from your documents and cite the passages I used. What would you like to know?",
    "de": "Ich beantworte Fragen aus deinen Dokumenten und nenne die Stellen. Was möchtest du wissen?",
    "es": "Respondo preguntas con tus documentos y cito los pasajes. ¿Qué quieres saber?",
    "fr": "Je réponds à partir de vos documents et cite les passages. Que voulez-vous savoir ?",
    "zh": "我根据你的文档回答问题，并注明出处。你想知道什么？",
    "ja": "文書をもとに質問に答え、出典を示します。何を知りたいですか？",
    "ar": "أجيب عن الأسئلة من مستنداتك وأذكر المواضع. ماذا تريد أن تعرف؟",
}
_REPLIES: dict[Talk, dict[Language, str]] = {
    "greeting": _HELLO,
    "thanks": _WELCOME,
    "farewell": _GOODBYE,
    "about": _ABOUT,
}

_NO_ANSWER: dict[Language, str] = {
    "en": "I don't find the answer in the documents.",
    "de": "In den Dokumenten finde ich keine Antwort darauf.",
    "es": "No encuentro la respuesta en los documentos.",
    "fr": "Je ne trouve pas la réponse dans les documents.",
    "zh": "我在文档中没有找到答案。",
    "ja": "文書の中に答えが見つかりません。",
    "ar": "لا أجد الإجابة في المستندات.",
}
_NEAREST: dict[Language, str] = {
    "en": "Nearest passages: {names}.",
    "de": "Am nächsten liegende Stellen: {names}.",
    "es": "Pasajes más cercanos: {names}.",
    "fr": "Passages les plus proches : {names}.",
    "zh": "最接近的段落：{names}。",
    "ja": "最も近い箇所：{names}。",
    "ar": "أقرب المقاطع: {names}.",
}

_SCRIPTS: tuple[tuple[Language, re.Pattern[str]], ...] = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
)
_WORDS: dict[Language, frozenset[str]] = {
    "de": _phrases(
        "der|die|das|ist|und|wie|wer|wann|wo|welche|welcher|warum|ein|eine|nicht|hallo|guten|danke|dank|tschüss|bist"
    ),
    "es": _phrases(
        "el|la|los|las|es|y|cómo|quién|cuándo|dónde|qué|cuál|por|un|una|hola|buenos|buenas|gracias|eres|hasta|adiós"
    ),
    "fr": _phrases(
        "le|la|les|est|et|comment|qui|quand|où|quel|quelle|pourquoi|un|une|des|bonjour|bonsoir|merci|salut|es|tu|revoir"
    ),
}


def language_of(text: str) -> Language:
    """The language to say a fixed sentence in; English where none is told."""
    for language, script in _SCRIPTS:
        if script.search(text):
            return language
    words = re.findall(r"\w+", text.lower())
    counts = {language: sum(word in known for word in words) for language, known in _WORDS.items()}
    best = max(counts, key=lambda language: counts[language])
    return best if counts[best] else "en"


def small_talk(message: str) -> str | None:
    """The reply to a greeting, thanks or the like; None where the message is anything more than that."""
    said = re.sub(r"[\s!?.,;:¡¿！？。、，…]+", " ", message.lower()).strip()
    for talk, known in _SAID.items():
        if said in known:
            return _REPLIES[talk][language_of(said)]
    return None


def abstention(question: str, file_names: Sequence[str]) -> str:
    """Says that the documents hold no answer, and which files came nearest."""
    language = language_of(question)
    if not file_names:
        return _NO_ANSWER[language]
    return f"{_NO_ANSWER[language]} {_NEAREST[language].format(names=', '.join(file_names))}"
