"""The few sentences that Leadline says in its own words, in the languages it knows them in.

Knows greetings and thanks, the replies to them, and how to say that the documents hold no answer. Everything else a
run says comes from documents or an LLM. What there is no sentence for in a language is said in English.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal

from leadline.nodes.languages import language_of

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

_HELLO: dict[str, str] = {
    "en": "Hello! Ask me something about your documents.",
    "de": "Hallo! Frag mich etwas zu deinen Dokumenten.",
    "es": "¡Hola! Pregúntame algo sobre tus documentos.",
    "fr": "Bonjour ! Posez-moi une question sur vos documents.",
    "zh": "你好！请就你的文档提问。",
    "ja": "こんにちは！文書について質問してください。",
    "ar": "مرحبا! اسألني عن مستنداتك.",
}
_WELCOME: dict[str, str] = {
    "en": "You're welcome.",
    "de": "Gern geschehen.",
    "es": "De nada.",
    "fr": "Avec plaisir.",
    "zh": "不客气。",
    "ja": "どういたしまして。",
    "ar": "على الرحب والسعة.",
}
_GOODBYE: dict[str, str] = {
    "en": "Goodbye!",
    "de": "Auf Wiedersehen!",
    "es": "¡Hasta luego!",
    "fr": "Au revoir !",
    "zh": "再见！",
    "ja": "さようなら！",
    "ar": "مع السلامة!",
}
_ABOUT: dict[str, str] = {
    "en": "I answer questions from your documents and cite the passages I used. What would you like to know?",
    "de": "Ich beantworte Fragen aus deinen Dokumenten und nenne die Stellen. Was möchtest du wissen?",
    "es": "Respondo preguntas con tus documentos y cito los pasajes. ¿Qué quieres saber?",
    "fr": "Je réponds à partir de vos documents et cite les passages. Que voulez-vous savoir ?",
    "zh": "我根据你的文档回答问题，并注明出处。你想知道什么？",
    "ja": "文書をもとに質問に答え、出典を示します。何を知りたいですか？",
    "ar": "أجيب عن الأسئلة من مستنداتك وأذكر المواضع. ماذا تريد أن تعرف؟",
}
_REPLIES: dict[Talk, dict[str, str]] = {
    "greeting": _HELLO,
    "thanks": _WELCOME,
    "farewell": _GOODBYE,
    "about": _ABOUT,
}

# That the documents hold no answer, and which passages came nearest.
_NO_ANSWER: Final[dict[str, tuple[str, str]]] = {
    "en": ("I don't find the answer in the documents.", "Nearest passages: {names}."),
    "de": ("In den Dokumenten finde ich keine Antwort darauf.", "Am nächsten liegende Stellen: {names}."),
    "es": ("No encuentro la respuesta en los documentos.", "Pasajes más cercanos: {names}."),
    "fr": ("Je ne trouve pas la réponse dans les documents.", "Passages les plus proches : {names}."),
    "zh": ("我在文档中没有找到答案。", "最接近的段落：{names}。"),
    "ja": ("文書の中に答えが見つかりません。", "最も近い箇所：{names}。"),
    "ar": ("لا أجد الإجابة في المستندات.", "أقرب المقاطع: {names}."),
    "it": ("Non trovo la risposta nei documenti.", "Passaggi più vicini: {names}."),
    "pt": ("Não encontro a resposta nos documentos.", "Trechos mais próximos: {names}."),
    "nl": ("Ik vind het antwoord niet in de documenten.", "Dichtstbijzijnde passages: {names}."),
    "pl": ("Nie znajduję odpowiedzi w dokumentach.", "Najbliższe fragmenty: {names}."),
    "cs": ("Odpověď v dokumentech nenacházím.", "Nejbližší pasáže: {names}."),
    "ru": ("Я не нахожу ответа в документах.", "Ближайшие фрагменты: {names}."),
    "uk": ("Я не знаходжу відповіді в документах.", "Найближчі уривки: {names}."),
    "sv": ("Jag hittar inte svaret i dokumenten.", "Närmaste avsnitt: {names}."),
    "da": ("Jeg finder ikke svaret i dokumenterne.", "Nærmeste afsnit: {names}."),
    "no": ("Jeg finner ikke svaret i dokumentene.", "Nærmeste avsnitt: {names}."),
    "fi": ("En löydä vastausta asiakirjoista.", "Lähimmät kohdat: {names}."),
    "tr": ("Yanıtı belgelerde bulamıyorum.", "En yakın bölümler: {names}."),
    "hu": ("Nem találom a választ a dokumentumokban.", "Legközelebbi részek: {names}."),
    "ro": ("Nu găsesc răspunsul în documente.", "Cele mai apropiate pasaje: {names}."),
    "el": ("Δεν βρίσκω την απάντηση στα έγγραφα.", "Πλησιέστερα αποσπάσματα: {names}."),
    "he": ("לא מצאתי את התשובה במסמכים.", "הקטעים הקרובים ביותר: {names}."),
    "fa": ("پاسخ را در اسناد پیدا نمی‌کنم.", "نزدیک‌ترین بخش‌ها: {names}."),
    "hi": ("मुझे दस्तावेज़ों में उत्तर नहीं मिला।", "सबसे नज़दीकी अंश: {names}।"),
    "th": ("ไม่พบคำตอบในเอกสาร", "ข้อความที่ใกล้เคียงที่สุด: {names}"),
    "ko": ("문서에서 답을 찾지 못했습니다.", "가장 가까운 구절: {names}."),
    "vi": ("Tôi không tìm thấy câu trả lời trong các tài liệu.", "Các đoạn gần nhất: {names}."),
    "id": ("Saya tidak menemukan jawabannya dalam dokumen.", "Bagian terdekat: {names}."),
}

# How many documents are not in yet, so that the answer may be in them: in one form for every number.
_ONE_INDEXED: Final = "1 document is still being indexed."
_BEING_INDEXED: Final[dict[str, str]] = {
    "en": "{n} documents are still being indexed.",
    "de": "Dokumente, die noch indexiert werden: {n}.",
    "es": "Documentos que aún se están indexando: {n}.",
    "fr": "Documents encore en cours d'indexation : {n}.",
    "zh": "仍在建立索引的文档：{n} 个。",
    "ja": "索引を作成中の文書：{n} 件。",
    "ar": "مستندات لا تزال قيد الفهرسة: {n}.",
    "it": "Documenti ancora in fase di indicizzazione: {n}.",
    "pt": "Documentos ainda em indexação: {n}.",
    "nl": "Documenten die nog worden geïndexeerd: {n}.",
    "pl": "Dokumenty w trakcie indeksowania: {n}.",
    "cs": "Dokumenty, které se ještě indexují: {n}.",
    "ru": "Документы, которые ещё индексируются: {n}.",
    "uk": "Документи, які ще індексуються: {n}.",
    "sv": "Dokument som fortfarande indexeras: {n}.",
    "da": "Dokumenter, der stadig indekseres: {n}.",
    "no": "Dokumenter som fortsatt indekseres: {n}.",
    "fi": "Vielä indeksoitavat asiakirjat: {n}.",
    "tr": "Hâlâ dizine eklenen belgeler: {n}.",
    "hu": "Még indexelés alatt álló dokumentumok: {n}.",
    "ro": "Documente încă în curs de indexare: {n}.",
    "el": "Έγγραφα που ευρετηριάζονται ακόμη: {n}.",
    "he": "מסמכים שעדיין נוספים לאינדקס: {n}.",
    "fa": "اسنادی که هنوز در حال نمایه‌سازی‌اند: {n}.",
    "hi": "अभी अनुक्रमित हो रहे दस्तावेज़: {n}।",
    "th": "เอกสารที่กำลังจัดทำดัชนี: {n}",
    "ko": "아직 색인 중인 문서: {n}개.",
    "vi": "Tài liệu còn đang được lập chỉ mục: {n}.",
    "id": "Dokumen yang masih diindeks: {n}.",
}


def small_talk(message: str) -> str | None:
    """The reply to a greeting, thanks or the like; None where the message is anything more than that."""
    said = re.sub(r"[\s!?.,;:¡¿！？。、，…]+", " ", message.lower()).strip()
    for talk, known in _SAID.items():
        if said in known:
            return _REPLIES[talk].get(language_of(said), _REPLIES[talk]["en"])
    return None


def abstention(question: str, file_names: Sequence[str], indexing: int = 0) -> str:
    """Says that the documents hold no answer, which files came nearest, and how many are still being indexed."""
    language = language_of(question)
    language = language if language in _NO_ANSWER else "en"
    nothing, nearest = _NO_ANSWER[language]
    said = [nothing]
    if file_names:
        said.append(nearest.format(names=", ".join(file_names)))
    if indexing:
        said.append(_ONE_INDEXED if indexing == 1 and language == "en" else _BEING_INDEXED[language].format(n=indexing))
    return " ".join(said)
