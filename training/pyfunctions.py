"""Python functions with what they are for: the first line of their docstring, or their name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

MAX_CHARACTERS = 900
_QUERIES = ("python {}", "how to {} in python", "python how to {}", "{}", "how do I {}?")


def documented(sources: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """A question-like text and the source of the function it describes."""
    count = 0
    for code in sources:
        text = code.decode("utf-8", "replace")
        lines = text.splitlines()
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("__"):
                continue
            source = "\n".join(lines[node.lineno - 1 : node.end_lineno])[:MAX_CHARACTERS]
            if len(source) < 60:
                continue
            purpose = (ast.get_docstring(node) or "").partition("\n")[0].strip()
            if len(purpose) < 12:
                purpose = re.sub(r"(?<=[a-z])(?=[A-Z])|_+", " ", node.name).strip().lower()
                if " " not in purpose or purpose.startswith("test"):
                    continue
            elif count % 2:
                purpose = purpose[:1].lower() + purpose[1:].rstrip(".")
            count += 1
            flat = " ".join(source.split())
            yield _QUERIES[count % len(_QUERIES)].format(purpose), flat
