"""The English words for times: what every rule reads, and other languages are put into."""

from __future__ import annotations


def word_set(words: str) -> frozenset[str]:
    """The words of a list that is written as a text."""
    return frozenset(words.split())


MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

MONTH = {name: number for number, name in enumerate(MONTHS, 1)}
MONTH |= {name[:3]: number for name, number in MONTH.items()} | {"sept": 9}
WEEKDAY = {name: number for number, name in enumerate(WEEKDAYS)}
SHORT_WEEKDAY = {name[:3] for name in WEEKDAYS} | {"tues", "thur", "thurs"}
SEASON = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
# Hours of the day; a night ends on the next morning.
PART = {"morning": (5, 12), "afternoon": (12, 18), "evening": (17, 23), "night": (18, 30)}
PART |= {"lunchtime": (11, 14), "overnight": (18, 30)}
# Meals divide a day: (before, at, after).
MEAL = {
    "breakfast": ((5, 8), (7, 10), (8, 12)),
    "lunch": ((8, 12), (11, 14), (13, 18)),
    "dinner": ((15, 19), (18, 21), (20, 24)),
    "work": ((5, 9), (9, 17), (17, 23)),
}

ONES = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TENS = {"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70}
TENS |= {"eighty": 80, "ninety": 90}
NUMBER = {"a": 1, "an": 1} | {name: number for number, name in enumerate(ONES, 1)} | TENS
NUMBER |= {"ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14}
NUMBER |= {"fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19}
NUMBER |= {"dozen": 12, "hundred": 100}
VAGUE = {"couple": (2, 3), "few": (2, 5), "several": (3, 8)}
ORDINAL = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
ORDINAL |= {"1st": 1, "2nd": 2, "3rd": 3, "4th": 4, "last": -1, "final": -1}
ORDINAL_ENDS = ("st", "nd", "rd", "th")

UNIT = {name: name for name in ("minute", "hour", "day", "week", "month", "quarter", "year")}
UNIT |= {f"{name}s": name for name in UNIT} | {"decade": "decade", "decades": "decade"}
UNIT |= {"weekend": "weekend", "weekends": "weekend"}
UNIT |= {"fortnight": "fortnight", "fortnights": "fortnight"}
UNIT |= {"min": "minute", "mins": "minute", "hr": "hour", "hrs": "hour", "wk": "week"}
UNIT |= {"wks": "week", "yr": "year", "yrs": "year", "night": "night", "nights": "night"}
# Only right behind a figure: 24h, 7d.
SHORT_UNIT = {"h": "hour", "d": "day", "w": "week", "mo": "month", "y": "year"}

LAST = frozenset({"last", "past", "previous"})
NEXT = frozenset({"next", "coming", "upcoming", "following"})
AGO = frozenset({"ago", "earlier", "back"})
LATER = frozenset({"later", "hence"})

# Which third of a longer time is meant.
THIRD = {"early": 0, "beginning": 0, "start": 0, "mid": 1, "middle": 1, "late": 2, "end": 2}
HALF = {"first": 0, "second": 1, "last": 1}
# Decades in words; which century is the latest that has begun.
DECADE = {"twenties": 20, "thirties": 30, "forties": 40, "fifties": 50, "sixties": 60}
DECADE |= {"seventies": 70, "eighties": 80, "nineties": 90}

# "march" and "may" are verbs too: alone they need one of these before them.
BEFORE_A_MONTH = frozenset(
    {"in", "of", "since", "during", "until", "till", "before", "after", "by", "from", "early"}
    | {"late", "mid", "around", "through", "on", "and", "between", "throughout"}
    | THIRD.keys()
)
BEFORE_A_YEAR = frozenset(
    {"in", "since", "during", "until", "till", "before", "after", "year", "early", "late", "mid"}
    | {"between", "and", "from", "to", "throughout", "through"}
    | THIRD.keys()
)
BEFORE_A_TIME = frozenset(
    {"at", "around", "by", "until", "till", "since", "before", "after", "from", "to", "about"}
    | {"between", "and"}
)
BEFORE_A_SEASON = frozenset({"in", "over", "during", "since", "until", "before", "after", "last"})
