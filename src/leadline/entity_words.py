"""Words that are never part of a name where they stand: the lists behind `entities`."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ARTICLES = _words("the a an der die das ein eine le la les un une el los las il lo gli")

# Small, between the words of a name: first one of these, then perhaps one of the others.
PARTICLES = _words("of de du des von van der del di da dos für")
FURTHER_PARTICLES = _words("the la le der den las los")

STOP_WORDS = ARTICLES | _words(
    """about above after again all also although am among an and any are as at be because been before being below
    between both but by can could did do does down during each either else ever every few for from further had has
    have he her here hers him his how however i if in into is it its itself just least less like many may me might
    more most much must my neither no nor not now of off often on once one only or other others our out over own per
    rather same several shall she should since so some such than that their theirs them then there therefore these
    they this those though through thus to too under until up upon us very via was we were what when where whereas
    whether which while who whom whose why will with within without would yes yet you your yours
    aber als am an auch auf aus bei beim bis da dann dass dem den des dieser dieses diese doch dort durch er es für
    hat haben ich ihr im in ist ja kann kein keine können man mit muss nach nicht noch nur ob oder sein seine sich
    sie sind so über um und uns unter vom von vor war waren warum was wann welche welcher welches wenn wer werden wie
    wir wird wo wohin woher zu zum zur
    qui que quoi quel quelle quand où pourquoi comment est et dans pour avec sur
    qué quién cuándo dónde cómo por para con es son"""
)

# At the start of a sentence or a question, before a name.
LEADING = STOP_WORDS | _words(
    """according additionally ask besides called check compare consider contact convert count create define describe
    despite discuss display draw evaluate explain fetch finally find first furthermore get give hello hence hi
    identify indeed instead later let list look mention meanwhile moreover name nevertheless note open originally
    overall please previously provide read recently regarding report retrieve run second see search show similarly
    sometimes soon state still suddenly summarise summarize table tell third today tomorrow translate try use using
    visit write yesterday
    beschreibe erkläre finde gib liste nenne sag sage vergleiche zeig zeige bitte"""
)

# In names, but no name by themselves.
NEVER_ALONE = _words(
    """dr mr mrs ms prof monday tuesday wednesday thursday friday saturday sunday january february march april may june
    july august september october november december montag dienstag mittwoch donnerstag freitag samstag sonntag januar
    februar märz mai juni juli oktober dezember"""
)

# Codes of currencies (ISO 4217): a unit of what stands beside them, though they look like abbreviations.
CURRENCIES = _words("eur usd gbp chf jpy cny inr sek nok dkk pln czk huf cad aud nzd try brl krw zar")
