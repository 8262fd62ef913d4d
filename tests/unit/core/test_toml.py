"""TOML files are read as `tomllib` reads them, within limits."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import bethink
from bethink.core.toml import parse_toml
from rows import each_row

SHIPPED = sorted(Path(bethink.__file__).parent.rglob("*.toml"))


@each_row("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_our_files_are_read_as_tomllib_reads_them(path: Path) -> None:
    """No limit is in their way."""
    text = path.read_text("utf-8")
    assert parse_toml(text) == tomllib.loads(text)


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
