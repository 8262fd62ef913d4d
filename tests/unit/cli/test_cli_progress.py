"""The line that says how far a long command is."""

from __future__ import annotations

from io import StringIO

import pytest

from bethink.cli import app as of_app
from bethink.cli.app import App, progress


class Terminal(StringIO):
    """A terminal that keeps what was written."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the clock says, call by call."""
    told: list[float] = []
    monkeypatch.setattr(of_app, "monotonic", lambda: told.pop(0))
    return told


def shown(app: App, *amounts: tuple[int, int]) -> list[str]:
    with progress(app, "importing", unit="memories") as advance:
        for amount in amounts:
            advance(*amount)
    return app.err.stream.getvalue().split("\r")


def test_it_is_written_over_and_gone_at_the_end(times, monkeypatch) -> None:
    """With the rate and the time left where they are known, and without a colour code."""
    monkeypatch.setattr("sys.stderr", Terminal())
    times += [100.0, 101.0, 101.01, 110.0]

    _, first, second, third, cleared, end = shown(
        App(), (0, 0), (50, 1050), (60, 1050), (500, 1050)
    )

    assert first == "importing 0  memories"
    assert second == "importing 50 of 1,050  memories  50/s  0:20 left"
    assert third == "importing 500 of 1,050  memories  50/s  0:11 left"
    assert (cleared, end) == (" " * len(third), "")


def test_nobody_else_sees_it(monkeypatch) -> None:
    """Neither who pipes nor who wants JSON or quiet."""
    for stream, given in ((StringIO(), {}), (Terminal(), {"json": True})):
        monkeypatch.setattr("sys.stderr", stream)
        assert shown(App(**given), (1, 2)) == [""]
