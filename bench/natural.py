"""Public conversations as a corpus of the benchmark; none of their text is kept here.

LoCoMo and LongMemEval are read as `bethink eval` reads them, from a file or a folder. Each
set is one store: all its conversations, of LongMemEval the user's turns. Stores and vectors
are kept in the cache, by the content they were made of.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bethink import Memory
from bethink.core.speakers import searched_text
from bethink.errors import Refused
from bethink.eval.case import Case, make_case
from bethink.eval.datasets import DatasetOptions, find_datasets
from bethink.ingest.admission import make_draft
from bethink.model import Draft
from bethink.models.embed.encoder import EncoderEmbedder
from bethink.ports import Embedding


class Asked(NamedTuple):
    """A question, when it was asked, and the turns that answer it."""

    text: str
    now: datetime | None
    relevant: frozenset[str]


class Conversations:
    """One published set, with what the measurements ask of a corpus."""

    def __init__(self, name: str, case: Case) -> None:
        self.name, self.now = name, case.now
        self._drafts = case.drafts
        places = ((draft.session, draft.seq) for draft in case.drafts)
        self._units = dict(zip(places, case.units, strict=True))
        self._asked = [
            Asked(one.text, one.now, frozenset(one.relevant))
            for one in case.questions
            if one.answerable and not one.filters
        ]

    def __len__(self) -> int:
        return len(self._drafts)

    def turns(self, start: int = 0, end: int | None = None) -> Iterator[Draft]:
        return iter(self._drafts[start:end])

    def texts(self) -> Iterator[str]:
        return (draft.text for draft in self._drafts)

    def words(self) -> float:
        """How many words a turn has on average."""
        return sum(len(text.split()) for text in self.texts()) / len(self._drafts)

    def questions(self, count: int) -> list[Asked]:
        """So many questions, evenly spaced over all; all where there are fewer."""
        step = max(1.0, len(self._asked) / count)
        return [self._asked[int(place * step)] for place in range(min(count, len(self._asked)))]

    def answers(self, question: Asked, session: str | None, seq: int | None) -> bool:
        """Whether the turn answers the question."""
        return self._units.get((session, seq)) in question.relevant


def pooled(cases: Iterable[Case]) -> Case:
    """All cases in one space; drafts with the same ref are stored once."""
    rows: dict[str, tuple] = {}
    questions = []
    for case in cases:
        for row in zip(case.refs, case.drafts, case.units, strict=True):
            rows.setdefault(row[0], row)
        questions += [replace(one, now=one.now or case.now) for one in case.questions]
    return make_case("pooled", questions, rows.values())


def read(path: Path) -> list[Conversations]:
    """The sets of conversations in a file or folder; raises Refused where there is none."""
    found = []
    for dataset in find_datasets([path], DatasetOptions()):
        if dataset.level != "turn":
            continue  # the same memories, judged otherwise
        case = pooled(dataset.cases())
        if case.drafts and all(draft.session for draft in case.drafts):
            found.append(Conversations(dataset.name, case))
    if not found:
        raise Refused(f"{path} contains no conversations: LoCoMo's or LongMemEval's files")
    return found


class _Recording(EncoderEmbedder):
    """The encoder, which remembers the vectors it made."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[str, Any] = {}

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        new = super().embed(texts)
        self.made.update((text, one.vector) for text, one in zip(texts, new, strict=True))
        return new


def store_of(corpus: Conversations, cache: Path) -> tuple[Path, NDArray[np.float32]]:
    """A store of the whole set and the vectors of its turns; made if they are not there."""
    embedded = [searched_text(make_draft(draft)) for draft in corpus.turns()]
    content = hashlib.blake2b("\0".join(embedded).encode(), digest_size=8).hexdigest()
    folder = cache / f"{corpus.name}-{content}"
    if not folder.exists():
        _make(corpus, embedded, folder)
    return folder / "space.db", np.load(folder / "vectors.npy")


def _make(corpus: Conversations, embedded: Sequence[str], folder: Path) -> None:
    encoder = _Recording()
    drafts = list(corpus.turns())
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".making-") as name:
        making = Path(name) / "kept"
        making.mkdir()
        with Memory.open(
            path=making / "space.db", embedder=encoder, clock=lambda: corpus.now
        ) as memory:
            for start in range(0, len(drafts), 500):
                memory.remember_many(drafts[start : start + 500])
                done = min(start + 500, len(drafts))
                print(f"{corpus.name}: {done:,} of {len(drafts):,}", file=sys.stderr, flush=True)
        missing = [text for text in embedded if text not in encoder.made]
        encoder.embed(list(dict.fromkeys(missing)))
        np.save(making / "vectors.npy", np.array([encoder.made[text] for text in embedded]))
        making.rename(folder)
