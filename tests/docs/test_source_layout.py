"""The weight and shape of the source tree: a budget of lines, short functions, checked layers."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "bethink"
FILES = sorted(SOURCE.rglob("*.py"))
# All lines of src/bethink. It only falls: a change that adds takes away elsewhere, or a
# decision says why the budget rises.
MAX_LINES = 92_519
MAX_LAYERS = 12
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
        doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))

        assert doc, f"{name_of(path)} does not say what it is for"
        assert len(doc.splitlines()[0]) <= MAX_SUMMARY_CHARACTERS, name_of(path)


def test_a_function_fits_a_screen() -> None:
    """Functions have at most 40 lines; the pipeline itself may be longer."""
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                is_pipeline = (name_of(path), node.name) == PIPELINE
                limit = MAX_PIPELINE_LINES if is_pipeline else MAX_FUNCTION_LINES
                assert body_lines(node) <= limit, f"{path.name}:{node.lineno} {node.name}"
