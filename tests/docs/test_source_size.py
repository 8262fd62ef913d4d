"""Files stay under 400 lines and functions under 40. The numbers only go down."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "bethink"
FILES = sorted(SOURCE.rglob("*.py"))
LONGEST_FILE = 400
LONGEST_FUNCTION = 40


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines from the signature's end on, the docstring not counted."""
    first = node.body[0]
    is_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    rest = node.body[1:] if is_doc else node.body
    if not rest:
        return 0
    return (node.end_lineno or 0) - rest[0].lineno + 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_has_one_subject(path: Path) -> None:
    """It opens with a line that says what it is, and is short enough to hold in the head."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)

    assert len(text.splitlines()) <= LONGEST_FILE
    assert ast.get_docstring(tree) or not tree.body, "a file says in one line what it is about"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_function_fits_a_screen(path: Path) -> None:
    """The walk itself may be longer: it is the one place that tells the whole story."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            longest = 60 if (path.name, node.name) == ("engine.py", "walk") else LONGEST_FUNCTION
            assert body_lines(node) <= longest, f"{path.name}:{node.lineno} {node.name}"
