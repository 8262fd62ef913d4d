"""Other stores on the same texts and vectors: time, memory and disk, in one process.

    python bench/peers/speed.py --sizes 10000,100000

Needs an environment with bench/peers/speed-requirements.txt, and Bethink. Questions go to
all systems in turn; a question's vector is computed once and given to all, so no time has
the encoder in it. What is not comparable: the vector stores know no words, no dates and no
speakers; of all only Bethink explains its answer, keeps its history and stays silent.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import measure
from corpus import Corpus, Question, Turn
from measure import cpu_ms, head, keep, middle, p95, row
from offline import go_offline
from reference import STOP, WORD, Reference
from run import TimedEncoder
from stores import CACHE, read_vectors, store_of

from bethink import Memory

WARM_UP = 10
QUESTIONS = 40
K = 10


class Bethink:
    """Ours, by the default profile; the encoder's time is taken off."""

    packages = ("bethink",)

    def __init__(self, folder: Path, turns: Sequence[Turn], vectors: Any) -> None:
        self.encoder = TimedEncoder()
        self.path = folder / "space.db"
        shutil.copyfile(store_of(len(turns)), self.path)
        self.memory = Memory.open(path=self.path, embedder=self.encoder)

    def ask(self, question: str, vector: Any) -> list[int]:
        self.encoder.spent = 0.0
        found = self.memory.recall(question, k=K).hits
        return [number_of(hit.item.session, hit.item.seq) for hit in found]

    def taken_off(self) -> float:
        return self.encoder.spent

    def close(self) -> None:
        self.memory.close()


class ByReference:
    """The reference of bench/reference.py: FTS5 and a scan of all vectors, in memory."""

    packages = ()

    def __init__(self, folder: Path, turns: Sequence[Turn], vectors: Any) -> None:
        self.reference = Reference((turn.text for turn in turns), vectors, TimedEncoder())

    def ask(self, question: str, vector: Any) -> list[int]:
        return [number for number, _, _ in self.reference.answer(question, vector, K)]

    def close(self) -> None:
        self.reference.db.close()


class Chroma:
    """chromadb: vectors only."""

    packages = ("chromadb",)

    def __init__(self, folder: Path, turns: Sequence[Turn], vectors: Any) -> None:
        import chromadb

        self.client = chromadb.PersistentClient(str(folder))
        made = self.client.create_collection("turns", metadata={"hnsw:space": "cosine"})
        for start in range(0, len(turns), 5000):
            part = slice(start, start + 5000)
            made.add(ids=[str(n) for n in range(start, start + len(turns[part]))],
                     documents=[turn.text for turn in turns[part]],
                     embeddings=vectors[part])  # fmt: skip
        self.made = made

    def ask(self, question: str, vector: Any) -> list[int]:
        found = self.made.query(query_embeddings=[vector], n_results=K)
        return [int(one) for one in found["ids"][0]]

    def close(self) -> None:
        self.client.clear_system_cache()


class Lance:
    """lancedb: words and vectors, its own fusion; an index of both kinds."""

    packages = ("lancedb",)

    def __init__(self, folder: Path, turns: Sequence[Turn], vectors: Any) -> None:
        import lancedb
        import pyarrow as pa

        columns = {
            "number": pa.array(range(len(turns))),
            "text": pa.array([turn.text for turn in turns]),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), 384),
        }
        self.table = lancedb.connect(str(folder)).create_table("turns", pa.table(columns))
        self.table.create_fts_index("text", stem=True, remove_stop_words=True)
        if len(turns) > 50_000:
            self.table.create_index(metric="cosine", vector_column_name="vector")

    def ask(self, question: str, vector: Any) -> list[int]:
        search = self.table.search(query_type="hybrid").vector(vector).text(question)
        return search.limit(K).to_arrow()["number"].to_pylist()

    def close(self) -> None:
        pass


class Tantivy:
    """Tantivy (BM25, stems, no stop words) and usearch (HNSW, half floats), fused by RRF."""

    packages = ("tantivy", "usearch")

    def __init__(self, folder: Path, turns: Sequence[Turn], vectors: Any) -> None:
        import tantivy
        from usearch.index import Index

        schema = tantivy.SchemaBuilder()
        schema.add_text_field("text", stored=True, tokenizer_name="en_stem")
        schema.add_integer_field("number", stored=True)
        self.words = tantivy.Index(schema.build(), path=str(folder))
        writer = self.words.writer(num_threads=1)
        for number, turn in enumerate(turns):
            writer.add_document(tantivy.Document(text=turn.text, number=number))
        writer.commit()
        writer.wait_merging_threads()
        self.words.reload()
        self.vectors = Index(ndim=384, metric="cos", dtype="f16")
        self.vectors.add(range(len(turns)), vectors, threads=1)
        self.vectors.save(str(folder / "vectors.usearch"))
        self.searcher = self.words.searcher()

    def ask(self, question: str, vector: Any) -> list[int]:
        words = [word for word in WORD.findall(question) if word.lower() not in STOP]
        query = self.words.parse_query(" ".join(words), ["text"])
        found = self.searcher.search(query, 50).hits
        by_words = [self.searcher.doc(place)["number"][0] for _, place in found]
        scores: dict[int, float] = {}
        for ranking in (by_words, self.vectors.search(vector, 50).keys.tolist()):
            for rank, number in enumerate(ranking, start=1):
                scores[number] = scores.get(number, 0.0) + 1.0 / (60 + rank)
        best = sorted(scores, key=lambda number: -scores[number])
        return best[:K]

    def close(self) -> None:
        pass


class _Given:
    """Embeds what it was given before: the texts of the corpus and the question."""

    def __init__(self, turns: Sequence[Turn], vectors: Any) -> None:
        self.known = {turn.text: vector for turn, vector in zip(turns, vectors, strict=True)}

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        return [self.known[text].tolist() for text in texts]


class GraphMemory:
    """langgraph's InMemoryStore with an index of vectors."""

    packages = ("langgraph",)

    def __init__(self, folder: Path, turns: Sequence[Turn], vectors: Any) -> None:
        from langgraph.store.memory import InMemoryStore

        self.given = _Given(turns, vectors)
        index: Any = {"dims": 384, "embed": self.given, "fields": ["text"]}
        self.fill(InMemoryStore(index=index), turns)

    def fill(self, store: Any, turns: Sequence[Turn]) -> None:
        from langgraph.store.base import PutOp

        self.store = store
        for start in range(0, len(turns), 500):
            store.batch([PutOp(("turns",), str(start + place), {"text": turn.text})
                         for place, turn in enumerate(turns[start : start + 500])])  # fmt: skip

    def ask(self, question: str, vector: Any) -> list[int]:
        self.given.known[question] = vector
        return [int(one.key) for one in self.store.search(("turns",), query=question, limit=K)]

    def close(self) -> None:
        pass


class GraphSqlite(GraphMemory):
    """langgraph's SqliteStore, which scans with sqlite-vec."""

    packages = ("langgraph-checkpoint-sqlite", "sqlite-vec")

    def __init__(self, folder: Path, turns: Sequence[Turn], vectors: Any) -> None:
        from langgraph.store.sqlite import SqliteStore

        self.given = _Given(turns, vectors)
        index: Any = {"dims": 384, "embed": self.given, "fields": ["text"]}
        self.opened = SqliteStore.from_conn_string(str(folder / "store.db"), index=index)
        store = self.opened.__enter__()
        store.setup()
        self.fill(store, turns)

    def close(self) -> None:
        self.opened.__exit__(None, None, None)


SYSTEMS: dict[str, Callable[[Path, Sequence[Turn], Any], Any]] = {
    "Bethink": Bethink,
    "the reference": ByReference,
    "Tantivy + usearch": Tantivy,
    "chromadb": Chroma,
    "lancedb hybrid": Lance,
    "langgraph SqliteStore": GraphSqlite,
    "langgraph InMemoryStore": GraphMemory,
}
# Questions a system is spared where each takes a second.
FEW = {"langgraph InMemoryStore": 10}


def number_of(session: str | None, seq: int | None) -> int:
    from corpus import CYCLE, LENGTHS, STARTS

    round_, place = divmod(int((session or "s0")[1:]), len(LENGTHS))
    return round_ * CYCLE + STARTS[place] + (seq or 0)


def disk_of(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def build(name: str, folder: Path, turns: Sequence[Turn], vectors: Any) -> tuple[Any, list[float]]:
    """The system filled; the CPU of that a memory, the memory it took, and the disk."""
    before, begun = measure.status("VmRSS")["VmRSS"], time.process_time()
    system = SYSTEMS[name](folder, turns, vectors)
    spent = (time.process_time() - begun) * 1000 / len(turns)
    # Of ours the file itself: an older store in the cache leaves a backup when it is upgraded.
    disk = system.path.stat().st_size / 1e6 if name == "Bethink" else disk_of(folder)
    return system, [spent, measure.status("VmRSS")["VmRSS"] - before, disk]


def ask_all(
    systems: dict[str, Any], corpus: Corpus, asked: Sequence[Question]
) -> tuple[dict[str, list[float]], dict[str, int]]:
    encoder = TimedEncoder()
    gc.collect()
    gc.freeze()  # millions of objects of one system are no business of another's question
    spent: dict[str, list[float]] = {name: [] for name in systems}
    hits = dict.fromkeys(systems, 0)
    for place, question in enumerate(asked):
        vector = encoder.embed_query(question.text).vector
        for name, system in systems.items():
            first = WARM_UP - 2 if name in FEW else 0
            if not first <= place < WARM_UP + FEW.get(name, QUESTIONS):
                continue
            found: list[int] = []
            took = cpu_ms(lambda s=system, v=vector, f=found: f.extend(s.ask(question.text, v)))
            if place >= WARM_UP:
                off = system.taken_off() if hasattr(system, "taken_off") else 0.0
                spent[name].append(took - off)
                turns = (next(corpus.turns(number, number + 1)) for number in found)
                hits[name] += any(
                    corpus.answers(question, turn.session, turn.seq) for turn in turns
                )
    gc.unfreeze()
    return spent, hits


def measure_size(size: int, names: Sequence[str]) -> None:
    store_of(size)
    corpus = Corpus(size)
    turns, vectors = list(corpus.turns()), read_vectors(CACHE, size)
    head(f"{size:,} memories", "system", "question CPU ms p50", "p95", "times Bethink",
         "found among ten", "write CPU ms a memory", "RSS MB added", "disk MB")  # fmt: skip
    with tempfile.TemporaryDirectory(dir=CACHE, ignore_cleanup_errors=True) as top:
        systems, costs = {}, {}
        for name in names:
            folder = Path(top) / name.replace(" ", "-")
            folder.mkdir()
            print(f"filling {name}", file=sys.stderr, flush=True)
            try:
                systems[name], costs[name] = build(name, folder, turns, vectors)
            except Exception as error:  # noqa: BLE001 - a system that does not run here is told
                print(f"{name} does not run: {error!r}", file=sys.stderr)
        print("asking", file=sys.stderr, flush=True)
        spent, hits = ask_all(systems, corpus, corpus.questions(WARM_UP + QUESTIONS))
        ours = middle(spent["Bethink"])
        for name, times in spent.items():
            write, memory, disk = costs[name]
            shown: object = "" if name == "Bethink" else write
            row(name, middle(times), p95(times), middle(times) / ours, hits[name] / len(times),
                shown, memory, disk)  # fmt: skip
        keep("peers", {str(size): {name: [middle(times), p95(times), *costs[name]]
                                   for name, times in spent.items()}})  # fmt: skip
        for system in systems.values():
            with suppress(Exception):
                system.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--keep", action="store_true", help="write RESULTS.md and results.json")
    options = parser.parse_args()
    measure.KEEPING = options.keep
    names = [name.strip() for name in options.systems.split(",")]
    told = []
    for name in names:
        for package in SYSTEMS[name].packages:  # type: ignore[attr-defined]
            with suppress(Exception):
                told.append(f"{package} {version(package)}")
    measure.say(", ".join(told))
    with tempfile.TemporaryDirectory() as home:
        os.environ.setdefault("BETHINK_BENCH_CACHE", str(CACHE))
        go_offline(home)
        for size in map(int, options.sizes.split(",")):
            measure_size(size, names)
    if options.keep:
        measure.keep_page("peers", "python bench/peers/speed.py")


if __name__ == "__main__":
    main()
