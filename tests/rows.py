"""Many rows of one law in one test: `@each_row` instead of `pytest.mark.parametrize`.

A table of a few hundred rows is one test to collect, to send to a worker and to count. Each
row has fixtures of its own, as a test has, and every row that fails is reported by its name.
`parametrize` stays for what is slow row by row: its tests are shared out among the workers.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import pytest
from _pytest.tmpdir import tmppath_result_key

# How a value is named where the row has no id of its own.
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


class Row(NamedTuple):
    name: str
    values: dict[str, Any]


def each_row(
    names: str | Sequence[str],
    values: Iterable[Any],
    ids: Callable[[Any], str] | Sequence[str] | None = None,
) -> pytest.MarkDecorator:
    """Runs the test once for every row; the arguments are those of `parametrize`."""
    columns = tuple(map(str.strip, names.split(","))) if isinstance(names, str) else tuple(names)
    table = tuple(_rows(columns, tuple(values), ids))
    if not table:
        raise ValueError(f"no rows for {', '.join(columns)}: the test would prove nothing")
    return pytest.mark.each_row(table)


def _rows(
    columns: tuple[str, ...],
    values: tuple[Any, ...],
    ids: Callable[[Any], str] | Sequence[str] | None,
) -> Iterator[Row]:
    listed = None if ids is None or callable(ids) else list(ids)
    if listed is not None and len(listed) != len(values):
        raise ValueError(f"{len(listed)} ids for {len(values)} rows of {', '.join(columns)}")
    for number, value in enumerate(values):
        name = listed[number] if listed else None
        if isinstance(value, type(pytest.param())):
            if value.marks:
                raise ValueError("a row has no marks of its own: use pytest.mark.parametrize")
            name = name or value.id
            cells = value.values
        else:
            cells = (value,) if len(columns) == 1 else tuple(value)
        made = dict(zip(columns, cells, strict=True))
        yield Row(name or "-".join(_name(cell, ids) for cell in cells), made)


def _name(cell: object, ids: object) -> str:
    named = ids(cell) if callable(ids) else None
    return str(named) if named is not None else _SHORT.repr(cell)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "each_row(table): the rows of a test that is one item")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    tables = [mark.args[0] for mark in metafunc.definition.iter_markers("each_row")]
    if tables:
        first = {name: value for table in tables for name, value in table[0].values.items()}
        count = math.prod(map(len, tables))
        metafunc.parametrize(tuple(first), [tuple(first.values())], ids=[f"{count}-rows"])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs all rows, also after one that failed, and reports each failure as a subtest."""
    tables = [mark.args[0] for mark in pyfuncitem.iter_markers("each_row")]
    if not tables:
        return None
    bad: list[tuple[str, BaseException]] = []
    passed = 0
    for number, combined in enumerate(product(*tables)):
        try:
            _run(pyfuncitem, combined, again=number > 0)
            passed += 1
        except pytest.exit.Exception:
            raise
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:  # noqa: BLE001
            bad.append(("-".join(row.name for row in combined), error))
            if "from pytest-timeout" in str(error):
                break
    if bad and not passed and all(isinstance(error, pytest.skip.Exception) for _, error in bad):
        raise bad[0][1]
    for name, error in bad:
        with pyfuncitem._request.getfixturevalue("subtests").test(name):
            raise error
    return True


def _run(item: pytest.Function, combined: tuple[Row, ...], *, again: bool) -> None:
    """One row. Before all but the first the fixtures of the function are made anew."""
    if again:
        state = item.session._setupstate
        state.teardown_exact(item.parent)
        item.stash.setdefault(tmppath_result_key, {})  # tmp_path takes it away when it ends
        for row in combined:
            item.callspec.params.update(row.values)
        # What pytest itself does where an item runs a second time.
        item._initrequest()
        state.setup(item)
    item.obj(**{name: item.funcargs[name] for name in item._fixtureinfo.argnames})
