"""Files of plain lines are read as `tomllib` reads them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import bethink
from bethink.core.toml import parse_toml
from rows import each_row

SHIPPED = sorted(Path(bethink.__file__).parent.rglob("*.toml"))


@each_row("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_our_files_are_read_as_tomllib_reads_them(path: Path) -> None:
    """Those of plain lines, which are read without it, and the others."""
    text = path.read_text("utf-8")
    assert parse_toml(text) == tomllib.loads(text)


# Lines next to what is read as plain: other forms of the same, and mistakes.
NEARLY_PLAIN = r"""
a=1 § a = 1 § a  = 1 § a =  1 §  a = 1 § a = § a § = 1 § a.b = 1 § "a" = 1 § "a" = 1⏎a = 2 § 'a' = 1
"a	" = 1 § "a b" = 1 § "" = 1 § "a = 1 § é = 1 § 1a = 1 § a-b = 1 § a b = 1 § true = 1 § a = 1⏎a = 2
a = 0 § a = -0 § a = 01 § a = 1_0 § a = +1 § a = 0x1 § a = - § a = ٣ § a = 99999999999999999999
a = 1.5 § a = -0.25 § a = 1. § a = .5 § a = 01.5 § a = 1e5 § a = 1.5e5 § a = inf § a = nan § a = 1.2.3
a = true § a = false § a = True § a = tru § a = "" § a = '' § a = " § a = ' § a = "x § a = 'x" § a = x
a = "x" # c § a = "#" § a = "	" § a = '	' § a = "a"b" § a = 'a'b' § a = "'" § a = '"' § a = "é 日本"
a = ['x'] § a = [1, 2] § a = {b = 1} § a = 1979-05-27 § a = '''x''' § a = ''''''
a = '''⏎x⏎''' § a = '''⏎''' § a = '''⏎⏎x ⏎'''⏎b = 2 § a = '''⏎x''' § a = '''⏎x''''⏎''' § a = '''⏎x
[a] § [a]⏎[a] § [a]⏎b = 1⏎[a] § [a]⏎[b]⏎[a] § [a.b] § [a]⏎b = 1⏎[a.b] § [a.b]⏎[a] § [a.b]⏎[a.b] § [a.b]⏎[a.c]
[[a]] § [[a]]⏎b = 1⏎[[a]]⏎b = 2 § [[a]]⏎[a] § [a]⏎[[a]] § [[a]]⏎[a.b] § [[a.b]] § [[a.b]]⏎[[a.b]] § a = 1⏎[a]
[] § [[]] § [[a] § [a]] § [ a ] § [a] # c § [a § [a.] § [.a] § ["a"] § [a b] § [é] § a = 1⏎[a.b] § a = 1⏎[[a]]
# only a comment § a = 1⇥ § a = "⇥" § a = 1␍⏎b = 2 § ⊘a = 1 § a = "∅" §⏎⏎a = 1⏎⏎ § a = "x"⏎#
"""


def nearly_plain() -> list[str]:
    signs = {"⏎": "\n", "⇥": "\t", "␍": "\r", "⊘": "\ufeff", "∅": "\u200b"}
    texts = NEARLY_PLAIN.strip().replace("\n", "§")
    for sign, meant in signs.items():
        texts = texts.replace(sign, meant)
    return [text.removeprefix(" ").removesuffix(" ") for text in texts.split("§")]


def test_any_file_is_read_as_tomllib_reads_it() -> None:
    """The same values, of the same types, or the same mistake."""

    def outcome(text: str, parse: Any) -> str:
        try:
            return repr(parse(text))
        except tomllib.TOMLDecodeError as error:
            return str(error)

    for text in nearly_plain():
        assert outcome(text, parse_toml) == outcome(text, tomllib.loads), text


def test_what_would_take_all_memory_is_refused() -> None:
    """`tomllib` keeps every beginning of a key: 6 GB for one of 40,000 parts."""
    deep = ".".join("a" * 40_000)
    for text in (
        f"{deep} = 1",
        f"[{deep}]",
        f"x = {{{deep} = 1}}",
        '"="' + '."="' * 5_000 + " = 1",
    ):
        with pytest.raises(ValueError, match="dots"):
            parse_toml(text)
    hidden = 'a = ["""\n""", {' + deep + ' = "1"}]'
    with pytest.raises(ValueError, match="dots"):
        parse_toml(hidden)
    for text in (f"a = [ '{deep}' ]", f'a = [ "{deep}" ]', f"a = [1] # {deep}"):
        assert parse_toml(text) == tomllib.loads(text)
    for text in ("a = " + "[" * 100_000, "a = " + "[" * 200 + "]" * 200, "a = " + "{b=" * 5_000):
        with pytest.raises(ValueError, match="nested"):
            parse_toml(text)
    with pytest.raises(ValueError, match="too large"):
        parse_toml("a = 0x" + "f" * 10_000)
