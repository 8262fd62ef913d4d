"""Data sets by name. A new one is a loader and an entry in the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import resources
from itertools import islice
from pathlib import Path

from bethink.core.registry import Registry
from bethink.errors import Refused
from bethink.eval.case import Case, Dataset, Level, pool_cases
from bethink.eval.datasets.jsonl import beir, jsonl_dataset
from bethink.eval.datasets.locomo import locomo
from bethink.eval.datasets.longmemeval import Protocol, longmemeval

__all__ = ["DATASETS", "DatasetOptions", "open_dataset"]


@dataclass(frozen=True, slots=True)
class DatasetOptions:
    """Options for reading a data set; an unsupported one is refused, not ignored."""

    path: Path | None = None
    level: Level = "turn"
    protocol: Protocol = "official"
    captions: bool = True
    pooled: bool = False
    split: str | None = None
    corpus: Path | None = None
    space: str | None = None
    limit: int = 0


def _builtin(_: DatasetOptions) -> Dataset:
    folder = Path(str(resources.files("bethink.eval") / "builtin"))
    opened = jsonl_dataset(
        folder / "questions.jsonl", corpus=folder / "memories.jsonl", name="builtin"
    )
    return replace(opened, title="the small set that comes with Bethink")


DATASETS: Registry[Callable[[DatasetOptions], Dataset]] = Registry(
    "data set",
    {
        "builtin": _builtin,
        "locomo": lambda r: locomo(r.path, level=r.level, captions=r.captions),
        "longmemeval": lambda r: longmemeval(r.path, level=r.level, protocol=r.protocol),
        "beir": lambda r: beir(r.path, split=r.split),
        "jsonl": lambda r: jsonl_dataset(r.path, corpus=r.corpus, space=r.space),
    },
)

_SUPPORTED_OPTIONS: dict[str, tuple[str, ...]] = {
    "builtin": (),
    "locomo": ("path", "level", "captions", "pooled"),
    "longmemeval": ("path", "level", "protocol", "pooled"),
    "beir": ("path", "split"),
    "jsonl": ("path", "corpus", "space"),
}


def open_dataset(name: str, options: DatasetOptions) -> Dataset:
    """Open a data set; its cases can be iterated repeatedly."""
    if name not in DATASETS:
        raise Refused(f"there is no data set {name!r}", remedy=f"there are: {', '.join(DATASETS)}")
    unset = DatasetOptions()
    for option in ("path", "level", "protocol", "captions", "pooled", "split", "corpus", "space"):
        if option not in _SUPPORTED_OPTIONS[name] and getattr(options, option) != getattr(
            unset, option
        ):
            raise Refused(f"data set {name} has no use for {option}")
    dataset = DATASETS[name](options)
    if options.limit:
        dataset = _limit_cases(dataset, options.limit)
    return pool_cases(dataset) if options.pooled else dataset


def _limit_cases(dataset: Dataset, limit: int) -> Dataset:
    def cases() -> Iterator[Case]:
        return islice(dataset.cases(), limit)

    return replace(dataset, cases=cases, title=f"{dataset.title}, first {limit}")
