"""The word lists of the languages against CLDR, the Unicode consortium's tables, as babel has them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bethink.lang.dates import find_times
from bethink.lang.dates.languages import FURTHER
from bethink.lang.words import load_section
from rows import each_row

babel = pytest.importorskip("babel", reason="babel (a dev dependency) brings the CLDR tables")

babel_dates = pytest.importorskip("babel.dates")

NOW = datetime(2026, 11, 15, 14, 30, tzinfo=UTC)
LOCALES = ["en", "de", "es", "fr", "zh", "ja", "ko", *FURTHER]
IN_MONTH = {
    "en": "in {} 2024", "de": "im {} 2024", "es": "en {} de 2024", "fr": "en {} 2024",
    "zh": "2024年{}", "ja": "2024年{}に", "ko": "2024년 {}에", "it": "in {} 2024", "pt": "em {} de 2024", "nl": "in {} 2024",
    "sv": "i {} 2024", "da": "i {} 2024", "nb": "i {} 2024", "pl": "w {} 2024",
    "cs": "v {} 2024", "ru": "в {} 2024", "uk": "в {} 2024",
}  # fmt: skip
AGES = {
    "minute": timedelta(minutes=3), "hour": timedelta(hours=3), "day": timedelta(days=3),
    "week": timedelta(weeks=3), "month": timedelta(days=92), "year": timedelta(days=3 * 366),
}  # fmt: skip


def windows(text: str) -> list[tuple[datetime, datetime]]:
    return [span.window() for span in find_times(text, NOW, lean="past", vague=True)]


@each_row("name", LOCALES)
@each_row("month", range(1, 13))
def test_every_month_of_the_tables_is_known(name, month):
    """By its full name, as it stands in a date."""
    names = babel.Locale(name).months["format"]["wide"]

    ((start, _),) = windows(IN_MONTH[name].format(names[month]))

    assert start == datetime(2024, month, 1, tzinfo=UTC)


@each_row("name", LOCALES)
@each_row("day", range(7))
def test_every_weekday_of_the_tables_is_known(name, day):
    """By its full name, whichever week it is."""
    names = babel.Locale(name).days["format"]["wide"]

    ((start, _),) = windows(names[day])

    assert start.weekday() == day


@each_row("name", LOCALES)
@each_row("unit", ["minute", "hour", "day", "week", "month", "year"])
def test_every_unit_of_the_tables_can_be_counted(name, unit):
    """Three of them ago, in each language's own words, is the same time."""
    said = babel_dates.format_timedelta(-AGES[unit], add_direction=True, locale=name)

    assert windows(said) == windows(f"3 {unit}s ago")


@each_row("name", ["en", "de", "es", "fr", *FURTHER])
def test_the_calendar_of_the_data_is_that_of_the_tables(name):
    """Months and weekdays of a language's file are the names that CLDR has, in order."""
    locale = babel.Locale(name)
    calendar = load_section(name, "calendar")

    months = [locale.months["format"]["wide"][number].lower() for number in range(1, 13)]
    weekdays = [locale.days["format"]["wide"][number].lower() for number in range(7)]

    assert calendar["months"].split() == months
    assert calendar["weekdays"].split() == weekdays
