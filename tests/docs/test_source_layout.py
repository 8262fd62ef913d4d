"""The shape of the source tree: few modules, full but readable files, checked layers."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "bethink"
FILES = sorted(SOURCE.rglob("*.py"))
FOLDERS = sorted({path.parent for path in FILES})
MAX_MODULES = 325
MAX_ROOT_MODULES = 6
MAX_FOLDER_MODULES = 20
MAX_LAYERS = 12
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 40
MAX_PIPELINE_LINES = 60  # the one function that shows a whole recall
MAX_SUMMARY_CHARACTERS = 90
PIPELINE = ("retrieval/engine.py", "run_pipeline")


def name_of(path: Path) -> str:
    """A path as the test's id shows it."""
    return path.relative_to(SOURCE).as_posix()


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the signature's end on, the docstring not counted."""
    first = node.body[0]
    is_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    rest = node.body[1:] if is_doc else node.body
    if not rest:
        return 0
    return (node.end_lineno or 0) - rest[0].lineno + 1


def test_the_package_has_few_modules() -> None:
    """At most 325 modules in all, and at most 6 in the package's root."""
    assert len(FILES) <= MAX_MODULES
    assert len(list(SOURCE.glob("*.py"))) <= MAX_ROOT_MODULES


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_no_folder_is_a_heap(folder: Path) -> None:
    """A folder holds at most 20 modules."""
    assert len(list(folder.glob("*.py"))) <= MAX_FOLDER_MODULES


def test_the_layers_are_few_and_name_every_package() -> None:
    """The layer contract has at most 12 layers, and no package is left out of it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(one["layers"] for one in contracts if one["name"].startswith("Layers"))
    listed = {name.strip(" |:") for layer in layers for name in layer.split()} - {""}
    packages = {f"bethink.{path.parent.name}" for path in SOURCE.glob("*/__init__.py")}

    assert len(layers) <= MAX_LAYERS
    assert packages <= listed


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_opens_with_a_summary_and_stays_readable(path: Path) -> None:
    """The first line of a module's docstring says what it is for; 600 lines are the limit."""
    text = path.read_text(encoding="utf-8")
    doc = ast.get_docstring(ast.parse(text))

    assert len(text.splitlines()) <= MAX_FILE_LINES
    assert doc, "a module says in one line what it is for"
    assert len(doc.splitlines()[0]) <= MAX_SUMMARY_CHARACTERS


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_function_fits_a_screen(path: Path) -> None:
    """Functions have at most 40 lines; the pipeline itself may be longer."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_pipeline = (name_of(path), node.name) == PIPELINE
            limit = MAX_PIPELINE_LINES if is_pipeline else MAX_FUNCTION_LINES
            assert body_lines(node) <= limit, f"{path.name}:{node.lineno} {node.name}"
