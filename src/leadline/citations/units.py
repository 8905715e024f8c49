"""Units in every usual writing, and which of them are the same thing by an exact factor.

Doesn't tell capitals apart, so it knows no symbol that stands for two units (mW, MW) or is a word (A).
"""

UNITS = {
    unit: words[0]
    for words in (
        ("percent", "%", "percentage", "prozent", "pct", "pourcent"),
        ("euro", "€", "eur", "euros"),
        ("dollar", "$", "usd", "dollars", "us$"),
        ("pound", "£", "gbp", "pounds"),
        ("yen", "¥", "jpy"),
        ("second", "s", "sec", "secs", "seconds", "sekunden", "sekunde"),
        ("millisecond", "ms", "milliseconds"),
        ("minute", "min", "mins", "minutes", "minuten"),
        ("hour", "h", "hr", "hrs", "hours", "stunde", "stunden"),
        ("day", "d", "days", "tag", "tage", "tagen", "jours", "jour", "días"),
        ("week", "weeks", "woche", "wochen", "semaines", "semanas"),
        ("month", "months", "monat", "monate", "monaten", "mois", "meses"),
        ("year", "years", "yr", "yrs", "jahr", "jahre", "jahren", "ans", "années", "años"),
        ("decade", "decades"),
        ("metre", "m", "meter", "meters", "metres"),
        ("kilometre", "km", "kilometer", "kilometers", "kilometres"),
        ("centimetre", "cm", "centimeters", "centimetres"),
        ("millimetre", "mm", "millimeters", "millimetres"),
        ("mile", "mi", "miles"),
        ("foot", "ft", "feet"),
        ("inch", "inches"),
        ("yard", "yd", "yards"),
        ("kilogram", "kg", "kilograms", "kilogramm"),
        ("gram", "g", "grams", "gramm"),
        ("milligram", "mg", "milligrams"),
        ("microgram", "mcg", "µg", "μg", "micrograms"),
        ("tonne", "t", "tonnes"),
        ("ton", "tons"),
        ("litre", "l", "liter", "liters", "litres"),
        ("millilitre", "ml", "milliliters"),
        ("volt", "v", "volts"),
        ("kilovolt", "kv", "kilovolts"),
        ("ampere", "amp", "amps", "amperes"),
        ("milliampere", "ma", "milliamps", "milliamperes"),
        ("kiloampere", "ka", "kiloamps", "kiloamperes"),
        ("hertz", "hz"),
        ("kilohertz", "khz"),
        ("megahertz", "mhz"),
        ("gigahertz", "ghz"),
        ("watt", "w", "watts"),
        ("kilowatt", "kw"),
        ("celsius", "°c", "° c", "degrees celsius", "degree celsius"),
        ("fahrenheit", "°f", "° f", "degrees fahrenheit", "degree fahrenheit"),
        ("bar", "bars"),
        ("newton metre", "nm"),
        ("psi",),
        ("kilopascal", "kpa"),
        ("hectare", "ha", "hectares", "hektar"),
        ("acre", "acres"),
        ("kilobyte", "kb", "kilobytes"),
        ("megabyte", "mb", "megabytes"),
        ("gigabyte", "gb", "gigabytes"),
    )
    for unit in words
}
# Units of one row convert into each other exactly, by how many of the smallest each is. Not here: a month in days, a
# ton (there are three), bytes (1,000 or 1,024), and what only a rounded figure leads to, such as miles in kilometres.
_SCALES = (
    {"month": 1, "year": 12, "decade": 120},
    {
        "millisecond": 1,
        "second": 1000,
        "minute": 60_000,
        "hour": 3_600_000,
        "day": 86_400_000,
        "week": 604_800_000,
    },
    {"millimetre": 1, "centimetre": 10, "metre": 1000, "kilometre": 1_000_000},
    {"inch": 1, "foot": 12, "yard": 36, "mile": 63_360},
    {"microgram": 1, "milligram": 1000, "gram": 10**6, "kilogram": 10**9, "tonne": 10**12},
    {"millilitre": 1, "litre": 1000},
    {"volt": 1, "kilovolt": 1000},
    {"milliampere": 1, "ampere": 1000, "kiloampere": 10**6},
    {"hertz": 1, "kilohertz": 1000, "megahertz": 10**6, "gigahertz": 10**9},
    {"watt": 1, "kilowatt": 1000},
    {"kilopascal": 1, "bar": 100},
)
_SCALE = {unit: (row, factor) for row, scale in enumerate(_SCALES) for unit, factor in scale.items()}


def factors(unit: str, other: str) -> tuple[int, int]:
    """What to multiply amounts of two units by to compare them; (0, 0) for units of different things."""
    if not unit or not other or unit == other or {unit, other} == {"ton", "tonne"}:
        return 1, 1
    (row, factor), (other_row, other_factor) = _SCALE.get(unit, (-1, 0)), _SCALE.get(other, (-2, 0))
    return (factor, other_factor) if row == other_row else (0, 0)
