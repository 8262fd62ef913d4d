"""The table of time expressions: what people ask, when, and which time they mean."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bethink.lang.dates import find_times
from rows import each_row

# Asked on a Sunday at half past two in the afternoon.
NOW = datetime(2026, 11, 15, 14, 30, tzinfo=UTC)
FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


def moment(text: str, otherwise: datetime) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else otherwise


# text | start | end; an empty field is an open end
ENGLISH = """
2026-03-01 | 2026-03-01 | 2026-03-02
on 2026-03-01 | 2026-03-01 | 2026-03-02
2026-03-01T14:30 | 2026-03-01T14:30 | 2026-03-01T14:31
2026-03 | 2026-03-01 | 2026-04-01
2026-W10 | 2026-03-02 | 2026-03-09
03/14/2026 | 2026-03-14 | 2026-03-15
14.03.2026 | 2026-03-14 | 2026-03-15
14 March 2026 | 2026-03-14 | 2026-03-15
March 14th, 2026 | 2026-03-14 | 2026-03-15
the 14th of March | 2026-03-14 | 2026-03-15
Sat, 14 March 2026 | 2026-03-14 | 2026-03-15
on May 3 | 2026-05-03 | 2026-05-04
on December 3 | 2025-12-03 | 2025-12-04
May 3-5 | 2026-05-03 | 2026-05-06
today | 2026-11-15 | 2026-11-16
yesterday | 2026-11-14 | 2026-11-15
tomorrow | 2026-11-16 | 2026-11-17
the day before yesterday | 2026-11-13 | 2026-11-14
the day after tomorrow | 2026-11-17 | 2026-11-18
last week | 2026-11-02 | 2026-11-09
this week | 2026-11-09 | 2026-11-16
next week | 2026-11-16 | 2026-11-23
the week before last | 2026-10-26 | 2026-11-02
the week after next | 2026-11-23 | 2026-11-30
the week of May 6 | 2026-05-04 | 2026-05-11
week 19 | 2026-05-04 | 2026-05-11
week 19 of 2025 | 2025-05-05 | 2025-05-12
last month | 2026-10-01 | 2026-11-01
this month | 2026-11-01 | 2026-12-01
the month before last | 2026-09-01 | 2026-10-01
last quarter | 2026-07-01 | 2026-10-01
this quarter | 2026-10-01 | 2027-01-01
last year | 2025-01-01 | 2026-01-01
this year | 2026-01-01 | 2027-01-01
next year | 2027-01-01 | 2028-01-01
the year before last | 2024-01-01 | 2025-01-01
last decade | 2010-01-01 | 2020-01-01
two weeks ago | 2026-10-26 | 2026-11-02
a week ago | 2026-11-02 | 2026-11-09
3 days ago | 2026-11-12 | 2026-11-13
three days ago | 2026-11-12 | 2026-11-13
twenty-one days ago | 2026-10-25 | 2026-10-26
a couple of days ago | 2026-11-12 | 2026-11-14
a few weeks ago | 2026-10-05 | 2026-11-02
several months ago | 2026-03-01 | 2026-09-01
about two months ago | 2026-09-01 | 2026-10-01
a month ago | 2026-10-01 | 2026-11-01
from May to June | 2026-05-01 | 2026-07-01
five years ago | 2021-01-01 | 2022-01-01
a fortnight ago | 2026-10-26 | 2026-11-02
half a year ago | 2026-05-01 | 2026-06-01
half an hour ago | 2026-11-15T14:00 | 2026-11-15T14:01
a year and a half ago | 2025-05-01 | 2025-06-01
an hour ago | 2026-11-15T13:00 | 2026-11-15T14:00
10 minutes ago | 2026-11-15T14:20 | 2026-11-15T14:21
2h ago | 2026-11-15T12:00 | 2026-11-15T13:00
two nights ago | 2026-11-13T18:00 | 2026-11-14T06:00
two Fridays ago | 2026-11-06 | 2026-11-07
more than two weeks ago | | 2026-10-26
less than a month ago | 2026-10-01 |
past 3 days | 2026-11-13 | 2026-11-16
the last 7 days | 2026-11-09 | 2026-11-16
the last few weeks | 2026-10-12 | 2026-11-16
the past two weeks | 2026-11-02 | 2026-11-16
the past month | 2026-10-16 | 2026-11-16
the last six months | 2026-05-16 | 2026-11-16
the past year | 2025-11-16 | 2026-11-16
the last 24 hours | 2026-11-14T14:31 | 2026-11-15T14:31
the last 24h | 2026-11-14T14:31 | 2026-11-15T14:31
the last 90 minutes | 2026-11-15T13:01 | 2026-11-15T14:31
this past week | 2026-11-09 | 2026-11-16
within the last month | 2026-10-01 | 2026-11-01
next 5 days | 2026-11-15 | 2026-11-20
the next two weeks | 2026-11-15 | 2026-11-29
in two weeks | 2026-11-23 | 2026-11-30
three days from now | 2026-11-18 | 2026-11-19
recently | 2026-11-08 | 2026-11-16
lately | 2026-11-08 | 2026-11-16
the other day | 2026-11-08 | 2026-11-15
these days | 2026-10-16 | 2026-11-16
just now | 2026-11-15 | 2026-11-16
last Friday | 2026-11-13 | 2026-11-14
on Friday | 2026-11-13 | 2026-11-14
this Friday | 2026-11-13 | 2026-11-14
next Friday | 2026-11-20 | 2026-11-21
Friday last week | 2026-11-06 | 2026-11-07
Tuesday of last week | 2026-11-03 | 2026-11-04
last week on Tuesday | 2026-11-03 | 2026-11-04
the Friday before last | 2026-11-06 | 2026-11-07
last Friday night | 2026-11-13T18:00 | 2026-11-14T06:00
Monday morning | 2026-11-09T05:00 | 2026-11-09T12:00
over the weekend | 2026-11-14 | 2026-11-16
last weekend | 2026-11-07 | 2026-11-09
the weekend before last | 2026-10-31 | 2026-11-02
this morning | 2026-11-15T05:00 | 2026-11-15T12:00
this afternoon | 2026-11-15T12:00 | 2026-11-15T18:00
tonight | 2026-11-15T18:00 | 2026-11-16T06:00
last night | 2026-11-14T18:00 | 2026-11-15T06:00
overnight | 2026-11-14T18:00 | 2026-11-15T06:00
yesterday evening | 2026-11-14T17:00 | 2026-11-14T23:00
yesterday afternoon | 2026-11-14T12:00 | 2026-11-14T18:00
tomorrow morning | 2026-11-16T05:00 | 2026-11-16T12:00
the morning of 3 May | 2026-05-03T05:00 | 2026-05-03T12:00
earlier today | 2026-11-15 | 2026-11-15T14:31
earlier this week | 2026-11-09 | 2026-11-15T14:31
later this month | 2026-11-15T14:31 | 2026-12-01
at 3pm on Tuesday | 2026-11-10T15:00 | 2026-11-10T16:00
yesterday at 14:05 | 2026-11-14T14:05 | 2026-11-14T14:06
at 9 o'clock yesterday | 2026-11-14T09:00 | 2026-11-14T10:00
around noon | 2026-11-15T12:00 | 2026-11-15T13:00
yesterday between 2pm and 4pm | 2026-11-14T14:00 | 2026-11-14T17:00
between 9am and 11am yesterday | 2026-11-14T09:00 | 2026-11-14T12:00
in March | 2026-03-01 | 2026-04-01
in December | 2025-12-01 | 2026-01-01
last March | 2026-03-01 | 2026-04-01
March last year | 2025-03-01 | 2025-04-01
in May of this year | 2026-05-01 | 2026-06-01
in March 2024 | 2024-03-01 | 2024-04-01
on the 3rd | 2026-11-03 | 2026-11-04
the 15th of last month | 2026-10-15 | 2026-10-16
early 2024 | 2024-01-01 | 2024-05-01
mid-2023 | 2023-05-01 | 2023-09-01
late 2023 | 2023-09-01 | 2024-01-01
mid-March | 2026-03-11 | 2026-03-21
late May | 2026-05-21 | 2026-06-01
at the beginning of June | 2026-06-01 | 2026-06-11
end of last month | 2026-10-21 | 2026-11-01
the end of 2025 | 2025-09-01 | 2026-01-01
early last week | 2026-11-02 | 2026-11-05
at the start of the year | 2026-01-01 | 2026-05-01
first week of June | 2026-06-01 | 2026-06-08
the last week of May | 2026-05-25 | 2026-06-01
the second week of last month | 2026-10-08 | 2026-10-15
the last Friday of October | 2026-10-30 | 2026-10-31
the first Monday in June | 2026-06-01 | 2026-06-02
the last day of March | 2026-03-31 | 2026-04-01
the first half of 2025 | 2025-01-01 | 2025-07-01
H2 2025 | 2025-07-01 | 2026-01-01
Q3 | 2026-07-01 | 2026-10-01
Q4 | 2026-10-01 | 2027-01-01
Q1 2025 | 2025-01-01 | 2025-04-01
Q3 of last year | 2025-07-01 | 2025-10-01
2025 Q2 | 2025-04-01 | 2025-07-01
the third quarter of 2024 | 2024-07-01 | 2024-10-01
the first quarter | 2026-01-01 | 2026-04-01
the summer of 2023 | 2023-06-01 | 2023-09-01
last summer | 2026-06-01 | 2026-09-01
in the summer | 2026-06-01 | 2026-09-01
winter 2024 | 2024-12-01 | 2025-03-01
in 2019 | 2019-01-01 | 2020-01-01
the 1990s | 1990-01-01 | 2000-01-01
the 90s | 1990-01-01 | 2000-01-01
the nineties | 1990-01-01 | 2000-01-01
the early 2000s | 2000-01-01 | 2004-01-01
at Christmas | 2025-12-24 | 2025-12-27
last Christmas | 2025-12-24 | 2025-12-27
Christmas 2023 | 2023-12-24 | 2023-12-27
on New Year's Eve | 2025-12-31 | 2026-01-01
on New Year's Day | 2026-01-01 | 2026-01-02
at Easter | 2026-04-03 | 2026-04-07
Easter 2024 | 2024-03-29 | 2024-04-02
last Thanksgiving | 2025-11-27 | 2025-12-01
on Halloween | 2026-10-31 | 2026-11-01
between May and June | 2026-05-01 | 2026-07-01
between May and June 2024 | 2024-05-01 | 2024-07-01
between November and February | 2025-11-01 | 2026-03-01
from Monday to Wednesday | 2026-11-09 | 2026-11-12
from Friday to Tuesday | 2026-11-06 | 2026-11-11
from March through May | 2026-03-01 | 2026-06-01
from 3 May to 5 June 2024 | 2024-05-03 | 2024-06-06
between 2019 and 2021 | 2019-01-01 | 2022-01-01
in 2019-2021 | 2019-01-01 | 2022-01-01
2026-03-01 to 2026-03-05 | 2026-03-01 | 2026-03-06
the week before August 3, 2023 | 2023-07-27 | 2023-08-03
two weeks before August 11, 2023 | 2023-07-24 | 2023-07-31
the Sunday before October 25, 2022 | 2022-10-23 | 2022-10-24
last weekend before April 10, 2023 | 2023-04-08 | 2023-04-10
the day after 2026-05-01 | 2026-05-02 | 2026-05-03
three days after 3 May 2026 | 2026-05-06 | 2026-05-07
the first three months of 2024 | 2024-01-01 | 2024-04-01
the first of May | 2026-05-01 | 2026-05-02
the last half hour | 2026-11-15T14:01 | 2026-11-15T14:31
in May '24 | 2024-05-01 | 2024-06-01
the 15th of this month | 2026-11-15 | 2026-11-16
on the 31st | 2026-10-31 | 2026-11-01
week 2 of last year | 2025-01-06 | 2025-01-13
30 seconds ago | 2026-11-15T14:29:30 | 2026-11-15T14:29:31
one and a half years ago | 2025-05-01 | 2025-06-01
a dozen days ago | 2026-11-03 | 2026-11-04
the Friday after next | 2026-11-27 | 2026-11-28
the Monday after 2026-05-01 | 2026-05-04 | 2026-05-05
next Christmas | 2026-12-24 | 2026-12-27
this Easter | 2026-04-03 | 2026-04-07
on Black Friday | 2025-11-28 | 2025-11-29
yesterday in the morning | 2026-11-14T05:00 | 2026-11-14T12:00
the last two days of May | 2026-05-30 | 2026-06-01
the first weekend of June | 2026-06-06 | 2026-06-08
the second half of May | 2026-05-16 | 2026-06-01
from 2025-05-03 to June | 2025-05-03 | 2025-07-01
from 2026-11-10 to Friday | 2026-11-10 | 2026-11-14
from last Monday to Friday | 2026-11-09 | 2026-11-14
from yesterday to Tuesday | 2026-11-14 | 2026-11-18
yesterday, from 9am to 11am | 2026-11-14T09:00 | 2026-11-14T12:00
later today | 2026-11-15T14:31 | 2026-11-16
earlier this month | 2026-11-01 | 2026-11-15T14:31
later this evening | 2026-11-15T17:00 | 2026-11-15T23:00
since Tuesday | 2026-11-10 |
since last week | 2026-11-02 |
since 2026-05-01 | 2026-05-01 |
since March | 2026-03-01 |
from Monday onwards | 2026-11-09 |
starting last Monday | 2026-11-09 |
until Friday | | 2026-11-14
till yesterday | | 2026-11-15
up to last month | | 2026-11-01
what have you been up to last week | 2026-11-02 | 2026-11-09
what was Ann up to in March | 2026-03-01 | 2026-04-01
by the end of October | | 2026-11-01
before 2024-05-01 | | 2024-05-01
before last week | | 2026-11-02
prior to March 2025 | | 2025-03-01
earlier than 2020 | | 2020-01-01
after 2024-05-01 | 2024-05-02 |
after last Friday | 2026-11-14 |
later than May 2025 | 2025-06-01 |
no later than 2025-05-01 | | 2025-05-02
over the holidays | 2025-12-24 | 2026-01-02
between Christmas and New Year | 2025-12-24 | 2026-01-02
from Christmas to New Year | 2025-12-24 | 2026-01-02
on Labor Day | 2026-09-07 | 2026-09-08
this past Christmas | 2025-12-24 | 2025-12-27
at the end of the summer | 2026-08-01 | 2026-09-01
the beginning of winter | 2025-12-01 | 2026-01-01
on 11/13 | 2026-11-13 | 2026-11-14
since 11/13 | 2026-11-13 |
on 13/11 | 2026-11-13 | 2026-11-14
a week ago today | 2026-11-08 | 2026-11-09
today a week ago | 2026-11-08 | 2026-11-09
a year ago today | 2025-11-15 | 2025-11-16
a week ago yesterday | 2026-11-07 | 2026-11-08
two weeks ago on Friday | 2026-10-30 | 2026-10-31
Friday two weeks ago | 2026-10-30 | 2026-10-31
three weeks ago tomorrow | 2026-10-26 | 2026-10-27
next 2 days | 2026-11-15 | 2026-11-17
in calendar week 45 | 2026-11-02 | 2026-11-09
this time last week | 2026-11-08 | 2026-11-09
this time last year | 2025-10-31 | 2025-12-01
in FY25 | 2025-01-01 | 2026-01-01
9-11 am on Monday | 2026-11-09T09:00 | 2026-11-09T12:00
yesterday 9-11 am | 2026-11-14T09:00 | 2026-11-14T12:00
between 9 and 11 am yesterday | 2026-11-14T09:00 | 2026-11-14T12:00
yesterday 11-1 pm | 2026-11-14T11:00 | 2026-11-14T14:00
9:30-11:15 am | 2026-11-15T09:30 | 2026-11-15T11:16
yesterday 9:30-11 am | 2026-11-14T09:30 | 2026-11-14T12:00
which of the 5 of last month's releases failed? | 2026-10-01 | 2026-11-01
the 5th of last month's plan | 2026-10-05 | 2026-10-06
"""
GERMAN = """
gestern | 2026-11-14 | 2026-11-15
vorgestern | 2026-11-13 | 2026-11-14
letzte Woche | 2026-11-02 | 2026-11-09
vorletzte Woche | 2026-10-26 | 2026-11-02
vorletzten Mittwoch | 2026-11-04 | 2026-11-05
am vorletzten Wochenende | 2026-10-31 | 2026-11-02
letzten Freitag | 2026-11-13 | 2026-11-14
am Freitag | 2026-11-13 | 2026-11-14
vor zwei Wochen | 2026-10-26 | 2026-11-02
vor einem Monat | 2026-10-01 | 2026-11-01
vor ein paar Tagen | 2026-11-10 | 2026-11-14
im März | 2026-03-01 | 2026-04-01
im August | 2026-08-01 | 2026-09-01
Was war im April? | 2026-04-01 | 2026-05-01
Was geschah am 3. September? | 2026-09-03 | 2026-09-04
seit August | 2026-08-01 |
am 8. Mai 2023 | 2023-05-08 | 2023-05-09
zwischen Mai und Juni | 2026-05-01 | 2026-07-01
von Montag bis Mittwoch | 2026-11-09 | 2026-11-12
seit Dienstag | 2026-11-10 |
bis Freitag | | 2026-11-14
vor dem 1. Mai 2024 | | 2024-05-01
nach dem 1. Mai 2024 | 2024-05-02 |
heute Morgen | 2026-11-15T05:00 | 2026-11-15T12:00
gestern Abend | 2026-11-14T17:00 | 2026-11-14T23:00
in den letzten drei Tagen | 2026-11-13 | 2026-11-16
kürzlich | 2026-11-08 | 2026-11-16
Ende letzten Monats | 2026-10-21 | 2026-11-01
Anfang 2024 | 2024-01-01 | 2024-05-01
im Sommer 2023 | 2023-06-01 | 2023-09-01
am Wochenende | 2026-11-14 | 2026-11-16
in KW 19 | 2026-05-04 | 2026-05-11
am Montagabend | 2026-11-09T17:00 | 2026-11-09T23:00
gestern um 15 Uhr 30 | 2026-11-14T15:30 | 2026-11-14T15:31
im letzten Jahr | 2025-01-01 | 2026-01-01
am 12.11. | 2026-11-12 | 2026-11-13
seit dem 12.11. | 2026-11-12 |
vom 12.11. bis 14.11. | 2026-11-12 | 2026-11-15
über Weihnachten | 2025-12-24 | 2025-12-27
letzte Weihnachten | 2025-12-24 | 2025-12-27
zwischen Weihnachten und Neujahr | 2025-12-24 | 2026-01-02
zwischen den Jahren | 2025-12-27 | 2026-01-01
heute vor einer Woche | 2026-11-08 | 2026-11-09
vor drei Tagen | 2026-11-12 | 2026-11-13
Ende des Sommers | 2026-08-01 | 2026-09-01
an Pfingsten | 2026-05-24 | 2026-05-26
am Tag der Deutschen Einheit | 2026-10-03 | 2026-10-04
"""
SPANISH = """
ayer | 2026-11-14 | 2026-11-15
anteayer | 2026-11-13 | 2026-11-14
la semana pasada | 2026-11-02 | 2026-11-09
el viernes pasado | 2026-11-13 | 2026-11-14
el mes pasado | 2026-10-01 | 2026-11-01
hace dos semanas | 2026-10-26 | 2026-11-02
hace unos días | 2026-11-10 | 2026-11-14
en marzo | 2026-03-01 | 2026-04-01
el 8 de mayo de 2023 | 2023-05-08 | 2023-05-09
entre mayo y junio | 2026-05-01 | 2026-07-01
desde el martes | 2026-11-10 |
hasta el viernes | | 2026-11-14
antes del 1 de mayo de 2024 | | 2024-05-01
después de marzo | 2026-04-01 |
esta mañana | 2026-11-15T05:00 | 2026-11-15T12:00
ayer por la tarde | 2026-11-14T12:00 | 2026-11-14T18:00
anoche | 2026-11-14T18:00 | 2026-11-15T06:00
los últimos tres días | 2026-11-13 | 2026-11-16
recientemente | 2026-11-08 | 2026-11-16
a finales del mes pasado | 2026-10-21 | 2026-11-01
a principios de 2024 | 2024-01-01 | 2024-05-01
el verano de 2023 | 2023-06-01 | 2023-09-01
el año pasado | 2025-01-01 | 2026-01-01
ayer a las 3 de la tarde | 2026-11-14T15:00 | 2026-11-14T16:00
el pasado viernes | 2026-11-13 | 2026-11-14
la Navidad pasada | 2025-12-24 | 2025-12-27
hace tres días | 2026-11-12 | 2026-11-13
tres días atrás | 2026-11-12 | 2026-11-13
al final del verano | 2026-08-01 | 2026-09-01
el 12/11 | 2026-11-12 | 2026-11-13
entre Navidad y Año Nuevo | 2025-12-24 | 2026-01-02
"""
FRENCH = """
mardi en huit | 2026-11-24 | 2026-11-25
la semaine en huit | 2026-11-23 | 2026-11-30
en huit jours | 2026-11-23 | 2026-11-24
l'avant-dernier week-end | 2026-10-31 | 2026-11-02
aujourd'hui | 2026-11-15 | 2026-11-16
avant-hier | 2026-11-13 | 2026-11-14
la semaine dernière | 2026-11-02 | 2026-11-09
vendredi dernier | 2026-11-13 | 2026-11-14
le mois dernier | 2026-10-01 | 2026-11-01
il y a deux semaines | 2026-10-26 | 2026-11-02
il y a quelques jours | 2026-11-10 | 2026-11-14
en février | 2026-02-01 | 2026-03-01
le 8 juin 2023 | 2023-06-08 | 2023-06-09
le 1er juillet 2023 | 2023-07-01 | 2023-07-02
entre avril et juin | 2026-04-01 | 2026-07-01
depuis mardi | 2026-11-10 |
jusqu'à vendredi | | 2026-11-14
ce matin | 2026-11-15T05:00 | 2026-11-15T12:00
hier soir | 2026-11-14T17:00 | 2026-11-14T23:00
les trois derniers jours | 2026-11-13 | 2026-11-16
récemment | 2026-11-08 | 2026-11-16
à la fin du mois dernier | 2026-10-21 | 2026-11-01
début 2024 | 2024-01-01 | 2024-05-01
l'été 2023 | 2023-06-01 | 2023-09-01
l'année dernière | 2025-01-01 | 2026-01-01
hier à 15h30 | 2026-11-14T15:30 | 2026-11-14T15:31
il y a trois jours | 2026-11-12 | 2026-11-13
à la fin de l'été | 2026-08-01 | 2026-09-01
le mois passé | 2026-10-01 | 2026-11-01
l'an passé | 2025-01-01 | 2026-01-01
à Noël | 2025-12-24 | 2025-12-27
Noël dernier | 2025-12-24 | 2025-12-27
entre Noël et le nouvel an | 2025-12-24 | 2026-01-02
"""
CHINESE = """
去年国庆 | 2025-10-01 | 2025-10-08
今年元旦 | 2026-01-01 | 2026-01-02
上上周三 | 2026-10-28 | 2026-10-29
上上周末 | 2026-10-31 | 2026-11-02
上个月十五号 | 2026-10-15 | 2026-10-16
去年下半年 | 2025-07-01 | 2026-01-01
九月中旬 | 2026-09-11 | 2026-09-21
3月8日至10日 | 2026-03-08 | 2026-03-11
5月5日到3日 | 2026-05-05 | 2026-05-06
前几天 | 2026-11-10 | 2026-11-14
大后天 | 2026-11-18 | 2026-11-19
周三早上九点到十一点 | 2026-11-11T09:00 | 2026-11-11T12:00
昨天 | 2026-11-14 | 2026-11-15
前天 | 2026-11-13 | 2026-11-14
大前天 | 2026-11-12 | 2026-11-13
上周 | 2026-11-02 | 2026-11-09
上个星期 | 2026-11-02 | 2026-11-09
上周五 | 2026-11-06 | 2026-11-07
周五 | 2026-11-13 | 2026-11-14
上个月 | 2026-10-01 | 2026-11-01
两周前 | 2026-10-26 | 2026-11-02
三天前 | 2026-11-12 | 2026-11-13
三个月前 | 2026-08-01 | 2026-09-01
几天前 | 2026-11-10 | 2026-11-14
三月 | 2026-03-01 | 2026-04-01
2023年5月8日 | 2023-05-08 | 2023-05-09
去年三月 | 2025-03-01 | 2025-04-01
五月到六月 | 2026-05-01 | 2026-07-01
自周二以来 | 2026-11-10 |
2024年5月1日之前 | | 2024-05-01
今天早上 | 2026-11-15T05:00 | 2026-11-15T12:00
昨晚 | 2026-11-14T18:00 | 2026-11-15T06:00
昨天下午三点 | 2026-11-14T15:00 | 2026-11-14T16:00
最近三天 | 2026-11-13 | 2026-11-16
最近 | 2026-11-08 | 2026-11-16
刚才 | 2026-11-15 | 2026-11-16
上个月底 | 2026-10-21 | 2026-11-01
去年 | 2025-01-01 | 2026-01-01
2023年夏天 | 2023-06-01 | 2023-09-01
上周末 | 2026-11-07 | 2026-11-09
十二天前 | 2026-11-03 | 2026-11-04
半年前 | 2026-05-01 | 2026-06-01
前年 | 2024-01-01 | 2025-01-01
2024年第三季度 | 2024-07-01 | 2024-10-01
去年5月8日 | 2025-05-08 | 2025-05-09
未来三天 | 2026-11-15 | 2026-11-18
上上周 | 2026-10-26 | 2026-11-02
上上个月 | 2026-09-01 | 2026-10-01
上个季度 | 2026-07-01 | 2026-10-01
昨天下午三点半 | 2026-11-14T15:30 | 2026-11-14T15:31
5月初 | 2026-05-01 | 2026-05-11
圣诞节 | 2025-12-24 | 2025-12-27
国庆节 | 2026-10-01 | 2026-10-08
"""
# Words that only look like times.
NOTHING = """
you may 8 things
they march 3 miles a day
it may work
March on, he said
we march to the release
I may go and march on
they sing and may stay
the sun was out
Sun Microsystems
he sat there
mon ami
to wed her
a second opinion
on second thought
the second attempt
wait a second
every Friday
each Monday
on the 5th floor
the 3rd try
by the 2nd engineer
v2023.05.08
release 2.3.1
port 2049 and error 1999
RFC 2822
16:9
10:20px
1.2.2023.4
30.02.2023
2023-13-01
25:99
555-2023
a week-long outage
year-end bonus
the last word
this is it
at last
next to him
past the door
spring boot starts
spring cleaning
the fall of Rome
in fall back mode
we start the engine
in my late 40s
in 3D
start the day
the Act of 2023
H1 heading
new year resolutions
the second half was dull
a day in the life
three days of work
night owl
morning person
half a dozen eggs
he was born in a barn
guten Morgen allerseits
es ist hier so still
il a été réparé
Mars attacks
the mayo is off
once upon a time
an apple a day
what has happened so far
the new holidays page
on 1/2 of the nodes
calendar app
fiscal policy
what happened to the passé style
que s'est-il passé ?
qué ha pasado
天气很好
周围没有人
年轻人很多
点菜
半个苹果
"""


def rows(table: str) -> list[tuple[str, datetime, datetime]]:
    lines = [line.split("|") for line in table.strip().splitlines()]
    return [
        (text.strip(), moment(start.strip(), FIRST), moment(end.strip(), LAST))
        for text, start, end in lines
    ]


def around(text: str, table: str) -> str:
    """A question in the language of the table."""
    return {
        "english": f"what did we decide {text}?",
        "german": f"Was haben wir {text} entschieden?",
        "spanish": f"¿Qué decidimos {text}?",
        "french": f"Qu'avons-nous décidé {text} ?",
        "chinese": f"我们{text}决定了什么？",
    }[table]


TABLES = {
    "english": ENGLISH,
    "german": GERMAN,
    "spanish": SPANISH,
    "french": FRENCH,
    "chinese": CHINESE,
}
CASES = [(name, *row) for name, table in TABLES.items() for row in rows(table)]


@each_row(("table", "text", "start", "end"), CASES, ids=[case[1] for case in CASES])
def test_expressions_and_the_times_they_mean(table, text, start, end):
    """Each is read as meant, alone and within a question, and nothing else is found."""
    alone = find_times(text, NOW, lean="past", vague=True)
    asked = find_times(around(text, table), NOW, lean="past", vague=True)

    assert [span.window() for span in alone] == [(start, end)]
    assert [span.window() for span in asked] == [(start, end)]


@each_row("text", NOTHING.strip().splitlines())
def test_words_that_only_look_like_times(text):
    """Even a question, which is given the benefit of every doubt, finds nothing there."""
    assert find_times(text, NOW, lean="past", vague=True) == []


def test_the_tables_are_as_long_as_promised():
    """At least 120 English ones, ten in each other language, 25 that are none."""
    assert len(rows(ENGLISH)) >= 120
    assert all(len(rows(table)) >= 10 for table in TABLES.values())
    assert len(NOTHING.strip().splitlines()) >= 25


def test_a_guess_is_marked_as_one():
    """What is vague says so, and a text that is stored is not given dates by it."""
    (span,) = find_times("what happened recently?", NOW, lean="past", vague=True)

    assert span.confidence < 1
    assert find_times("recently we met at Christmas", NOW) == []


def test_another_zone_has_other_days():
    """Yesterday is the day before the anchor's day, where the anchor is."""
    zone = NOW.astimezone(tz=None).tzinfo
    (span,) = find_times("yesterday", NOW.astimezone(zone))

    assert span.end - span.start == timedelta(days=1)


@pytest.mark.parametrize(
    "text", ["thanks for this @ada", "see last @everyone", "next @12-xyz9 one"]
)
def test_a_name_with_an_at_sign_is_no_holiday(text):
    """Handles and mentions stand in texts; they are read over."""
    assert find_times(text, NOW) == []


@each_row(
    "text",
    ["le projet fut terminé en huit mois", "écrit en huit heures", "en huit ans il a changé",
     "appris en deux semaines", "v2-3 am", "version 1.2-3 pm", "iso-8 pm", "two of the 4 of hearts"],
)  # fmt: skip
def test_a_duration_and_a_version_are_no_times(text: str) -> None:
    """Nor is a number that only looks like an hour or a day."""
    assert find_times(text, NOW, lean="past", vague=True) == []
