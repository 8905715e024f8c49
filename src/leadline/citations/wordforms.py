"""Forms that no rule of endings leads back to each other: won and win, children and child, Dutch and Netherlands.

Only forms that mean nothing else are here: `left`, `found` and `saw` are words of their own too.
"""

from leadline.analysis import english_stem

_FORMS = """arise arose arisen|awake awoke awoken|become became|begin began begun|bind bound|bite bit bitten|bleed bled
|blow blew blown|break broke broken|breed bred|bring brought|build built|burn burnt|buy bought|catch caught
|choose chose chosen|cling clung|come came|creep crept|deal dealt|dig dug|draw drew drawn|dream dreamt
|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought|flee fled
|fly flew flown|forbid forbade forbidden|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen
|get got gotten|give gave given|go went gone|grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept
|kneel knelt|know knew known|lay laid|lead led|learn learnt|lend lent|lose lost|make made|mean meant|meet met|pay paid
|prove proven|ride rode ridden|rise rose risen|run ran|say said|seek sought|sell sold|send sent|shake shook shaken
|shine shone|shoot shot|show shown|shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid
|speak spoke spoken|spend spent|spin spun|spring sprang sprung|stand stood|steal stole stolen|stick stuck
|strike struck stricken|strive strove|swear swore sworn|sweep swept|swim swam swum|swing swung|take took taken
|teach taught|tear tore torn|tell told|think thought|throw threw thrown|understand understood|undertake undertook
|uphold upheld|wake woke woken|wear wore worn|weave wove woven|weep wept|win won|withdraw withdrew withdrawn
|withstand withstood|write wrote written|overcome overcame|overthrow overthrew overthrown|oversee oversaw
|child children|man men|woman women|foot feet|tooth teeth|mouse mice|person people|medium media|criterion criteria
|phenomenon phenomena|bacterium bacteria"""
_BASE = {
    english_stem(form): english_stem(forms.split()[0])
    for forms in _FORMS.replace("\n", " ").split("|")
    for form in forms.split()[1:]
}


def base_form(term: str) -> str:
    """The base of an irregular form, every other term as it is. Terms are the analyser's, stemmed."""
    return _BASE.get(term, term)


_PLACES = """france french|china chinese|spain spanish|britain british uk|england english|scotland scottish
|ireland irish|wales welsh|netherlands holland dutch|switzerland swiss|greece greek|poland polish|denmark danish
|sweden swedish|finland finnish|turkey turkish|norway norwegian|portugal portuguese|normandy norman|rome roman
|soviet ussr|u.s usa america american|germany german deutschland|philippines filipino|iraq iraqi|israel israeli
|pakistan pakistani|iceland icelandic|cyprus cypriot|thailand thai|venice venetian|vienna viennese|naples neapolitan
|europe european eu|catholicism catholic|protestantism protestant|islam islamic muslim
|judaism jewish|christianity christian"""
_PLACE = {form: forms.split()[0] for forms in _PLACES.replace("\n", " ").split("|") for form in forms.split()}


def same_place(word: str) -> str:
    """A country, and a few cities and faiths, for their people and short names; "" for every other word."""
    return _PLACE.get(word) or _PLACE.get(word.removesuffix("s"), "")
