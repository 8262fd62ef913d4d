"""Find dates and times in a text: "8 May 2023", "last Friday", "vor zwei Wochen".

Weeks begin on Monday and every span is half open. Relative times ("yesterday") are
resolved against an anchor: the moment the text was written.
"""

from __future__ import annotations

from bethink.lang.dates.events import EventPhrase, find_events, parse_moment
from bethink.lang.dates.finder import find_times
from bethink.lang.dates.tokens import DAY_S, Bound, Granularity, TimeSpan, apply_bound, date_words
