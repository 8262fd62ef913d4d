"""Data sets by name. A new one is one loader and one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import resources
from itertools import islice
from pathlib import Path

from recollect.errors import Refused
from recollect.eval.case import Case, Dataset, Level, pooled
from recollect.eval.datasets.beir import beir
from recollect.eval.datasets.locomo import locomo
from recollect.eval.datasets.longmemeval import Protocol, longmemeval
from recollect.eval.datasets.own import own


@dataclass(frozen=True, slots=True)
class Reading:
    """How a data set is to be read. What one has no use for is refused, not ignored."""

    path: Path | None = None
    level: Level = "turn"
    protocol: Protocol = "official"
    captions: bool = True
    pooled: bool = False
    split: str | None = None
    corpus: Path | None = None
    space: str | None = None
    limit: int = 0


def _builtin(_: Reading) -> Dataset:
    folder = Path(str(resources.files("recollect.eval") / "builtin"))
    opened = own(folder / "questions.jsonl", corpus=folder / "memories.jsonl", name="builtin")
    return replace(opened, title="the small set that comes with Recollect")


DATASETS: dict[str, Callable[[Reading], Dataset]] = {
    "builtin": _builtin,
    "locomo": lambda r: locomo(r.path, level=r.level, captions=r.captions),
    "longmemeval": lambda r: longmemeval(r.path, level=r.level, protocol=r.protocol),
    "beir": lambda r: beir(r.path, split=r.split),
    "jsonl": lambda r: own(r.path, corpus=r.corpus, space=r.space),
}

_USES: dict[str, tuple[str, ...]] = {
    "builtin": (),
    "locomo": ("path", "level", "captions", "pooled"),
    "longmemeval": ("path", "level", "protocol", "pooled"),
    "beir": ("path", "split"),
    "jsonl": ("path", "corpus", "space"),
}


def open_dataset(name: str, reading: Reading) -> Dataset:
    """A data set, ready to be gone through as often as needed."""
    if name not in DATASETS:
        raise Refused(f"there is no data set {name!r}", remedy=f"there are: {', '.join(DATASETS)}")
    unset = Reading()
    for option in ("path", "level", "protocol", "captions", "pooled", "split", "corpus", "space"):
        if option not in _USES[name] and getattr(reading, option) != getattr(unset, option):
            raise Refused(f"data set {name} has no use for {option}")
    dataset = DATASETS[name](reading)
    if reading.limit:
        dataset = _first(dataset, reading.limit)
    return pooled(dataset) if reading.pooled else dataset


def _first(dataset: Dataset, limit: int) -> Dataset:
    def cases() -> Iterator[Case]:
        return islice(dataset.cases(), limit)

    return replace(dataset, cases=cases, title=f"{dataset.title}, first {limit}")


__all__ = ["DATASETS", "Reading", "open_dataset"]
