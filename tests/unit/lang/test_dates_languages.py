"""Times in every language that has words for them: made from a date, they are read as that date."""

from __future__ import annotations

import textwrap
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from bethink.lang.dates import find_events, find_times
from bethink.lang.dates.absolute import easter_date
from bethink.lang.dates.languages import ENGLISH, FURTHER, LANGUAGES, language_of
from bethink.lang.dates.tokens import TOKEN
from bethink.lang.words import load_section, load_words, word_set_of
from rows import each_row

NOW = datetime(2026, 11, 15, 14, 30, tzinfo=UTC)
MIN_MARKER = 3  # letters


class Forms(NamedTuple):
    """How a language writes a full date, so many days ago, and times next to today.

    ``near`` are the days from today of words that need no date: yesterday, the day before it.
    """

    full: tuple[str, ...]
    ago: str
    near: dict[str, int]
    asked: str


FORMS = {
    "en": Forms(
        ("{d} {month} {y}", "{month} {d}, {y}", "on the {d}th of {month} {y}", "{y}-{m:02}-{d:02}"),
        "{n} days ago",
        {"yesterday": -1, "the day before yesterday": -2, "tomorrow": 1},
        "what did we do {}?",
    ),
    "de": Forms(
        ("am {d}. {month} {y}", "{d:02}.{m:02}.{y}"), "vor {n} Tagen",
        {"gestern": -1, "vorgestern": -2, "übermorgen": 2}, "was haben wir {} gemacht?",
    ),
    "es": Forms(
        ("el {d} de {month} de {y}", "el {d:02}/{m:02}/{y}"), "hace {n} días",
        {"ayer": -1, "anteayer": -2, "pasado mañana": 2}, "¿qué hicimos {}?",
    ),
    "fr": Forms(
        ("le {d} {month} {y}", "le {d:02}/{m:02}/{y}"), "il y a {n} jours",
        {"hier": -1, "avant-hier": -2, "après-demain": 2}, "que s'est-il passé {} ?",
    ),
    "zh": Forms(("{y}年{m}月{d}日",), "{n}天前", {"昨天": -1, "前天": -2, "后天": 2}, "我们{}做了什么？"),
    "ja": Forms(
        ("{y}年{m}月{d}日に",), "{n}日前に", {"昨日": -1, "おととい": -2, "あさって": 2}, "{}何をしましたか",
    ),
    "ko": Forms(
        ("{y}년 {m}월 {d}일에",), "{n}일 전에", {"어제": -1, "그저께": -2, "모레": 2}, "{} 무엇을 했나요?",
    ),
    "it": Forms(
        ("il {d} {month} {y}",), "{n} giorni fa",
        {"ieri": -1, "l'altro ieri": -2, "dopodomani": 2}, "cosa abbiamo fatto {}?",
    ),
    "pt": Forms(
        ("em {d} de {month} de {y}",), "há {n} dias",
        {"ontem": -1, "anteontem": -2, "depois de amanhã": 2}, "o que fizemos {}?",
    ),
    "nl": Forms(
        ("op {d} {month} {y}",), "{n} dagen geleden",
        {"gisteren": -1, "eergisteren": -2, "overmorgen": 2}, "wat hebben we {} gedaan?",
    ),
    "sv": Forms(
        ("den {d} {month} {y}",), "för {n} dagar sedan",
        {"igår": -1, "i förrgår": -2, "i övermorgon": 2}, "vad gjorde vi {}?",
    ),
    "da": Forms(
        ("den {d}. {month} {y}",), "for {n} dage siden",
        {"i går": -1, "i forgårs": -2, "i overmorgen": 2}, "hvad gjorde vi {}?",
    ),
    "nb": Forms(
        ("den {d}. {month} {y}",), "for {n} dager siden",
        {"i går": -1, "i forgårs": -2, "i overmorgen": 2}, "hva gjorde vi {}?",
    ),
    "pl": Forms(
        ("{d} {month} {y}",), "{n} dni temu",
        {"wczoraj": -1, "przedwczoraj": -2, "pojutrze": 2}, "co się stało {}?",
    ),
    "cs": Forms(
        ("{d}. {month} {y}",), "před {n} dny",
        {"včera": -1, "předevčírem": -2, "pozítří": 2}, "co se stalo {}?",
    ),
    "ru": Forms(
        ("{d} {month} {y}",), "{n} дней назад",
        {"вчера": -1, "позавчера": -2, "послезавтра": 2}, "что случилось {}?",
    ),
    "uk": Forms(
        ("{d} {month} {y}",), "{n} днів тому",
        {"вчора": -1, "позавчора": -2, "післязавтра": 2}, "що сталося {}?",
    ),
}  # fmt: skip
CODES = [*FORMS]
NORDIC = ("sv", "da", "nb")  # "den 1 mars 2000" alone may be in any of them, or French
DATES = st.dates(date(1990, 1, 1), date(2040, 12, 31))


def windows(text: str, now: datetime = NOW) -> list[tuple[datetime, datetime]]:
    return [span.window() for span in find_times(text, now, lean="past", vague=True)]


def whole_day(day: date) -> tuple[datetime, datetime]:
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return start, start + timedelta(days=1)


def month_name(code: str, month: int) -> str:
    if code in ("zh", "ja", "ko"):
        return ""
    name = str(load_section(code, "calendar")["months"].split()[month - 1])
    return name.capitalize() if code in ("en", "de") else name


def written(form: str, code: str, day: date) -> str:
    made = form.format(d=day.day, m=day.month, y=day.year, month=month_name(code, day.month))
    for wrong, right in (("1th", "1st"), ("2th", "2nd"), ("3th", "3rd")):
        made = made.replace(f"{day.day}th", f"{day.day}".removesuffix(right[0]) + right) if (
            code == "en" and f"{day.day}th".endswith(wrong) and day.day not in (11, 12, 13)
        ) else made  # fmt: skip
    return made


@each_row("code", CODES)
@given(day=DATES)
def test_a_date_is_read_in_every_form(code: str, day: date) -> None:
    """Within a question and, where its words say which language it is, alone."""
    for form in FORMS[code].full:
        text = written(form, code, day)
        if code not in NORDIC:
            assert windows(text) == [whole_day(day)], text
        assert windows(FORMS[code].asked.format(text)) == [whole_day(day)], text


@each_row("code", CODES)
@given(today=DATES, count=st.integers(2, 400))
def test_days_are_counted_back_from_today(code: str, today: date, count: int) -> None:
    """So many days ago, in each language's own words and in a question."""
    now = datetime(today.year, today.month, today.day, 9, tzinfo=UTC)
    text = FORMS[code].ago.format(n=count)

    expected = [whole_day(today - timedelta(days=count))]
    assert windows(text, now) == expected
    assert windows(FORMS[code].asked.format(text), now) == expected


@each_row("code", CODES)
@given(today=DATES)
def test_days_near_today(code: str, today: date) -> None:
    """Yesterday, the day before it, and the days to come."""
    now = datetime(today.year, today.month, today.day, 9, tzinfo=UTC)
    for text, days in FORMS[code].near.items():
        expected = [whole_day(today + timedelta(days=days))]
        assert windows(text, now) == expected, text
        assert windows(FORMS[code].asked.format(text), now) == expected, text


@each_row("code", ["en", *(language.code for language in LANGUAGES), *FURTHER])
@each_row("year", [1999, 2024, 2031])
def test_every_holiday_of_the_data_is_a_date(code: str, year: int) -> None:
    """With its year it is found; a fixed one at its day, others around Easter or by weekday."""
    for line in load_section(code, "holidays")["days"].strip().splitlines():
        names, _, rule = line.partition(" = ")
        for name in names.split("|"):
            found = find_times(f"{name.strip()} {year}", NOW, lean="past", vague=True)
            assert len(found) == 1, name
            start = found[0].start
            if rule[:2].isdecimal() and rule[3].isdecimal():
                assert (start.year, f"{start:%m-%d}") == (year, rule[:5]), name
            elif rule.startswith("easter"):
                easter = datetime(year, *easter_date(year), tzinfo=UTC)
                assert abs(start - easter) < timedelta(days=70), name
            else:  # the nth weekday of a month, or days after it
                first = datetime(year, int(rule[:2]), 1, tzinfo=UTC)
                assert timedelta() <= start - first < timedelta(days=35), name


@each_row("code", FURTHER)
def test_markers_are_what_only_a_language_has(code: str) -> None:
    """Made from the language's own file: without one of them it is not read at all."""
    assert load_words("markers")[code].split() == markers(code), regenerated()


def markers(code: str) -> list[str]:
    taken = ENGLISH | word_set_of("en", "stop_words", "search")
    taken = taken.union(*(language.vocabulary for language in LANGUAGES))
    own = language_of(code)
    parts = {part for key in own.words for part in TOKEN.findall(key) if part.isalpha()}
    return sorted(
        word for word in own.vocabulary | parts if len(word) >= MIN_MARKER and word not in taken
    )


def regenerated() -> str:
    """What the file should be, for whoever changes a language."""
    return word_lists({code: markers(code) for code in FURTHER})


def word_lists(lists: dict[str, list[str]]) -> str:
    parts = [(code, textwrap.wrap(" ".join(words), 98)) for code, words in lists.items()]
    return "\n".join(f"{code} = '''\n" + "\n".join(lines) + "\n'''" for code, lines in parts)


def test_near_words_are_all_that_a_language_is_known_by() -> None:
    """Made from the languages' own files: without one of them a text is not in that language."""
    lists = {one.code: sorted(one.vocabulary | one.telltales) for one in LANGUAGES}
    found = {code: words.split() for code, words in load_words("near").items()}
    assert found == lists, word_lists(lists)


# Ordinary sentences without a time, with words that look like some in another language.
ORDINARY = """
We met Bob and Maria at the office of the company
The fire alarm needs new batteries and a longer cable
Per request, the sales team sent the con side of the argument
The semaphore holds a lock while the thread waits
Is het waar dat de server de sleutel bewaart?
Il gatto dorme sulla sedia e non mangia
O sistema guarda as chaves no cofre
Hunden sover på stolen og drikker vand
Katten sover på stolen och dricker vatten
Pies śpi na krześle i pije wodę
Pes spí na židli a pije vodu
Собака спит на стуле и пьёт воду
Собака спить на стільці і пʼє воду
Der Hund schläft auf dem Stuhl und trinkt Wasser
猫が椅子の上で寝ています
고양이가 의자 위에서 자고 있습니다
El perro duerme en la silla y bebe agua
Le chien dort sur la chaise et boit de l'eau
La segunda opción es mejor que la primera
Esto ha sido aprobado por todos
¿qué ha pasado con el perro?
ce qui s'est passé avec le chien
Version 2.4. is out
it runs on 2/3 of the nodes
ratio 11/13 of the cells
section 12.11. of the manual
add sugar and 1/2 cup of water, then 1/4 to 1/2 teaspoon of salt
the pan is made from 18/8 steel
recent work on the recent branch
the era of per capita con artists met the sole mare
the calendar shows nothing
labor costs and memorial plaques
good work on the new black door
""".strip().splitlines()


@each_row("text", ORDINARY)
def test_an_ordinary_sentence_has_no_time(text: str) -> None:
    """In no language, neither as it is stored nor as a question."""
    assert find_times(text, NOW) == []
    assert find_times(text, NOW, lean="past", vague=True) == []


@each_row(
    ("text", "bound", "phrase", "offset"),
    [
        ("what happened since release 2.4?", "since", "release 2.4", ""),
        ("what happened the day after the release?", "after", "the release", "day"),
        ("three days after the release", "after", "the release", "three days"),
        ("two weeks before we moved to Berlin", "before", "we moved to Berlin", "two weeks"),
        ("on the day of the launch", "", "the launch", ""),
        ("the week of the launch", "", "the launch", "week of"),
        ("the Monday after the release", "after", "the release", "monday"),
        ("was geschah am Tag nach dem Release?", "after", "dem Release", "day"),
        ("was geschah zwei Wochen vor dem Umzug?", "before", "dem Umzug", "two week"),
        ("que s'est-il passé le lendemain de la sortie ?", "after", "de la sortie", "day"),
        ("qué pasó dos días antes del lanzamiento?", "before", "del lanzamiento", "two day"),
        ("cosa è successo due giorni dopo il rilascio?", "after", "il rilascio", "two day"),
        ("wat gebeurde er twee dagen na de verhuizing?", "after", "de verhuizing", "two day"),
    ],
)
def test_a_time_may_be_counted_from_an_event(
    text: str, bound: str, phrase: str, offset: str
) -> None:
    """The event is named by a memory; how far from it is said in any language."""
    (found,) = find_events(text)

    assert (found.bound, found.phrase, found.offset) == (bound, phrase, offset)


@given(on=DATES, count=st.integers(2, 30))
def test_so_many_days_from_an_event_are_so_many_days(on: date, count: int) -> None:
    """The day itself, whole, on the right side."""
    midnight, _ = whole_day(on)
    day = midnight + timedelta(hours=17)
    for word, sign in (("after", 1), ("before", -1)):
        (found,) = find_events(f"what broke {count} days {word} the release?")
        start = midnight + timedelta(days=sign * count)
        assert found.window(day) == (start, start + timedelta(days=1))
