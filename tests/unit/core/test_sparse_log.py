"""A log of what happens many times a second."""

from __future__ import annotations

from bethink.core.sparse_log import SparseLog


def test_one_line_a_minute_that_counts_the_others() -> None:
    lines: list[str] = []
    now = [0.0]
    log = SparseLog(lines.append, lambda: now[0])
    for second in range(0, 130, 10):
        now[0] = second
        log(f"at {second}")

    assert lines == [
        "at 0",
        "at 60 (5 more such events before)",
        "at 120 (5 more such events before)",
    ]
