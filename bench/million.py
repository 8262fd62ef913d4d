"""A million memories: builds the store and measures it, a few minutes at a time.

    python bench/million.py --folder DIR --jobs 16 --minutes 9

Run it again until it says that nothing is left: vectors, stored turns and measurements that
are there already are kept. The vectors are the shipped encoder's, computed in parallel
processes (on two cores that takes hours: `--encoded 100000` computes those of the first
100,000 turns and derives the others from them, which is enough to measure speed); the
store is written by one, through the write pipeline. Takes about 12 GB of disk and 6 GB of
memory, and needs nothing but this repository and Bethink's own dependencies (PYTHONPATH=src
does). `--out` is where the tables and numbers go, by default DIR; put million.md into
RESULTS.md, and the numbers into results.json with `--keep`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="vectors and store")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--minutes", type=float, default=9, help="stop after so many")
    parser.add_argument("--encoded", type=int, default=0, help="derive vectors after so many turns")
    parser.add_argument("--size", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, help="where results go, by default the folder")
    parser.add_argument("--keep", action="store_true", help="add to results.json and RESULTS.md")
    return parser.parse_args()


OPTIONS = parse()
os.environ["BETHINK_BENCH_CACHE"] = str(OPTIONS.folder)

import measure
import run
import stores

# A measurement is begun only if so many minutes are left.
STEPS: dict[str, tuple[Callable[[list[int]], None], float]] = {
    "cold": (run.cold, 1.0),
    "walk": (run.walk, 4.0),
    "filters": (run.filters, 2.5),
    "operations": (run.operations, 1.0),
    "writing": (run.writing, 1.5),
}


def build(until: float) -> int:
    """Go on with vectors and store; return how many turns are stored."""
    folder, size, jobs = OPTIONS.folder, OPTIONS.size, OPTIONS.jobs
    encoded = OPTIONS.encoded
    path = folder / str(size) / "space.db"
    done = stores.stored_turns(path)
    if done < size:
        # Beside the one that writes; all of them again where there are but a few cores.
        running = stores.start_embedding(
            folder, min(size, encoded or size), max(1, jobs - 1), until
        )
        done = stores.fill(folder, path, size, until, encoded)
        stores.finish_embedding(running)
    return done


def measure_step(name: str, out: Path) -> None:
    measure.PRINTED.clear()
    begun = time.perf_counter()
    STEPS[name][0]([OPTIONS.size])
    text = "\n".join(measure.PRINTED).strip()
    seconds = time.perf_counter() - begun
    (out / f"million-{name}.md").write_text(text + "\n", encoding="utf-8")
    print(f"{name} took {seconds:.0f} s", file=sys.stderr, flush=True)


def left(out: Path) -> list[str]:
    """What is still to do, in order."""
    path = OPTIONS.folder / str(OPTIONS.size) / "space.db"
    to_encode = min(OPTIONS.size, OPTIONS.encoded or OPTIONS.size)
    shards = len(stores.missing_shards(OPTIONS.folder, to_encode))
    stored = stores.stored_turns(path)
    todo = [f"{shards} files of vectors"] if shards and stored < OPTIONS.size else []
    if stored < OPTIONS.size:
        todo.append(f"{OPTIONS.size - stored:,} turns to store")
    return todo + [name for name in STEPS if not (out / f"million-{name}.md").exists()]


def _command() -> str:
    derived = f" --encoded {OPTIONS.encoded}" if OPTIONS.encoded else ""
    return f"python bench/million.py --folder DIR{derived}"


def gather(out: Path) -> None:
    """One page of all that was measured."""
    parts = [
        (out / f"million-{name}.md").read_text("utf-8")
        for name in STEPS
        if (out / f"million-{name}.md").exists()
    ]
    told = f"`{_command()}` ({measure.machine()})"
    (out / "million.md").write_text("\n\n".join([told, *parts]), encoding="utf-8")
    if OPTIONS.keep:
        measure.PRINTED[:] = parts
        measure.RESULTS = Path(__file__).parent / "results.json"
        numbers: dict[str, Any] = json.loads((out / "million.json").read_text("utf-8"))
        measure.KEEPING = True
        for part, values in numbers.items():
            measure.keep(part, values)
        measure.keep_page("million", _command())


def main() -> None:
    until = time.time() + OPTIONS.minutes * 60
    out = OPTIONS.out or OPTIONS.folder
    out.mkdir(parents=True, exist_ok=True)
    OPTIONS.folder.mkdir(parents=True, exist_ok=True)
    measure.KEEPING, measure.RESULTS = True, OPTIONS.folder / "million.json"
    # Results of earlier calls, where they go to another folder each time.
    for known in OPTIONS.folder.glob("million-*.md"):
        if not (out / known.name).exists():
            shutil.copy(known, out)
    if build(until) == OPTIONS.size:
        for name, (_, minutes) in STEPS.items():
            if (out / f"million-{name}.md").exists():
                continue
            if (until - time.time()) / 60 < minutes and OPTIONS.minutes > minutes:
                break
            measure_step(name, out)
            if out != OPTIONS.folder:
                shutil.copy(out / f"million-{name}.md", OPTIONS.folder)
    if out != OPTIONS.folder and measure.RESULTS.exists():
        shutil.copy(measure.RESULTS, out)
    gather(out)
    todo = left(out)
    print(f"left: {'; '.join(todo) if todo else 'nothing'}", flush=True)


if __name__ == "__main__":
    main()
