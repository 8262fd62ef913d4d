"""The English words for times."""

from __future__ import annotations

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

NUMBER = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
NUMBER |= {"seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12}
VAGUE = {"couple": (2, 3), "few": (2, 5), "several": (3, 8)}

UNIT = {name: name for name in ("minute", "hour", "day", "week", "month", "quarter", "year")}
UNIT |= {f"{name}s": name for name in UNIT} | {"decade": "decade", "decades": "decade"}
UNIT |= {"weekend": "weekend", "weekends": "weekend", "fortnight": "fortnight"}

LAST = frozenset({"last", "past", "previous"})
NEXT = frozenset({"next", "coming", "upcoming", "following"})
AGO = frozenset({"ago", "earlier", "back"})
LATER = frozenset({"later", "hence"})

# "march" and "may" are verbs too: alone they need one of these before them.
BEFORE_A_MONTH = frozenset(
    {"in", "of", "since", "during", "until", "till", "before", "after", "by", "from", "early"}
    | {"late", "mid", "around", "through", "on", "and", "between"}
)
BEFORE_A_YEAR = frozenset(
    {"in", "since", "during", "until", "till", "before", "after", "year", "early", "late", "mid"}
    | {"between", "and", "from", "to"}
)
BEFORE_A_TIME = frozenset(
    {"at", "around", "by", "until", "till", "since", "before", "after", "from", "to", "about"}
)
