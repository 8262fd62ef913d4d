"""Cutting files into pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.api.file_reader import LONG_CLASS_LINES, WINDOW_LINES, split_chunks

PYTHON = '''"""A module."""
import os

LIMIT = 3


# Says hello,
# politely.
@cached
def hello(name):
    return f"hello {name}"


async def later():
    pass


class Box:
    def open(self):
        return self


if os.name == "nt":
    def hello(name):
        return name


def hello(name):
    return 2
'''


def names(path: str, text: str) -> list[str]:
    return [chunk.id for chunk in split_chunks(path, text)]


def test_python_by_its_definitions() -> None:
    """Comments and decorators stay with what they stand above; names are told apart."""
    chunks = {chunk.id: chunk for chunk in split_chunks("a.py", PYTHON)}

    assert list(chunks) == ["preamble", "LIMIT", "hello", "later", "Box", "hello#2", "hello#3"]
    assert chunks["hello"].text.startswith("# Says hello,")
    assert chunks["preamble"].text.endswith("import os\n\n")


def test_a_long_class_is_cut_by_its_methods() -> None:
    """A change in one method is not a change of the class."""
    body = "".join(f"    def m{n}(self):\n        return {n}\n" for n in range(LONG_CLASS_LINES))
    found = names("a.py", f"class Big:\n    x = 1\n{body}")

    assert found[:2] == ["Big", "Big.m0"]
    assert len(found) == LONG_CLASS_LINES + 1


@pytest.mark.parametrize("broken", ["f(:\n  pass\n", "\x0cdef f():\n    pass\n\x0c", "(" * 5000])
def test_python_without_definitions_is_cut_by_lines(broken: str) -> None:
    """A half-written file is a file, too."""
    assert names("a.py", broken)[0].startswith("lines:")


def test_markdown_by_headings() -> None:
    """Fenced code is no heading."""
    text = "# Title\nhello\n## One\na\n```\n## not one\n```\n### Deep ##\n## One\nb\n"

    assert names("README.md", text) == ["preamble", "h2:One", "h3:Deep", "h2:One#2"]


def test_other_languages_by_their_definitions() -> None:
    """What is inside of one belongs to it."""
    text = (
        "import a from 'a'\nconst x = 1\nexport default async function go() {\n  const y = 2\n}\n"
        "export abstract class Shop<T> {\n  buy() {}\n}\ntype Id = string\n"
    )

    assert names("a.ts", text) == ["preamble", "x", "go", "Shop", "Id"]
    go = "package a\n\n// Serves.\nfunc (s *Server) Serve(n int) {\n}\n"
    assert names("a.go", go) == ["preamble", "Server.Serve"]
    assert names("a.rs", "pub(crate) fn go() {}\nimpl<T> Box<T> {\n}\n") == ["go", "Box"]


def test_anything_else_by_windows() -> None:
    """A hundred lines to a piece."""
    assert names("data.csv", "a\n" * (2 * WINDOW_LINES + 1)) == [
        "lines:1",
        "lines:101",
        "lines:201",
    ]
    assert split_chunks("empty.py", "") == ()


@given(text=st.text(), suffix=st.sampled_from([".py", ".md", ".ts", ".txt", ""]))
def test_the_pieces_are_the_whole(text: str, suffix: str) -> None:
    """Nothing is lost, nothing comes twice, no two pieces have one name."""
    chunks = split_chunks(f"file{suffix}", text)

    assert "".join(chunk.text for chunk in chunks) == text
    assert len({chunk.id for chunk in chunks}) == len(chunks)
    assert [chunk.first_line for chunk in chunks] == [
        1,
        *(chunk.last_line + 1 for chunk in chunks[:-1]),
    ][: len(chunks)]
