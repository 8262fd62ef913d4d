"""Embed many texts ahead, in several processes: for imports and reindexing.

Each process runs the encoder on one core, started with this module and spoken to by its
standard streams: neither a fork, which threads and open files do not survive, nor
`multiprocessing`, which would run the caller's own script again.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import Lock
from typing import IO, TypeVar

from bethink.models.embed import contextual
from bethink.models.embed.encoder import EncoderEmbedder
from bethink.ports import Embedder, Embedding

_MAX_PROCESSES = 8
# Characters of the texts that a process gets at once, of similar length.
_CHUNK_CHARACTERS = 24_000
_NICE = 5  # questions are answered first
_FAILURES = (EOFError, CancelledError)


# The chunk that a text's embedding will be in, and its place there.
_Made = tuple[Future[list[Embedding]], int]
E = TypeVar("E", bound=Embedder | None)


@contextmanager
def embedding_ahead(embedder: E) -> Iterator[E | EncoderEmbedder]:
    """Yield the embedder for many texts: our own encoder in several processes.

    Any other embedder, and ours on a machine with one core, is yielded as it is.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if type(embedder) is not EncoderEmbedder or (cores or 1) < 2 or not sys.executable:
        yield embedder
        return
    bulk = _BulkEncoder(min(_MAX_PROCESSES, cores or 1))
    try:
        yield bulk
    finally:
        bulk.close()


class _BulkEncoder(EncoderEmbedder):
    """Our encoder, which takes what it was told ahead from other processes.

    A process that ends early loses nothing: its texts are embedded here.
    """

    def __init__(self, processes: int) -> None:
        super().__init__()
        self._threads = ThreadPoolExecutor(processes, "bethink-embed")
        self._processes = processes
        self._started: list[subprocess.Popen[bytes]] = []
        self._alive, self._lock = 0, Lock()
        self._free: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        self._ahead: tuple[dict[str, _Made], dict[str, _Made]] = ({}, {})

    def embed_ahead(self, texts: Sequence[str]) -> None:
        """Begin to embed texts; what was told in the call before the last is forgotten."""
        if not self._started:
            with suppress(OSError):
                self._start()
        if not self._started:
            return
        last = self._ahead[1]
        told: dict[str, _Made] = {text: last[text] for text in texts if text in last}
        chunk: list[str] = []
        for text in sorted(dict.fromkeys(text for text in texts if text not in told), key=len):
            chunk.append(text)
            if sum(map(len, chunk)) >= _CHUNK_CHARACTERS:
                told |= self._submit(chunk)
                chunk = []
        self._ahead = last, told | self._submit(chunk)

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Return one embedding per text, those told ahead from the other processes."""
        made: dict[str, Embedding] = {}
        for text in texts:
            found = self._ahead[0].get(text) or self._ahead[1].get(text)
            if found is not None and text not in made:
                with suppress(*_FAILURES):
                    made[text] = found[0].result()[found[1]]
        rest = list(dict.fromkeys(text for text in texts if text not in made))
        made |= zip(rest, super().embed(rest), strict=True)
        return [made[text] for text in texts]

    def close(self) -> None:
        """End the processes, whatever they are doing."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for process in self._started:
            process.kill()
        self._threads.shutdown()
        for process in self._started:
            process.communicate()

    def _start(self) -> None:
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        for _ in range(self._processes):
            process = subprocess.Popen(  # noqa: S603 - our own program, by its absolute path
                [sys.executable, "-c", PROGRAM, *filter(None, sys.path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
            )
            self._started.append(process)
            self._alive += 1
            self._free.put(process)

    def _submit(self, chunk: Sequence[str]) -> dict[str, _Made]:
        if not chunk:
            return {}
        future = self._threads.submit(self._ask, list(chunk))
        return {text: (future, place) for place, text in enumerate(chunk)}

    def _ask(self, texts: list[str]) -> list[Embedding]:
        process = self._free.get()
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            pickle.dump(texts, process.stdin)
            process.stdin.flush()
            made: list[Embedding] = pickle.load(process.stdout)  # noqa: S301 - of our own process
        except Exception as error:  # also what something else wrote into its answer
            # Asked no more, unless no other is left: then it fails at once for all that wait.
            with self._lock:
                self._alive -= 1
            if self._alive < 1:
                self._free.put(process)
            raise EOFError from error
        self._free.put(process)
        return made


PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from bethink.models.embed.processes import serve; serve(sys.stdin.buffer, sys.stdout.buffer)"
)


def serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    """Embed the lists of texts that come, until the parent has closed its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the one who asks, too
    if hasattr(os, "nice"):
        os.nice(_NICE)
    contextual.max_threads = 1
    embedder = EncoderEmbedder()
    embedder.use_runtime()
    try:
        while True:
            texts = pickle.load(questions)  # noqa: S301 - of the process that started this one
            pickle.dump(embedder.embed(texts), answers)
            answers.flush()
    except (EOFError, BrokenPipeError):
        return
