"""Measures speed as ratios within one run: `python bench/run.py --help`.

Machines are noisy, so nothing here is a number by itself: the walk is timed against a
reference in the same process, question by question, alternating; processes are timed
against `python -c pass`.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from corpus import Corpus
from reference import Reference

from bethink import Memory
from bethink.models import DEFAULT_EMBEDDER, open_embedder
from bethink.retrieval.profile import profile_names

CACHE = Path(__file__).parent / ".cache"
WARM_UP = 60
BOUNDS = {1_000: "<= 5", 10_000: "<= 1.5", 100_000: "<= 0.2", 1_000_000: "<= 0.05"}


def say(*cells: object) -> None:
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def head(*cells: str) -> None:
    print()
    say(*cells)
    say(*("---" for _ in cells))


def space_of(size: int) -> Path:
    """A store of that size, made through the write walk and kept for the next run."""
    path = CACHE / f"{size}-{DEFAULT_EMBEDDER}.db"
    if not path.exists():
        CACHE.mkdir(exist_ok=True)
        rough = CACHE / f"{size}.making.db"
        for old in CACHE.glob(f"{size}.making.db*"):
            old.unlink()
        with Memory.open(path=rough) as memory:
            memory.remember_many(Corpus.of_size(size).memories(size), progress=_progress)
        print(file=sys.stderr)
        rough.rename(path)
    return path


def _progress(done: int, total: int) -> None:
    print(f"\rmaking a store: {done:,} of {total:,}", end="", file=sys.stderr)


def timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def walk(sizes: list[int], questions: int) -> None:
    """The whole default walk, embedding included, against the reference."""
    head("memories", "reference ms", "default ms", "ratio", "wanted", "p95 default ms")
    embedder = open_embedder()
    for size in sizes:
        corpus = Corpus.of_size(size)
        reference = Reference(list(corpus.memories(size)), embedder)
        with Memory.open(path=space_of(size), embedder=embedder) as memory:
            # The reference holds all vectors in memory from the start; a process that
            # has answered some questions holds those it met.
            warm, asked = WARM_UP, corpus.questions(WARM_UP + questions)
            for question in asked[:warm]:
                reference.recall(question)
                memory.recall(question)
            asked = asked[warm:]
            # What the set-up left behind is no business of the collector while measuring.
            gc.collect()
            gc.freeze()
            theirs, ours = [], []
            for question in asked:
                theirs.append(timed(lambda q=question: reference.recall(q)))
                ours.append(timed(lambda q=question: memory.recall(q)))
        one, two = statistics.median(theirs), statistics.median(ours)
        p95 = sorted(ours)[int(len(ours) * 0.95)]
        wanted = BOUNDS.get(size, "")
        say(f"{size:,}", f"{one:.2f}", f"{two:.2f}", f"{two / one:.2f}", wanted, f"{p95:.1f}")


def profiles(names: list[str], size: int, questions: int) -> None:
    """Every profile's walk against the first one's, question by question, in turn."""
    head("profile", "CPU ms", f"times {names[0]}", "wanted", "p95 CPU ms")
    embedder = open_embedder()
    asked = Corpus.of_size(size).questions(WARM_UP + questions)
    with Memory.open(path=space_of(size), embedder=embedder) as memory:
        for question in asked[:WARM_UP]:
            memory.compare(question, names)
        gc.collect()
        gc.freeze()
        spent: dict[str, list[float]] = {name: [] for name in names}
        for question in asked[WARM_UP:]:
            for name in names:
                spent[name].append(timed(lambda q=question, n=name: memory.recall(q, profile=n)))
    first = statistics.median(spent[names[0]])
    for name in names:
        middle, p95 = statistics.median(spent[name]), sorted(spent[name])[int(questions * 0.95)]
        say(name, f"{middle:.2f}", f"{middle / first:.2f}", "<= 3", f"{p95:.1f}")


def writing() -> None:
    """Memories a second: a batch of 10,000, and one by one with full synchronisation."""
    head("what", "memories/s", "memories per CPU second", "wanted")
    texts = list(Corpus.of_size(10_000).memories(10_500))
    for name, batch, single in (("encoder", 300, 100), ("words", 1_500, 150)):
        with (
            tempfile.TemporaryDirectory() as folder,
            Memory.open(path=Path(folder) / "batch.db", embedder=name) as memory,
        ):
            memory.remember("warm")
            start, cpu = time.perf_counter(), time.process_time()
            memory.remember_many(texts[:10_000])
            wall, cpu = time.perf_counter() - start, time.process_time() - cpu
            cells = (f"{10_000 / wall:,.0f}", f"{10_000 / cpu:,.0f}", f">= {batch:,}")
            say(f"a batch of 10,000, {name}", *cells)
            start, cpu = time.perf_counter(), time.process_time()
            for text in texts[10_000:]:
                memory.remember(text)
            wall, cpu = time.perf_counter() - start, time.process_time() - cpu
            say(f"one by one, {name}", f"{500 / wall:,.0f}", f"{500 / cpu:,.0f}", f">= {single}")


def _cpu_of(command: list[str], runs: int = 15) -> float:
    spent = []
    # As a user has it: bytecode is kept, and the store lies in a data folder.
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    kept["BETHINK_DATA_DIR"] = str(CACHE / "data")
    for _ in range(runs + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=kept, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(spent[1:]) * 1000


def processes() -> None:
    """CPU of a whole process against that of an empty one, medians of 15."""
    head("process", "CPU ms", "times `python -c pass`", "wanted")
    command = shutil.which("bethink", path=str(Path(sys.executable).parent)) or "bethink"
    spaces = CACHE / "data" / "spaces"
    spaces.mkdir(parents=True, exist_ok=True)
    shutil.copy(space_of(10_000), spaces / "bench.db")
    question = Corpus.of_size(10_000).questions(1)[0]
    nothing = _cpu_of([sys.executable, "-c", "pass"])
    say("python -c pass", f"{nothing:.1f}", "1", "")
    for name, words, wanted in (
        ("bethink --help", ["--help"], "<= 5"),
        ("bethink recall (10k)", ["recall", "--space", "bench", question], "<= 20"),
    ):
        cost = _cpu_of([command, *words])
        say(name, f"{cost:.1f}", f"{cost / nothing:.1f}", wanted)


def peak_memory() -> None:
    """Peak resident memory of a recall process on 100,000 memories."""
    head("what", "MB", "wanted")
    store = space_of(100_000)
    question = Corpus.of_size(100_000).questions(1)[0]
    code = (
        "import sys\nfrom bethink import Memory\n"
        "with Memory.open(path=sys.argv[1]) as m: m.recall(sys.argv[2])\n"
        # Not getrusage, which counts what the parent had before the program began.
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "print(int(peak.split()[1]) // 1024)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(store), question],
        capture_output=True,
        text=True,
        check=True,
    )
    say("peak of a recall process, 100k memories", answer.stdout.strip(), "<= 350")


def install() -> None:
    """Size and packages of the default install in a new environment."""
    head("default install", "value", "wanted")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        root = Path(__file__).parent.parent
        quiet = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*quiet, str(root)], check=True)
        listing = "import importlib.metadata as m; print(len({d.name for d in m.distributions()}))"
        count = subprocess.run(
            [str(python), "-c", listing], capture_output=True, text=True, check=True
        )
        site = next(Path(folder).glob("lib/python*/site-packages"))
        size = sum(
            file.stat().st_size
            for file in site.rglob("*")
            if file.is_file() and file.relative_to(site).parts[0].split("-")[0] not in TOOLS
        )
        say("size, without pip and setuptools", f"{size / 1e6:.0f} MB", "<= 125 MB")
        packages = int(count.stdout) - 2
        say("packages, without pip and setuptools", packages, "<= 12")


TOOLS = {"pip", "setuptools", "pkg_resources", "_distutils_hack"}

PARTS = {"writing": writing, "processes": processes, "memory": peak_memory, "install": install}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = f"walk, profiles, {', '.join(PARTS)}; all by default"
    parser.add_argument("parts", nargs="*", help=parts)
    parser.add_argument("--sizes", default="1000,10000,100000", help="sizes for the walk")
    parser.add_argument("--questions", type=int, default=60)
    shipped = ",".join(sorted(profile_names(), key=lambda name: (name != "default", name)))
    parser.add_argument("--profiles", default=shipped, help="compared with the first of them")
    options = parser.parse_args()
    parts = options.parts or ["walk", "profiles", *PARTS]
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores")
    for part in parts:
        if part == "walk":
            walk([int(size) for size in options.sizes.split(",")], options.questions)
        elif part == "profiles":
            profiles(options.profiles.split(","), 10_000, options.questions)
        elif part in PARTS:
            PARTS[part]()
        else:
            parser.error(f"there is no part {part!r}")


if __name__ == "__main__":
    main()
