"""The page of errors has every kind, with its exit code and HTTP status, and every message."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from bethink import errors
from bethink.cli.errors import classify_error
from bethink.server.rest.http_messages import error_response

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| .+ \| .+ \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
sys.path.insert(0, str(ROOT / "tools"))


def made(kind: type[errors.BethinkError]) -> errors.BethinkError:
    """An error of that kind, whatever its constructor needs."""
    error = kind.__new__(kind)
    errors.BethinkError.__init__(error, "as an example")
    if isinstance(error, errors.Forbidden):
        error.scope = "read"
    return error


def test_every_kind_has_its_row() -> None:
    """With the exit code and the HTTP status that it has, and no row is of another."""
    from error_messages import error_classes

    expected = []
    for kind in error_classes().values():
        error = made(kind)
        failure = classify_error(error)
        expected.append((failure.kind, str(failure.code), str(error_response(error).status_code)))

    assert sorted(ROWS) == sorted(expected)


def test_the_index_lists_the_messages_of_the_source() -> None:
    """One row for each place that raises one, read from the source itself."""
    from error_messages import messages, page

    listed = {one.text for one in messages()}

    assert listed >= {"the space NAME already exists", "there is no file PATH"}
    assert page().count("\n| ") > len(listed) > 500
