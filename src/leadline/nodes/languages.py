"""Which language a person asks in: told by script, by the commonest words, and by a model of languages last.

For the choice of a fixed sentence and of a rule. A question of few words can be told wrongly; where nothing speaks for
a language it counts as English.
"""

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

# Languages that the model is asked for: those that share a script, and have a sentence to be said in.
_LATIN: Final = (
    "en",
    "de",
    "es",
    "fr",
    "it",
    "pt",
    "nl",
    "pl",
    "sv",
    "da",
    "no",
    "fi",
    "cs",
    "tr",
    "hu",
    "ro",
    "vi",
    "id",
)
_CYRILLIC: Final = ("ru", "uk", "bg", "sr")
SURE: Final = 0.75

_SCRIPTS: Final = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af\u1100-\u11ff]")),
    ("zh", re.compile(r"[\u3400-\u9fff]")),
    ("el", re.compile(r"[\u0370-\u03ff]{2}")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
)
_CYRILLIC_LETTER: Final = re.compile(r"[\u0400-\u04ff]")
_ARABIC_LETTER: Final = re.compile(r"[\u0600-\u06ff]")


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in text.split() if len(word) > 1)  # a letter alone is anything


_COMMON: Final = {
    "en": _words(
        """the is are was were what who when where which why how does do did of and or in to for that this it he she
        they his her its their has have had can could will would should there about with from by hello hi thanks thank
        you bye not be"""
    ),
    "de": _words(
        """der die das den dem des ist sind war waren und oder wie wer wann wo wohin woher wozu womit welche welcher
        welches welchen welchem warum wieso weshalb was ein eine einen einem einer nicht kein keine hat haben hatte wird
        werden wurde wurden kann können für mit von vom zum zur bei im auf aus sein seine ihr ihre es er sie ich hallo
        guten danke dank tschüss bist"""
    ),
    "es": _words(
        """el la los las lo es son era fue fueron y o cómo quién quiénes cuándo dónde qué cuál cuáles cuánto cuánta
        cuántos cuántas por para de del al en un una unos unas su sus se con hay está están tiene tienen hola buenos
        buenas gracias eres hasta adiós que no"""
    ),
    "fr": _words(
        """le la les l est sont était fut et ou comment qui quand où quel quelle quels quelles pourquoi combien que quoi
        un une des du de au aux en dans pour par avec sur ce cette ces son sa ses leur il elle ils elles a ont été
        bonjour bonsoir merci salut es tu revoir qu pas"""
    ),
    "it": _words(
        """il lo la gli le è sono era fu e o come chi quando dove quale quali perché cosa che un una di del della dello
        dei delle in nel nella per con da dal dalla su suo sua suoi ha hanno quanto quanta quanti quante ciao grazie
        viene stato stata non"""
    ),
    "pt": _words(
        """o a os as é são era foi foram e ou como quem quando onde qual quais por que porque um uma de do da dos das em
        no na nos nas para com seu sua seus suas ele ela tem têm quanto quanta quantos quantas olá obrigado obrigada não
        está"""
    ),
    "nl": _words(
        """de het een is zijn was waren en of hoe wie wanneer waar welke welk waarom wat van in op voor met door uit bij
        naar niet geen heeft hebben had wordt werd werden kan kunnen hun haar hij zij hallo dank bedankt hoeveel kost"""
    ),
}


def language_of(text: str) -> str:
    """ISO 639-1 code; `en` where none is told."""
    for language, script in _SCRIPTS:
        if script.search(text):
            return language
    if _ARABIC_LETTER.search(text):
        return "ur" if re.search("[ٹڈڑےں]", text) else "fa" if re.search("[پچژگکی]", text) else "ar"
    if _CYRILLIC_LETTER.search(text):
        return "uk" if re.search("[іїєґІЇЄҐ]", text) else _told(text, _CYRILLIC, "ru")
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = {language: sum(word in known for word in words) for language, known in _COMMON.items()}
    first, second = sorted(counts.values(), reverse=True)[:2]
    if first > second:
        return max(counts, key=lambda language: counts[language])
    best = {language for language, count in counts.items() if count == first}
    return _told(text, _LATIN if "en" in best else tuple(best), "en")


def load() -> None:
    """Reads the model now, which takes a second, for whoever may not wait in the midst of a question: a server."""
    _identifier()


def _told(text: str, among: tuple[str, ...], otherwise: str) -> str:
    """What the model says, where it is sure that it is one of these."""
    ranked = {str(code): float(probability) for code, probability in _identifier().rank(text) if code in among}
    total = sum(ranked.values())
    best = max(ranked, key=lambda code: ranked[code])
    return best if total and ranked[best] / total >= SURE else otherwise


@lru_cache(maxsize=1)
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # takes half a second, and few questions need it

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
