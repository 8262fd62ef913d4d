"""What `each_row` promises to a test: see `tests/rows.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rows
from rows import each_row

TRIED = """
from pathlib import Path
import pytest
from rows import each_row

made = []

@pytest.fixture
def box():
    made.append("up")
    yield []
    made.append("down")

@each_row("number", [1, 2, 3])
@each_row(("word", "other"), [("a", 0), ("b", 0)], ids=["first", "second"])
def test_all_run(number, word, other, box, tmp_path, capsys, monkeypatch):
    box.append(1)
    print(number)
    (tmp_path / "here").touch(exist_ok=False)
    assert (len(box), capsys.readouterr().out) == (1, f"{number}\\n")
    assert number != 2
    assert word == "a" or number == 1

def test_everything_was_taken_down():
    assert made == ["up", "down"] * 6

@each_row("number", [1, 2])
def test_one_skipped(number):
    if number == 1:
        pytest.skip("not this one")

@each_row("number", [1, 2])
def test_all_skipped(number):
    pytest.skip("none of them")
"""


def test_each_row_runs_alone_and_fails_by_name(tmp_path: Path) -> None:
    """With fixtures of its own, whatever became of those before it."""
    (tmp_path / "test_tried.py").write_text(TRIED)
    asked = [sys.executable, "-m", "pytest", "-p", "rows", "-p", "no:randomly", "-n0", "-rA",
             "-o", "verbosity_subtests=1"]  # fmt: skip
    told = os.environ | {"PYTHONPATH": str(Path(rows.__file__).parent)}
    ran = subprocess.run(asked, cwd=tmp_path, env=told, capture_output=True, text=True, check=False)
    summary = ran.stdout.rpartition("short test summary info")[2]
    failed = [line for line in summary.splitlines() if line.startswith("SUBFAILED")]
    assert [line.split(" - ")[0].split(" ")[0] for line in failed] == [
        "SUBFAILED[first-2]", "SUBFAILED[second-2]", "SUBFAILED[second-3]",
    ]  # fmt: skip
    assert "FAILED test_tried.py::test_all_run[6-rows]" in summary
    assert "PASSED test_tried.py::test_everything_was_taken_down" in summary
    assert "not this one" in summary
    assert "PASSED test_tried.py::test_one_skipped" in summary
    assert "none of them" in summary
    assert "PASSED test_tried.py::test_all_skipped" not in summary


def test_a_table_that_proves_nothing_is_refused() -> None:
    """No rows, a row of another length, a mark that would be overlooked."""
    with pytest.raises(ValueError, match="no rows"):
        each_row("text", [])
    with pytest.raises(ValueError, match="zip"):
        each_row(("text", "found"), [("a", "b", "c")])
    with pytest.raises(ValueError, match="2 ids for 1 rows"):
        each_row("text", ["a"], ids=["one", "two"])
    with pytest.raises(ValueError, match="no marks"):
        each_row("text", [pytest.param("a", marks=pytest.mark.slow)])
