"""The elements of a JSON array come one by one, whatever the pieces they are read in."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.errors import BadText, Refused, TooLarge
from bethink.importers.streams import json_elements

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


class Dripping:
    """A stream that gives a few bytes at a time."""

    def __init__(self, content: bytes, most: int) -> None:
        self._stream, self._most = io.BytesIO(content), most

    def read(self, size: int, /) -> bytes:
        return self._stream.read(min(size, self._most))


def found(content: bytes, most: int = 1 << 20, **limits: int) -> list[Any]:
    return [one.found for one in json_elements(Dripping(content, most), **limits)]


@given(values=st.lists(JSON, max_size=6), most=st.integers(1, 40), indent=st.none() | st.just(1))
def test_elements_are_those_of_the_array(values: list[Any], most: int, indent: int | None) -> None:
    """In order and in full, however the stream is cut."""
    content = json.dumps(values, indent=indent, ensure_ascii=False).encode()

    assert found(content, most) == values


@given(content=st.binary(max_size=60), most=st.integers(1, 20))
def test_any_bytes_give_values_or_refusals(content: bytes, most: int) -> None:
    """Nothing that can be in a file raises."""
    found(b"[" + content, most)
    found(content, most)


@pytest.mark.parametrize("cut", [b'[{"a": 1}, {"b": ', b'[1, "no end', b"[1, 2"])
def test_an_array_that_ends_too_soon_gives_what_was_whole(cut: bytes) -> None:
    """And says that it is not closed."""
    *whole, last = found(cut)

    assert len(whole) == 1
    assert isinstance(last, BadText)


def test_what_is_too_long_is_skipped_by_name() -> None:
    """The elements around it are read."""
    content = json.dumps(["a", {"long": "x" * 500}, "b"]).encode()

    first, long, last = found(content, most=64, max_bytes=100)

    assert (first, last) == ("a", "b")
    assert isinstance(long, TooLarge)


def test_a_bad_element_spoils_no_other() -> None:
    """Twice the same key, a number that is none, bytes that are no text."""
    content = b'[1, {"a": 1, "a": 2}, NaN, "\xff", 5]'

    values = found(content)

    assert [value for value in values if not isinstance(value, Refused)] == [1, 5]
    assert len(values) == 5


def test_what_is_no_array_is_one_value() -> None:
    """Behind a mark of byte order too; too long a one is refused."""
    assert found(b'\xef\xbb\xbf {"results": []}') == [{"results": []}]
    assert isinstance(found(b'{"a": "' + b"x" * 200 + b'"}', max_bytes=100)[0], TooLarge)
