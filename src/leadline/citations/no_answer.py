"""Whether a sentence says that the documents hold no answer.

Knows the token that the prompts ask for and the usual phrases of a few languages. Such a sentence claims nothing.
"""

import re

NO_ANSWER = "NO_ANSWER"

_SOURCES = r"(?:documents?|passages?|sources?|context|texts?|evidence|excerpts?|files?|information|material|data)"
_PHRASES = re.compile(
    rf"""\b{_SOURCES}\b[^.]{{0,40}}\b(?:do(?:es)?[ ](?:not|n[’']t)|don[’']t|doesn[’']t|did[ ]not)[ ]
      (?:explicitly[ ]|directly[ ]|specifically[ ]|actually[ ])?
      (?:(?:say|mention|state|specify|answer|tell|address|discuss|indicate|reveal|describe)\b
      |(?:contain|include|provide|give|offer|have|hold)[ ](?:\w+[ ]){{0,3}}?
        (?:information|answers?|details?|mention|data)\b
      )
    |\b(?:no|not[ ]enough|insufficient)[ ](?:relevant[ ])?(?:information|evidence|answer|mention|details)\b
      [^.]{{0,60}}\b{_SOURCES}\b
    |\b(?:is|are|was|were)[ ](?:not|n[’']t)[ ](?:mentioned|stated|specified|given|provided|answered|found|addressed)[ ]
      (?:in|by|within)[ ](?:the|these|your|any)\b[^.]{{0,20}}\b{_SOURCES}
    |\bI[ ](?:can[ ]?not|can[’']t|could[ ]not|couldn[’']t|was[ ]unable[ ]to)[ ](?:find|answer|determine)\b
    |\bI[ ](?:do[ ]not|don[’']t)[ ]know\b|\bunable[ ]to[ ](?:find|answer|determine)\b
    |\b(?:dokumente?n?|quellen?|texte?n?|kontext|passagen?|auszüge?n?)\b[^.]{{0,50}}
      \b(?:keine?[ ](?:\w+[ ])?(?:informationen?|angaben?|antwort|auskunft|hinweise?)
      |nicht[ ](?:erwähnt|genannt|angegeben))
    |\bich[ ](?:weiß|weiss)[ ](?:es[ ])?nicht\b
    |\b(?:documents?|sources?|textes?|contexte|extraits?|passages?)\b[^.]{{0,30}}\bne[ ](?:\w+[ ]){{0,2}}?
      (?:mentionn\w+|contien\w+|précis\w+|indiqu\w+|répond\w+|di[st]\w*)[ ](?:pas|aucune?)
    |\bje[ ]ne[ ]sais[ ]pas\b
    |\b(?:documentos?|fuentes?|textos?|contexto|pasajes?|fragmentos?)\b[^.]{{0,30}}\bno[ ]
      (?:menciona\w*|contiene\w*|indica\w*|dice\w*|especifica\w*|proporciona\w*|responde\w*)\b
    |\bno[ ](?:lo[ ])?sé\b
    |(?:文档|文件|资料|来源|上下文|文中|材料)[^。]{{0,12}}(?:没有|未|不)(?:提到|提及|说明|包含|涉及|回答)
    |(?:資料|文書|文献|本文|文脈|ドキュメント)[^。]{{0,20}}(?:ありません|記載されていません|書かれていません|含まれていません)
    |(?:المستندات|الوثائق|النص|المصادر)[^.]{{0,20}}\bلا[ ](?:تذكر|تحتوي|يذكر|يحتوي)""",
    re.IGNORECASE | re.VERBOSE,
)

# With the blanks and signs around it and the marks behind it. Blanks are read from their first only, or a long run of
# them takes time by its square.
_TOKEN = re.compile(
    rf"(?:(?<![ \t])[ \t]++)?[*`\"'(]{{0,2}}(?<![A-Za-z0-9_]){NO_ANSWER}(?![A-Za-z0-9_])[*`\"')]{{0,2}}"
    r"(?: ?\[\d{1,3}\]){0,3}[.:;,!]?"
)


def without_token(answer: str) -> str:
    """The answer without the token in it; an answer that is nothing but the token stays as it is."""
    rest = _TOKEN.sub("", answer)
    return rest.strip() if rest != answer and any(c.isalnum() for c in rest) else answer


def says_no_answer(sentence: str) -> bool:
    """Whether the sentence says that there is no answer in the documents, or is the token NO_ANSWER."""
    return sentence.strip(" .*`\"'").upper().replace(" ", "_") == NO_ANSWER or bool(_PHRASES.search(sentence))
