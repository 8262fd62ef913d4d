"""Data sets by name, and those found at a path. A new one is a loader and an entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from importlib import resources
from itertools import islice
from pathlib import Path

from bethink.errors import Refused
from bethink.eval.case import Dataset, Level
from bethink.eval.datasets.conversations import Protocol, locomo, longmemeval
from bethink.eval.datasets.jsonl import beir, jsonl_dataset, notes_dataset, open_text, store_files


@dataclass(frozen=True, slots=True)
class DatasetOptions:
    """Options for reading a data set; an unsupported one is refused, not ignored."""

    path: Path | None = None
    level: Level = "turn"
    protocol: Protocol = "official"
    split: str | None = None
    corpus: Path | None = None
    space: str | None = None
    limit: int = 0


def _builtin_folder() -> Path:
    return Path(str(resources.files("bethink.eval") / "builtin"))


def _builtin() -> Dataset:
    folder = _builtin_folder()
    opened = jsonl_dataset(
        folder / "questions.jsonl", corpus=folder / "memories.jsonl", name="builtin"
    )
    return replace(opened, title="the small set that comes with Bethink")


def _notes(path: Path | None) -> Dataset:
    if path is None:
        opened = notes_dataset(_builtin_folder() / "notes", name="notes")
        return replace(opened, title="three stores of notes that come with Bethink")
    if not path.exists():
        raise Refused(f"there is no file or folder {path}")
    return notes_dataset(path)


# By name: what opens a data set, and the options that it has a use for.
DATASETS: dict[str, tuple[Callable[..., Dataset], tuple[str, ...]]] = {
    "builtin": (_builtin, ()),
    "notes": (_notes, ("path",)),
    "locomo": (locomo, ("path", "level")),
    "longmemeval": (longmemeval, ("path", "level", "protocol")),
    "beir": (beir, ("path", "split")),
    "jsonl": (jsonl_dataset, ("path", "corpus", "space")),
}
# Measured where nothing is named: they come with Bethink.
OWN_SETS = ("notes", "builtin")


def open_dataset(name: str, options: DatasetOptions) -> Dataset:
    """Open a data set; its cases can be iterated repeatedly."""
    if name not in DATASETS:
        raise Refused(f"there is no data set {name!r}", remedy=f"there are: {', '.join(DATASETS)}")
    opener, supported = DATASETS[name]
    for option in fields(options):
        is_used = option.name in (*supported, "limit")
        if not is_used and getattr(options, option.name) != option.default:
            raise Refused(f"data set {name} has no use for {option.name}")
    dataset = opener(**{option: getattr(options, option) for option in supported})
    if limit := options.limit:
        every, title = dataset.cases, f"{dataset.title}, first {limit}"
        dataset = replace(dataset, cases=lambda: islice(every(), limit), title=title)
    return dataset


def find_datasets(paths: Sequence[Path], options: DatasetOptions) -> list[Dataset]:
    """Open every data set in these files and folders; the format is detected from the content.

    LongMemEval is measured by turns and by sessions, unless a level was asked for.
    """
    found: dict[str, Dataset] = {}
    for path in paths:
        if not path.exists():
            raise Refused(
                f"there is no data set, file or folder {path}",
                remedy=f"data sets by name: {', '.join(DATASETS)}",
            )
        before = len(found)
        for name, place in _sets_at(path):
            for dataset in _opened(name, place, options):
                if dataset.label in found:
                    raise Refused(f"two data sets are called {dataset.label!r}: {place}")
                found[dataset.label] = dataset
        if len(found) == before:
            raise Refused(f"{path} contains no data set of a known format")
    return list(found.values())


def select_datasets(datasets: Sequence[Dataset], patterns: Sequence[str]) -> list[Dataset]:
    """The data sets whose name matches one of the patterns; all without patterns."""
    for pattern in patterns:
        if not any(fnmatchcase(dataset.label, pattern) for dataset in datasets):
            names = ", ".join(dataset.label for dataset in datasets)
            raise Refused(f"no data set is called {pattern!r}", remedy=f"there are: {names}")
    return [
        dataset
        for dataset in datasets
        if not patterns or any(fnmatchcase(dataset.label, pattern) for pattern in patterns)
    ]


def _opened(name: str, place: Path, options: DatasetOptions) -> Iterator[Dataset]:
    """Open one set; options that it has no use for are for others."""
    supported = {option: getattr(options, option) for option in DATASETS[name][1]}
    own = DatasetOptions(limit=options.limit, **{**supported, "path": place})
    yield open_dataset(name, own)
    if name == "longmemeval" and own.level == "turn":
        yield open_dataset(name, replace(own, level="session"))


def _sets_at(path: Path) -> Iterator[tuple[str, Path]]:
    """Yield the format and the place of every data set at a path."""
    if path.is_file():
        if (name := _format_of(path)) is not None:
            yield name, path
        return
    if (path / "qrels").is_dir():
        yield "beir", path
        return
    stores = store_files(path)
    if stores:
        yield "notes", path
    taken = {file for pair in stores.values() for file in pair}
    for entry in sorted(path.iterdir()):
        if entry not in taken and not entry.name.startswith("."):
            yield from _sets_at(entry)


_SNIFFED_CHARACTERS = 1 << 16
_KEYS_OF_FORMATS = {
    "longmemeval": ('"haystack_', '"question_type"'),
    "locomo": ('"qa"', '"evidence"', '"conversation"'),
}


def _format_of(file: Path) -> str | None:
    """The format of a single file by its ending and its first keys; None where unknown."""
    if not any(ending in file.suffixes for ending in (".json", ".jsonl")):
        return None
    if store_files(file):
        return "notes"
    with open_text(file) as stream:
        beginning = stream.read(_SNIFFED_CHARACTERS)
    for name, keys in _KEYS_OF_FORMATS.items():
        if any(key in beginning for key in keys):
            return name
    return None
