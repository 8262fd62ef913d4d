"""Which tests are slow: `make quick` leaves them out, `make slow` writes `slow.txt`.

Laws over whole memories, processes, servers and frameworks are slow by where they are. Of
the rest a line of the list names a file or a test. What nobody has timed yet is run.

`long.txt` has the files that take longest. Several workers take these first, so that in the
end none of them has a long one left while the others have nothing to do.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePath

import pytest

from thorough import THOROUGH

HERE = Path(__file__).parent
LIST, LONG = HERE / "slow.txt", HERE / "long.txt"
ALWAYS = (
    "conformance", "e2e", "golden", "property", "unit/integrations", "unit/store/test_postgres_*.py",
)  # fmt: skip
SLOW_SETUP_S = 0.3  # what a whole file waits for
SLOW_S = 0.05  # of one test with all its rows; what is quicker takes half a minute together
MOSTLY = 0.7  # a file with so many slow tests is slow
LONG_S = 3.0  # of a whole file


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("slow tests")
    group.addoption("--quick", action="store_true", help="leave out the tests that are slow")
    group.addoption("--record-slow", action="store_true", help="write the list of slow tests")


def pytest_configure(config: pytest.Config) -> None:
    if config.option.quick:
        config.pluginmanager.register(_LeaveOut(LIST.read_text().split()))
    is_worker = hasattr(config, "workerinput")
    if is_worker and not config.option.quick and not THOROUGH:  # there the order is random
        config.pluginmanager.register(_LongFirst(LONG.read_text().split()))
    if config.option.record_slow and not is_worker:
        config.pluginmanager.register(_Record())


class _LeaveOut:
    def __init__(self, listed: list[str]) -> None:
        patterns = (*ALWAYS, *(name for name in listed if "::" not in name))
        self._paths = {path for pattern in patterns for path in HERE.glob(pattern)}
        self._tests = {name for name in listed if "::" in name}

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        return True if collection_path in self._paths else None

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        slow = [item for item in items if self._is_slow(item)]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if not self._is_slow(item)]

    def _is_slow(self, item: pytest.Item) -> bool:
        return _name(item.nodeid) in self._tests or "slow" in item.keywords


class _LongFirst:
    def __init__(self, listed: list[str]) -> None:
        self._places = {name: place for place, name in enumerate(listed)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        last = len(self._places)
        items.sort(key=lambda item: self._places.get(_file(_name(item.nodeid)), last))


class _Record:
    def __init__(self) -> None:
        self._took: Counter[str] = Counter()
        self._waited_for: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = _name(report.nodeid)
        self._took[name] += report.duration
        if report.when == "setup" and report.duration >= SLOW_SETUP_S:
            self._waited_for.add(_file(name))

    def pytest_sessionfinish(self) -> None:
        slow = slow_ones(self._took, self._waited_for)
        for place, lines in ((LIST, slow), (LONG, long_files(self._took))):
            place.write_text("".join(f"{line}\n" for line in lines))


def _name(nodeid: str) -> str:
    """A test as the list names it: without its rows, below the folder of the tests."""
    return nodeid.partition("[")[0].removeprefix(f"{HERE.name}/")


def slow_ones(took: Mapping[str, float], waited_for: Collection[str]) -> list[str]:
    """The files and tests that took long, of those that are not slow by where they are."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    for name in took:
        if not any(path.match(pattern) for path in _and_above(name) for pattern in ALWAYS):
            files[_file(name)].append(name)
    slow: list[str] = []
    for file, names in files.items():
        ones = [name for name in names if took[name] >= SLOW_S]
        whole = file in waited_for or len(ones) >= MOSTLY * len(names)
        slow += [file] if whole else ones
    return sorted(slow)


def long_files(took: Mapping[str, float]) -> list[str]:
    """The files that took long with all their tests, the longest first."""
    files: Counter[str] = Counter()
    for name, seconds in took.items():
        files[_file(name)] += seconds
    return [name for name, seconds in files.most_common() if seconds >= LONG_S]


def _file(name: str) -> str:
    return name.partition("::")[0]


def _and_above(name: str) -> Iterator[PurePath]:
    path = PurePath(_file(name))
    return iter((path, *path.parents))
