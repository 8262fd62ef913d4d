"""The weight and shape of the source tree: a budget of lines, short functions, layers, no cycle."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "bethink"
FILES = sorted(SOURCE.rglob("*.py"))
# All lines of src/bethink. It only falls: a change that adds takes away elsewhere, or a
# decision says why the budget rises.
MAX_LINES = 96_512
MAX_LAYERS = 12
MAX_FUNCTION_LINES = 40
MAX_PIPELINE_LINES = 60  # the one function that shows a whole recall
MAX_SUMMARY_CHARACTERS = 90
PIPELINE = ("retrieval/engine.py", "run_pipeline")


def name_of(path: Path) -> str:
    """A path as the test's id shows it."""
    return path.relative_to(SOURCE).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    """The parsed source of a module; not at import, which every collection of tests pays for."""
    return ast.parse(path.read_text(encoding="utf-8"))


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the signature's end on, the docstring not counted."""
    first = node.body[0]
    is_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    rest = node.body[1:] if is_doc else node.body
    if not rest:
        return 0
    return (node.end_lineno or 0) - rest[0].lineno + 1


def test_the_source_keeps_within_its_budget() -> None:
    """The package has no more lines in all than its budget."""
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in FILES)

    assert lines <= MAX_LINES


def test_the_layers_are_few_and_name_every_package() -> None:
    """The layer contract has at most 12 layers, and no package is left out of it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["name"].startswith("Layers"))
    listed = {name.strip(" |:") for layer in layers for name in layer.split()} - {""}
    packages = {f"bethink.{path.parent.name}" for path in SOURCE.glob("*/__init__.py")}

    assert len(layers) <= MAX_LAYERS
    assert packages <= listed


def test_the_core_names_no_emulated_system() -> None:
    """The systems stand on extension points that anybody could use."""
    systems = [path.name for path in (SOURCE / "systems").iterdir() if path.is_dir()]
    # "remind me" is what people say.
    named = re.compile(rf"(?!remind me)({'|'.join(sorted(systems))})", re.IGNORECASE)
    for package in ("store", "config", "retrieval", "ingest"):
        for path in (SOURCE / package).rglob("*"):
            if path.suffix in {".py", ".toml", ".sql"}:
                found = named.search(path.read_text(encoding="utf-8"))
                assert found is None, f"{path.relative_to(SOURCE)} names {found and found[0]}"


def test_a_file_opens_with_a_summary() -> None:
    """The first line of a module's docstring says what it is for."""
    for path in FILES:
        doc = ast.get_docstring(tree_of(path))

        assert doc, f"{name_of(path)} does not say what it is for"
        assert len(doc.splitlines()[0]) <= MAX_SUMMARY_CHARACTERS, name_of(path)


def test_a_function_fits_a_screen() -> None:
    """Functions have at most 40 lines; the pipeline itself may be longer."""
    for path in FILES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                is_pipeline = (name_of(path), node.name) == PIPELINE
                limit = MAX_PIPELINE_LINES if is_pipeline else MAX_FUNCTION_LINES
                assert body_lines(node) <= limit, f"{path.name}:{node.lineno} {node.name}"


def module_of(path: Path) -> str:
    """The name by which a module is imported."""
    return ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in FILES}


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
    for node in imports_of(tree_of(MODULES[name])):
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
        if (taken := sorted(private_names(tree_of(MODULES[name]))))
    }

    assert sum(map(len, found.values())) <= 5, found
