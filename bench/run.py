"""Measures speed as ratios within one run: `python bench/run.py --help`.

Machines are noisy, so times are CPU milliseconds, and each is taken beside a reference in
the same process, question by question. `--keep` writes the tables into RESULTS.md and the
numbers into results.json, from which `python bench/curves.py` draws. A million memories:
bench/million.py. Other systems: bench/peers/speed.py. With `--corpus FOLDER` the walk is
measured on public conversations instead of our own: LoCoMo, LongMemEval.
"""

from __future__ import annotations

import argparse
import gc
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import measure
from measure import cpu_ms, head, keep, middle, p95, row, say

import natural
import processes
import serving
from corpus import BEGIN, OWNER, Corpus
from reference import Reference
from stores import CACHE, Prepared, embedded_texts, read_shard, read_vectors, store_of

from bethink import Memory
from bethink.errors import Refused
from bethink.models.embed.encoder import EncoderEmbedder
from bethink.retrieval.profile import profile_names

WARM_UP = 30
QUESTIONS = 90
# What issue and README promise: ratio to the reference, encoder included.
WANTED = {10_000: 3.2, 100_000: 0.9, 1_000_000: 0.35}


class TimedEncoder(EncoderEmbedder):
    """The encoder, with the CPU time that questions spent in it."""

    def __init__(self) -> None:
        super().__init__()
        self.spent = 0.0

    def _timed(self, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        try:
            return work()
        finally:
            self.spent += (time.process_time() - start) * 1000

    def embed_query(self, text: str) -> Any:
        return self._timed(lambda: super(TimedEncoder, self).embed_query(text))

    def word_tokens(self, words: Any, question: str = "") -> Any:
        return self._timed(lambda: super(TimedEncoder, self).word_tokens(words, question))

    def weighted(self, words: Any, weights: Any, question: str = "") -> Any:
        return self._timed(lambda: super(TimedEncoder, self).weighted(words, weights, question))


@contextmanager
def opened(size: int, embedder: Any = None) -> Iterator[Memory]:
    """A copy of a store of our own corpus."""
    with copied(store_of(size), embedder) as memory:
        yield memory


@contextmanager
def copied(store: Path, embedder: Any = None) -> Iterator[Memory]:
    """A copy of a store, so that nothing measured changes the kept one."""
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        path = Path(folder) / "space.db"
        shutil.copyfile(store, path)
        with Memory.open(path=path, embedder=embedder or EncoderEmbedder()) as memory:
            yield memory


def walk_of(
    memory: Memory,
    reference: Reference,
    corpus: Corpus | natural.Conversations,
    encoder: TimedEncoder,
    count: int,
) -> dict[str, Any]:
    """Questions in turn to the reference and to us, with and without the encoder."""
    asked: Sequence[Any] = corpus.questions(WARM_UP + count)
    first = min(WARM_UP, len(asked) // 3)  # a public set may have few
    count = len(asked) - first
    for question in asked[:first]:
        reference.recall(question.text)
        memory.recall(question.text, now=question.now)
    gc.collect()
    gc.freeze()  # what the set-up left behind is no business of the collector
    theirs, ours, bare, encoding = [], [], [], []
    hits = {"default": 0, "reference": 0}
    for question in asked[first:]:
        encoder.spent = 0.0
        begun = time.process_time()
        answer = memory.recall(question.text, now=question.now)
        total = (time.process_time() - begun) * 1000
        ours.append(total)
        bare.append(total - encoder.spent)
        vector = encoder.embed_query(question.text).vector
        encoding.append(encoder.spent)
        begun = time.process_time()
        found = reference.answer(question.text, vector)
        theirs.append((time.process_time() - begun) * 1000)
        hits["default"] += any(
            corpus.answers(question, hit.item.session, hit.item.seq) for hit in answer.hits[:10]
        )
        turns = (next(corpus.turns(number, number + 1)) for number, _, _ in found)
        hits["reference"] += any(corpus.answers(question, turn.session, turn.seq) for turn in turns)
    gc.unfreeze()
    with_encoder = [one + two for one, two in zip(theirs, encoding, strict=True)]
    return {
        "reference": middle(with_encoder), "default": middle(ours), "default_p95": p95(ours),
        "ratio": middle(ours) / middle(with_encoder),
        "reference_bare": middle(theirs), "walk": middle(bare), "walk_p95": p95(bare),
        "ratio_bare": middle(bare) / middle(theirs),
        "encoder": middle(encoding), "questions": count,
        "hit10": hits["default"] / count, "reference_hit10": hits["reference"] / count,
    }  # fmt: skip


def walk(sizes: list[int]) -> None:
    """The whole default walk against the reference, and the same without the encoder."""
    say("\n### A question, warm\n")
    say('CPU ms, medians. "Found" is the share of questions whose answer is among the ten.\n')
    row("memories", "reference", "default p50", "p95", "times reference", "wanted",
        "reference without encoder", "default without p50", "p95", "times reference",
        "found", "reference found")  # fmt: skip
    row(*["---"] * 12)
    for size in sizes:
        store_of(size)
        corpus, encoder = Corpus(size), TimedEncoder()
        reference = Reference(corpus.texts(), read_vectors(CACHE, size), encoder)
        with opened(size, encoder) as memory:
            one = walk_of(memory, reference, corpus, encoder, QUESTIONS)
        keep("walk", {str(size): one})
        row(size, one["reference"], one["default"], one["default_p95"], one["ratio"],
            WANTED.get(size, ""), one["reference_bare"], one["walk"], one["walk_p95"],
            one["ratio_bare"], one["hit10"], one["reference_hit10"])  # fmt: skip


def walk_natural(folder: Path) -> None:
    """The same on conversations of people, as published; each set in one store."""
    sets = natural.read(folder)
    head("A question on public conversations, warm", "set", "memories", "words each",
         "questions", "reference", "default p50", "p95", "times reference",
         "reference without encoder", "default without p50", "p95", "times reference",
         "found", "reference found")  # fmt: skip
    for corpus in sets:
        store, vectors = natural.store_of(corpus, CACHE)
        encoder = TimedEncoder()
        reference = Reference(corpus.texts(), vectors, encoder)
        with copied(store, encoder) as memory:
            one = walk_of(memory, reference, corpus, encoder, QUESTIONS)
        keep("natural", {corpus.name: {"memories": len(corpus), **one}})
        row(corpus.name, len(corpus), corpus.words(), one["questions"], one["reference"],
            one["default"], one["default_p95"], one["ratio"], one["reference_bare"], one["walk"],
            one["walk_p95"], one["ratio_bare"], one["hit10"], one["reference_hit10"])  # fmt: skip


def filter_cases(corpus: Corpus) -> dict[str, dict[str, Any]]:
    """A filter of every kind that narrows a conversation, broad and narrow."""
    some = next(corpus.turns(corpus.size // 2, corpus.size // 2 + 1))
    day = BEGIN + timedelta(days=500)
    friend = next(turn.speaker for turn in corpus.turns(corpus.size // 2) if turn.speaker != OWNER)
    return {
        "none": {},
        "a person named often": {"entity": "James"},
        "a person named seldom": {"entity": "Debra"},
        "speaker, half of all": {"speaker": OWNER},
        "speaker, one of forty": {"speaker": friend},
        "topic": {"topic": some.topic},
        "one day": {"since": day, "until": day + timedelta(days=1)},
        "one month": {"since": day, "until": day + timedelta(days=30)},
    }


def filters(sizes: list[int]) -> None:
    """Filters in turn with the plain question, without the encoder."""
    kinds = ("ms", "times plain", "p95")
    head(
        "Filters, without encoder",
        "filter",
        *(f"{size:,}: {kind}" for size in sizes for kind in kinds),
    )
    found: dict[str, list[object]] = {}
    for size in sizes:
        corpus = Corpus(size)
        cases = filter_cases(corpus)
        spent: dict[str, list[float]] = {name: [] for name in cases}
        encoder = TimedEncoder()
        with opened(size, encoder) as memory:
            for place, question in enumerate(corpus.questions(10 + 40)):
                # Each kind comes first as often as any other, and none has the encoder in it.
                turn = place % len(cases)
                for name in [*cases][turn:] + [*cases][:turn]:
                    encoder.spent = 0.0
                    where = cases[name]
                    took = cpu_ms(lambda q=question.text, w=where: memory.recall(q, **w))
                    if place >= 10:
                        spent[name].append(took - encoder.spent)
        plain = middle(spent["none"])
        for name, times in spent.items():
            found.setdefault(name, []).extend((middle(times), middle(times) / plain, p95(times)))
        keep("filters", {str(size): {name: middle(times) for name, times in spent.items()}})
    for name, cells in found.items():
        row(name, *cells)


COLD = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import measure
from pathlib import Path
from bethink import Memory
measure.drop_from_cache(Path(sys.argv[2]))
times = []
with Memory.open(path=sys.argv[2]) as memory:
    for question in sys.argv[3:]:
        wall, cpu = time.perf_counter(), time.process_time()
        memory.recall(question)
        times.append(((time.process_time() - cpu) * 1000, (time.perf_counter() - wall) * 1000))
print(json.dumps({"times": times} | measure.status("VmHWM", "VmRSS")))
"""


def cold_process(path: Path, questions: list[str]) -> dict[str, Any]:
    """The first questions of a new process on a file that the system does not hold."""
    import json

    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", COLD, here, str(path), *questions]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def cold(sizes: list[int]) -> None:
    """First questions of a process on a cold file, its memory, and the file's size."""
    head("A new process on a cold file", "memories", "1st question CPU ms", "wall ms", "2nd CPU ms",
         "wall ms", "10th CPU ms", "peak RSS MB", "file MB", "bytes a memory")  # fmt: skip
    for size in sizes:
        path = store_of(size)
        asked = [question.text for question in Corpus(size).questions(10)]
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            copy = Path(folder) / "space.db"
            shutil.copyfile(path, copy)
            with Memory.open(path=copy) as memory:  # what an upgrade costs is not measured
                memory.stats()
            found = cold_process(copy, asked)
            disk = copy.stat().st_size
        times = found["times"]
        values = {"first_cpu": times[0][0], "first_wall": times[0][1], "second_cpu": times[1][0],
                  "second_wall": times[1][1], "tenth_cpu": times[9][0], "rss_mb": found["VmHWM"],
                  "file_mb": disk / 1e6, "bytes": disk / size}  # fmt: skip
        keep("cold", {str(size): values})
        row(size, *values.values())


def operations(sizes: list[int]) -> None:
    """Reading besides recall: what should not grow with the store."""
    found: dict[str, list[float]] = {}
    for size in sizes:
        corpus = Corpus(size)
        some = next(corpus.turns(size // 2, size // 2 + 1))
        with opened(size) as memory:
            items = memory.browse(limit=50)
            one = items[7].id
            cases: dict[str, Callable[[], object]] = {
                "get": lambda: memory.get(one),
                "list 50": lambda: memory.browse(limit=50),
                "list 50 of a topic": lambda: memory.browse(limit=50, topic=some.topic),
                "list 50 of an entity": lambda: memory.browse(limit=50, entity="James"),
                "timeline": lambda: memory.timeline(one),
                "history": lambda: memory.history(one),
                "links": lambda: memory.links(one),
                "entities, first 50": lambda: memory.entities(limit=50),
                "stats": memory.stats,
            }
            for name, work in cases.items():
                work()
                found.setdefault(name, []).append(middle([cpu_ms(work) for _ in range(5)]))
    growth_table("Other reads", sizes, found)


def growth_table(title: str, sizes: list[int], found: dict[str, list[float]]) -> None:
    tenfold = len(sizes) > 1
    head(title + ", CPU ms", "what", *(f"{size:,}" for size in sizes), *["factor"] * tenfold)
    for name, times in found.items():
        row(name, *times, *([times[-1] / max(times[0], 1e-6)] if tenfold else []))
    values = {name: dict(zip(map(str, sizes), times, strict=True)) for name, times in found.items()}
    keep("operations", values)


def writing(sizes: list[int]) -> None:
    """Writes into stores of every size: a batch, one by one, with and without embedding."""
    head("Writing, memories a CPU second", "into a store of", "batch, vectors given",
         "batch, encoder", "one by one, vectors given", "one by one, encoder")  # fmt: skip
    for size in (0, *sizes):
        prepared = Prepared()
        total = size + 4_000
        with writable(size, prepared) as memory:
            turns = list(Corpus(total).turns(size, total))
            drafts = [turn.draft() for turn in turns]
            vectors = [one for number in (size // 2000, size // 2000 + 1)
                       for one in read_or_make(number)]  # fmt: skip
            prepared.prepare(embedded_texts(turns), vectors)
            memory.remember_many(drafts[:500])
            batch = cpu_ms(lambda: memory.remember_many(drafts[500:2500]))
            single = cpu_ms(lambda: [memory.remember_many([one]) for one in drafts[2500:2700]])
            prepared.prepare([], [])
            plain = cpu_ms(lambda: memory.remember_many(drafts[2700:3200]))
            alone = cpu_ms(lambda: [memory.remember_many([one]) for one in drafts[3200:3300]])
        values = {"batch": 2e6 / batch, "batch_encoder": 5e5 / plain, "single": 2e5 / single,
                  "single_encoder": 1e5 / alone}  # fmt: skip
        keep("writing", {str(size): values})
        row(size, *values.values())


def read_or_make(number: int) -> list[Any]:
    from stores import SHARD, embed_shard

    embed_shard(CACHE, Corpus((number + 1) * SHARD), number, EncoderEmbedder())
    return read_shard(CACHE, number)


@contextmanager
def writable(size: int, embedder: Any) -> Iterator[Memory]:
    if size:
        with opened(size, embedder) as memory:
            yield memory
        return
    with (
        tempfile.TemporaryDirectory(dir=CACHE) as folder,
        Memory.open(path=Path(folder) / "space.db", embedder=embedder) as memory,
    ):
        yield memory


def change(memory: Memory, forgotten: str, topic: str | None) -> None:
    """A few changes, as between two runs of maintenance."""
    memory.forget(forgotten)
    texts = [f"Pia read gauge {number} at bridge {number * 7}" for number in range(10)]
    memory.remember_many([{"text": text, "topic": topic} for text in texts])


def upkeep(sizes: list[int]) -> None:
    """Erasing, maintenance, checking and exporting."""
    found: dict[str, list[float]] = {}
    for size in sizes:
        with opened(size) as memory:
            newest = memory.browse(limit=40)
            ids, topic = [item.id for item in newest], newest[-1].topic
            cases: dict[str, Callable[[], object]] = {
                "erase 1": lambda: memory.forget(ids[0], erase=True),
                "erase 20": lambda: memory.forget(*ids[1:21], erase=True),
                "list one level, 1,000": lambda: memory.browse(limit=1_000, levels=("item",)),
                "list one topic": lambda: memory.browse(limit=30, topics=(topic,)),
                "maintain duplicates, preview": lambda: memory.maintain("duplicates", preview=True),
                "maintain insights, preview": lambda: memory.maintain("insights", preview=True),
                "maintain insights, leaves": lambda: memory.maintain("insights"),
                "maintain insights, branches": lambda: memory.maintain("insights"),
                "maintain insights, root": lambda: memory.maintain("insights"),
                "maintain insights, nothing changed": lambda: memory.maintain("insights"),
                "maintain threads": lambda: memory.maintain("threads"),
                "again, nothing changed": lambda: memory.maintain("threads"),
                "again, 10 new and 1 forgotten": lambda: memory.maintain("threads"),
                "again, 1 erased": lambda: memory.maintain("threads"),
                "doctor": memory.doctor,
                "export": lambda: sum(1 for _ in memory.export()),
            }
            before: dict[str, Callable[[], object]] = {
                "again, 10 new and 1 forgotten": lambda: change(memory, ids[30], topic),
                "again, 1 erased": lambda: memory.forget(ids[31], erase=True),
            }
            for name, work in cases.items():
                before.get(name, lambda: None)()
                found.setdefault(name, []).append(cpu_ms(work))
        say(f"\nPeak RSS after upkeep of {size:,}: {measure.status('VmHWM')['VmHWM']} MB")
    growth_table("Upkeep, once", sizes, found)


def profiles(sizes: list[int]) -> None:
    """Every shipped profile's walk against the default one's, in turn, at the first size."""
    names = sorted(profile_names(), key=lambda name: (name != "default", name))
    head("Profiles", "profile", "CPU ms p50", "p95", "times default", "wanted")
    corpus = Corpus(sizes[0])
    with opened(sizes[0]) as memory:
        asked = [question.text for question in corpus.questions(10 + 40)]
        spent: dict[str, list[float]] = {name: [] for name in names}
        for place, question in enumerate(asked):
            for name in names:
                took = cpu_ms(lambda q=question, n=name: memory.recall(q, profile=n))
                if place >= 10:
                    spent[name].append(took)
    first = middle(spent[names[0]])
    for name in names:
        row(name, middle(spent[name]), p95(spent[name]), middle(spent[name]) / first, "<= 3")


PARTS: dict[str, Callable[[list[int]], None]] = {
    "walk": walk,
    "filters": filters,
    "cold": cold,
    "operations": operations,
    "writing": writing,
    "upkeep": upkeep,
    "profiles": profiles,
    "processes": processes.processes,
    "serve": serving.serve,
    "install": processes.install,
}
# Needs a package index, so it runs only where it is named.
APART = ("install",)
SIZES = "10000,100000"
# What takes minutes at 100,000 is measured there only where that is asked for.
SMALL = {"upkeep": "10000", "profiles": "10000"}


def sizes_of(part: str, asked: str | None) -> list[int]:
    """How many memories a part is measured with."""
    return [int(size) for size in (asked or SMALL.get(part, SIZES)).split(",")]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"{', '.join(PARTS)}; by default all but install")
    small = ", ".join(f"{part} {size}" for part, size in SMALL.items())
    parser.add_argument("--sizes", help=f"how many memories (default: {SIZES}; {small})")
    parser.add_argument("--keep", action="store_true", help="write RESULTS.md and results.json")
    parser.add_argument(
        "--corpus", type=Path, metavar="FOLDER", help="public conversations; for the part walk"
    )
    options = parser.parse_args(arguments)
    chosen = options.parts or [part for part in PARTS if part not in APART]
    for part in chosen:
        if part not in PARTS:
            parser.error(f"there is no part {part!r}")
    measure.KEEPING = options.keep
    if options.corpus is not None:
        if options.parts not in ([], ["walk"]):
            parser.error("--corpus is for the part walk")
        try:
            walk_natural(options.corpus)
        except Refused as error:
            parser.error(f"--corpus: {error}")
        if options.keep:
            measure.keep_page("natural", "python bench/run.py walk --corpus FOLDER")
        return
    spent = 0.0
    for part in chosen:
        measure.PRINTED.clear()
        print(f"\n{part}: {measure.machine()}")
        begun, cpu = time.perf_counter(), measure.cpu_of_all()
        PARTS[part](sizes_of(part, options.sizes))
        spent += measure.cpu_of_all() - cpu
        took = time.perf_counter() - begun
        print(f"\n{part} took {took:.0f} s; {spent:.0f} s of CPU so far, of all processes")
        if options.keep:
            more = f" --sizes {options.sizes}" if options.sizes else ""
            measure.keep_page(part, f"python bench/run.py {part}{more}")


if __name__ == "__main__":
    main()
