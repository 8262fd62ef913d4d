"""The import graph of the source: no cycle, and no store that reaches into another."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"


def name_of(path: Path) -> str:
    """The name by which a module is imported."""
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in sorted((SOURCE / "bethink").rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}


def imports_of(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports of a module, inside functions too; those for a type checker are none."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        yield from imports_of(node)


def imported(name: str) -> set[str]:
    """The modules of the package that a module imports."""
    named = set()
    for node in imports_of(TREES[name]):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
            continue
        assert node.level == 0, f"{name} imports by a relative name"
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            named.add(whole if whole in MODULES else node.module or "")
    return (named & MODULES.keys()) - {name}


def test_no_module_imports_itself_by_others() -> None:
    """Wherever the imports stand: what is below does not know what is above it."""
    order = TopologicalSorter({name: imported(name) for name in MODULES})

    try:
        order.prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_the_cycle_of_two_would_be_found() -> None:
    """Also one that is only closed inside a function."""
    inner = ast.parse("def f():\n    from bethink.store import url\n")

    assert [node.lineno for node in imports_of(inner)] == [2]


def test_what_stores_share_knows_neither() -> None:
    """The logic over a connection does not know which connection it is."""
    of_one = ("bethink.store.sqlite", "bethink.store.postgres")

    for name in MODULES:
        if name.startswith("bethink.store.sql."):
            assert [one for one in imported(name) if one.startswith(of_one)] == [], name


def private_names(tree: ast.AST) -> Iterator[str]:
    """What a module takes of others that is not meant for it: by import, and as an attribute."""
    own = {"self", "cls", "super()"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            owner = ast.unparse(node.value)
            if owner not in own and not owner[:1].isupper():
                yield f"{owner}.{node.attr}"


def is_private(name: str) -> bool:
    """Whether a name is for its own module or class only; tuples have public ones like it."""
    return (
        name.startswith("_") and not name.startswith("__") and name not in {"_replace", "_asdict"}
    )


def test_postgres_takes_nothing_private() -> None:
    """The store on a server uses the shared modules as anybody could."""
    found = {
        name: taken
        for name in MODULES
        if name.startswith("bethink.store.postgres")
        if (taken := sorted(private_names(TREES[name])))
    }

    assert sum(map(len, found.values())) <= 5, found
