"""Stores of any size, made through the write pipeline with the shipped encoder; resumable.

Vectors are computed apart, in parallel processes, into files of 2,000 turns (``vectors``),
and given to the write pipeline: the same bits as embedding while writing. What is there
already is kept, so a build goes on where it was stopped.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import apsw
import numpy as np
from corpus import CYCLE, LENGTHS, STARTS, Corpus, Turn
from numpy.typing import NDArray

from bethink import Memory
from bethink.core.speakers import searched_text
from bethink.ingest.admission import make_draft
from bethink.models.embed.encoder import EncoderEmbedder
from bethink.ports import Embedding

SHARD = 2_000
# Where `run.py` keeps stores and vectors between runs.
CACHE = Path(os.environ.get("BETHINK_BENCH_CACHE", Path(__file__).parent / ".cache"))


class Prepared(EncoderEmbedder):
    """The encoder, with the embeddings of some texts computed before."""

    def __init__(self) -> None:
        super().__init__()
        self._ready: dict[str, Embedding] = {}

    def prepare(self, texts: Sequence[str], embeddings: Sequence[Embedding]) -> None:
        self._ready = dict(zip(texts, embeddings, strict=True))

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        missing = [text for text in texts if text not in self._ready]
        made = dict(zip(missing, super().embed(missing), strict=True)) if missing else {}
        return [self._ready.get(text) or made[text] for text in texts]


def shard_path(folder: Path, number: int) -> Path:
    return folder / "vectors" / f"{number:05d}.npz"


def embedded_texts(turns: Iterable[Turn]) -> list[str]:
    """What the write pipeline embeds of turns: the speaker stands before the text."""
    return [searched_text(make_draft(turn.draft())) for turn in turns]


def embed_shard(folder: Path, corpus: Corpus, number: int, embedder: EncoderEmbedder) -> None:
    """Compute one file of vectors, unless it is there."""
    path = shard_path(folder, number)
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    made = embedder.embed(embedded_texts(corpus.turns(number * SHARD, (number + 1) * SHARD)))
    rough = path.with_suffix(f".{os.getpid()}.npz")
    np.savez(
        rough,
        vectors=np.array([one.vector for one in made], dtype=np.float32),
        tokens=np.frombuffer(b"".join(one.tokens for one in made), dtype=np.uint8),
        lengths=np.array([len(one.tokens) for one in made], dtype=np.int64),
        counts=np.array([one.token_count for one in made], dtype=np.int64),
    )
    rough.rename(path)


def derive_shard(folder: Path, number: int, encoded: int) -> None:
    """Make one file of vectors out of those of the first `encoded` turns, unless it is there.

    A vector is a mixture of two turns' vectors with a little noise, the tokens are the first
    one's: as large and as spread as real ones, at a hundredth of the cost. For measuring
    speed only; what is found among such turns means nothing.
    """
    path = shard_path(folder, number)
    if path.exists():
        return
    shards = encoded // SHARD
    with np.load(shard_path(folder, number % shards)) as data:
        first = {name: data[name] for name in data.files}
    rng = np.random.default_rng(number)
    with np.load(shard_path(folder, int(rng.integers(shards)))) as data:
        second = data["vectors"][rng.permutation(SHARD)]
    noise = rng.normal(size=second.shape).astype(np.float32) * 0.02
    mixed = 0.8 * first["vectors"] + 0.5 * second + noise
    first["vectors"] = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    rough = path.with_suffix(f".{os.getpid()}.npz")
    np.savez(rough, **first)
    rough.rename(path)


def read_shard(folder: Path, number: int) -> list[Embedding]:
    with np.load(shard_path(folder, number)) as data:
        vectors, tokens = data["vectors"], data["tokens"].tobytes()
        ends = np.cumsum(data["lengths"])
        counts = data["counts"].tolist()
    starts = [0, *ends.tolist()]
    return [
        Embedding(vector, tokens[starts[place] : starts[place + 1]], counts[place])
        for place, vector in enumerate(vectors)
    ]


def shards_of(size: int) -> range:
    return range(-(-size // SHARD))


def read_vectors(folder: Path, size: int) -> NDArray[np.float32]:
    """The vectors of the first turns, as the reference and other systems get them."""
    vectors = np.empty((size, 384), dtype=np.float32)
    for number in shards_of(size):
        start = number * SHARD
        with np.load(shard_path(folder, number)) as data:
            vectors[start : start + SHARD] = data["vectors"][: size - start]
    return vectors


def missing_shards(folder: Path, size: int) -> list[int]:
    return [number for number in shards_of(size) if not shard_path(folder, number).exists()]


def start_embedding(
    folder: Path, size: int, jobs: int, until: float
) -> list[subprocess.Popen[bytes]]:
    """Compute missing vectors in so many processes, until the time is over."""
    missing = missing_shards(folder, size)
    jobs = min(jobs, len(missing))
    code = (
        "import sys, time; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "import stores\n"
        "folder, size, until = Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])\n"
        "corpus, embedder = stores.Corpus(size), stores.EncoderEmbedder()\n"
        "for number in map(int, sys.argv[5].split(',')):\n"
        "    if time.time() > until: break\n"
        "    stores.embed_shard(folder, corpus, number, embedder)\n"
    )
    whole = str(len(shards_of(size)) * SHARD)
    told = [str(Path(__file__).parent), str(folder), whole, str(until)]
    return [
        subprocess.Popen(
            [sys.executable, "-c", code, *told, ",".join(map(str, missing[job::jobs]))]
        )
        for job in range(jobs)
    ]


def finish_embedding(running: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in running:
        if process.wait():
            raise SystemExit(f"embedding failed: {process.returncode}")


def stored_turns(path: Path) -> int:
    """How many turns of the corpus a store has, by the last one written."""
    if not path.exists():
        return 0
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    row = db.execute("SELECT session, seq FROM item ORDER BY rid DESC LIMIT 1").fetchone()
    db.close()
    if row is None:
        return 0
    round_, place = divmod(int(row[0][1:]), len(LENGTHS))
    return round_ * CYCLE + STARTS[place] + int(row[1]) + 1


def fill(folder: Path, path: Path, size: int, until: float = float("inf"), encoded: int = 0) -> int:
    """Write turns until all are stored or the time is over; return how many are stored.

    Vectors may still be in the making; it waits for them. After the first `encoded` turns,
    where that is given, they are derived.
    """
    corpus, embedder = Corpus(size), Prepared()
    done = stored_turns(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    told = time.time()
    with Memory.open(path=path, embedder=embedder) as memory:
        while done < size and time.time() < until:
            number, offset = divmod(done, SHARD)
            if encoded and number >= encoded // SHARD:
                derive_shard(folder, number, encoded)
            if not shard_path(folder, number).exists():
                time.sleep(0.2)
                continue
            turns = list(corpus.turns(done, min(size, (number + 1) * SHARD)))
            ready = read_shard(folder, number)[offset : offset + len(turns)]
            embedder.prepare(embedded_texts(turns), ready)
            memory.remember_many([turn.draft() for turn in turns])
            done += len(turns)
            if time.time() - told > 10 or done == size:
                told = time.time()
                print(f"{done:,} of {size:,} stored", file=sys.stderr, flush=True)
    return done


def store_of(size: int, folder: Path = CACHE, jobs: int = 0) -> Path:
    """A store of that size, made if it is not there; kept for the next run."""
    path = folder / f"{size}" / "space.db"
    if stored_turns(path) < size:
        forever = time.time() + 1e9
        running = start_embedding(folder, size, jobs or os.cpu_count() or 1, forever)
        fill(folder, path, size)
        finish_embedding(running)
    return path


def main(arguments: Sequence[str]) -> None:
    for size in map(int, arguments):
        print(store_of(size))


if __name__ == "__main__":
    main(sys.argv[1:])
