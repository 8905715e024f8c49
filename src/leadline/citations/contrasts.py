"""Words of which only one can be true: seasons, weekdays, directions, more and less, before and after.

A sentence that has one of a set where its source has only another says something else, though every other word agrees.
Knows the sets and their words' forms; doesn't know what is said of what.
"""

import re

_SETS = """spring|summer|autumn fall|winter
monday|tuesday|wednesday|thursday|friday|saturday|sunday
january|february|april|june|july|august|september|october|november|december
morning mornings|afternoon afternoons|evening evenings|night nights nighttime
north northern|south southern|east eastern|west western
northeast northeastern|northwest northwestern|southeast southeastern|southwest southwestern
early earlier earliest|late later latest
before prior|after
increase increases increased increasing rise rises rose risen grew grow grows growing growth raised raise gain gained
|decrease decreases decreased decreasing fell falls falling decline declines declined declining drop dropped drops
 reduced reduce reduces reduction shrank shrink
more|less fewer
most|least fewest
higher highest|lower lowest
larger largest bigger biggest|smaller smallest
longer longest|shorter shortest
older oldest|younger youngest newer newest
faster fastest|slower slowest
maximum maximal|minimum minimal
above|below beneath
inside within|outside
upper|lower

father|mother
brother|sister
son|daughter
husband|wife
king|queen
male men man boys|female women woman girls
black|white
hot hotter|cold colder
allowed allows allow permitted permits permit|forbidden forbids forbid prohibited prohibits prohibit banned bans ban
legal lawful|illegal unlawful
required requires require mandatory obligatory|optional voluntary
won wins win winning|lost loses lose losing
accepted accepts accept|rejected rejects reject refused refuses refuse
supported supports support|opposed opposes oppose
open opens opened opening|closed closes close closing
bought buys buy purchased purchases acquired acquires acquisition|sold sells sell sale
arrives arrived arrival|departs departed departure
founded founder founders founding established establishes|acquired acquires acquire acquisition bought takeover
hired hires hire|dismissed fired dismisses
born birth|died dies death
married marries marriage|divorced divorces divorce
invented invents inventor|discovered discovers discoverer
wrote written writes author|translated translates translator
elected elects election|appointed appoints
imports imported import|exports exported export
parent parents|child children
frühling|sommer|herbst|winter
montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag
vor|nach"""


def _read(text: str) -> tuple[dict[str, frozenset[str]], ...]:
    """For each set, each word with the words that mean the same in it."""
    rows = re.sub(r"\n(?=\||\s)", " ", text).splitlines()
    groups = [[frozenset(group.split()) for group in row.split("|")] for row in rows]
    return tuple({word: group for group in row for word in group} for row in groups)


_READ = _read(_SETS)
_WORD = re.compile(r"[^\W\d_]+")


def contradicted(sentence: str, text: str) -> str:
    """The word of `sentence` in whose place `text` has another of its set and never that one; "" if none."""
    said, there = _words(sentence), _words(text)
    for meanings in _READ:
        for word in said:
            same = meanings.get(word)
            if same and there.isdisjoint(same) and said & there.intersection(meanings) != there.intersection(meanings):
                return word
    return ""


def _words(text: str) -> set[str]:
    return {match.group().casefold() for match in _WORD.finditer(text)}
