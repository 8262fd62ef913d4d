"""What all measurements share: CPU time, tables, and the results kept for the curves."""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

RESULTS = Path(__file__).parent / "results.json"
PAGE = Path(__file__).parent / "RESULTS.md"
PRINTED: list[str] = []
KEEPING = False


def cpu_ms(work: Callable[[], object]) -> float:
    """The CPU milliseconds of one call, all threads."""
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def cpu_of_all() -> float:
    """The CPU seconds of this process and of those it waited for."""
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system


def middle(values: Sequence[float]) -> float:
    return statistics.median(values)


def p95(values: Sequence[float]) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * 0.95))]


def show(value: object) -> str:
    """A number with as many digits as it deserves."""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def say(text: str = "") -> None:
    PRINTED.append(text)
    print(text, flush=True)


def row(*cells: object) -> None:
    say("| " + " | ".join(map(show, cells)) + " |")


def head(title: str, *cells: str) -> None:
    say(f"\n### {title}\n")
    row(*cells)
    row(*("---" for _ in cells))


def status(*names: str) -> dict[str, int]:
    """Values of /proc/self/status in MB: VmRSS, VmHWM."""
    with Path("/proc/self/status").open(encoding="ascii") as file:
        found = dict(line.split(":", 1) for line in file)
    return {name: int(found[name].split()[0]) // 1024 for name in names}


def drop_from_cache(path: Path) -> None:
    """Let the system forget a file's pages, so that the next reader meets a cold disk."""
    os.sync()
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def machine() -> str:
    load = os.getloadavg()[0]
    return f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f}"


def keep(part: str, values: dict[str, Any]) -> None:
    """Keep a part's numbers for the curves, in place of those of an earlier run."""
    if not KEEPING:
        return
    known = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    known.setdefault(part, {}).update(values)
    RESULTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def keep_page(part: str, command: str) -> None:
    """Put what was printed into its place in RESULTS.md, between two comments."""
    text = PAGE.read_text("utf-8")
    begin, end = f"<!-- begin {part} -->", f"<!-- end {part} -->"
    if begin not in text:
        print(f"RESULTS.md has no place for {part}", file=sys.stderr)
        return
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    body = "\n".join(PRINTED).strip()
    made = f"{begin}\n`{command}` ({machine()})\n\n{body}\n{end}"
    PAGE.write_text(before + made + after, encoding="utf-8")
