"""The word lists of the languages against CLDR, the Unicode consortium's tables, as babel has them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.dates import find_times

babel = pytest.importorskip("babel", reason="babel (a dev dependency) brings the CLDR tables")

NOW = datetime(2026, 11, 15, 14, 30, tzinfo=UTC)
LOCALES = ["en", "de", "es", "fr", "zh"]
IN_MONTH = {
    "en": "in {} 2024", "de": "im {} 2024", "es": "en {} de 2024", "fr": "en {} 2024",
    "zh": "2024年{}",
}  # fmt: skip
AGO = {"en": "{} ago", "de": "vor {}", "es": "hace {}", "fr": "il y a {}", "zh": "{}前"}
# How German declines what CLDR gives in the nominative.
DATIVE = {"Tage": "Tagen", "Monate": "Monaten", "Jahre": "Jahren"}


def windows(text: str) -> list[tuple[datetime, datetime]]:
    return [span.window() for span in find_times(text, NOW, lean="past", vague=True)]


@pytest.mark.parametrize("name", LOCALES)
@pytest.mark.parametrize("month", range(1, 13))
def test_every_month_of_the_tables_is_known(name, month):
    """By its full name, as it stands in a date and alone."""
    months = babel.Locale(name).months
    for names in (months["format"]["wide"], months["stand-alone"]["wide"]):
        ((start, _),) = windows(IN_MONTH[name].format(names[month]))

        assert start == datetime(2024, month, 1, tzinfo=UTC)


@pytest.mark.parametrize("name", LOCALES)
@pytest.mark.parametrize("day", range(7))
def test_every_weekday_of_the_tables_is_known(name, day):
    """By its full name, whichever week it is."""
    days = babel.Locale(name).days
    for names in (days["format"]["wide"], days["stand-alone"]["wide"]):
        ((start, _),) = windows(names[day])

        assert start.weekday() == day


@pytest.mark.parametrize("name", LOCALES)
@pytest.mark.parametrize("unit", ["minute", "hour", "day", "week", "month", "year"])
def test_every_unit_of_the_tables_can_be_counted(name, unit):
    """Three of them ago, in each language's own words, is the same time."""
    patterns = babel.Locale(name).unit_patterns[f"duration-{unit}"]["long"]
    amount = patterns["other"].format("3")
    for nominative, dative in DATIVE.items():
        amount = amount.replace(nominative, dative) if name == "de" else amount

    assert windows(AGO[name].format(amount)) == windows(f"3 {unit}s ago")
