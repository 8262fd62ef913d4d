"""Finds dates and times in a text: "8 May 2023", "last Friday", "vor zwei Wochen".

Weeks begin on Monday and every span is half open. What a text says relative to
itself ("yesterday") is counted from an anchor: the moment it was said.
"""

from recollect.dates.events import EventPhrase, find_events
from recollect.dates.find import find_times
from recollect.dates.moment import moment_of
from recollect.dates.span import Bound, Granularity, TimeSpan, bounded, date_words

__all__ = [
    "Bound",
    "EventPhrase",
    "Granularity",
    "TimeSpan",
    "bounded",
    "date_words",
    "find_events",
    "find_times",
    "moment_of",
]
