"""Which tests are slow, and which files are long, is told by what they took."""

from __future__ import annotations

from slow import HERE, LIST, LONG, long_files, slow_ones


def test_the_longest_file_comes_first() -> None:
    """By the sum of its tests; a short one is not listed."""
    took = {"a.py::one": 2.0, "a.py::two": 2.0, "b.py::one": 9.0, "c.py::one": 1.0}

    assert long_files(took) == ["b.py", "a.py"]


def test_a_slow_test_is_listed_and_a_file_of_slow_ones_as_a_whole() -> None:
    """What is slow by where it is needs no line."""
    took = {
        "unit/a.py::one": 1.0,
        "unit/a.py::two": 0.0,
        "unit/b.py::one": 1.0,
        "e2e/c.py::one": 9.0,
    }

    assert slow_ones(took, ()) == ["unit/a.py::one", "unit/b.py"]


def test_every_line_names_a_file_that_there_is() -> None:
    """A file that was moved would be run in its old place in the order."""
    named = {
        line.partition("::")[0] for list_ in (LIST, LONG) for line in list_.read_text().split()
    }

    assert [name for name in sorted(named) if not (HERE / name).is_file()] == []
