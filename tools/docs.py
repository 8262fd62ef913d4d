"""Write the pages that come from the code (`make reference`), or print the tree (`make tree`)."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import option_examples
import python_reference
import tool_reference

from bethink.cli import reference

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "bethink"


def subject(path: Path) -> str:
    """Return a file's first docstring line, without its full stop."""
    doc = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return doc.split("\n")[0].rstrip(".").rstrip(":")


def tree(folder: Path, depth: int = 1) -> list[str]:
    """Return the package as an indented list: files with their first lines, then folders."""
    pad = "  " * depth
    lines = [
        f"{pad}{path.name:<{24 - 2 * depth}} {subject(path)}"
        for path in sorted(folder.glob("*.py"))
        if path.name != "__init__.py"
    ]
    for below in sorted(path for path in folder.iterdir() if path.is_dir()):
        if below.name != "__pycache__":
            init = below / "__init__.py"
            about = subject(init) if init.exists() else ""
            lines.append(f"{pad}{below.name + '/':<{24 - 2 * depth}} {about}".rstrip())
            lines += tree(below, depth + 1)
    return lines


def main() -> int:
    """Write the pages; with --check report stale ones, with --tree print the modules."""
    if "--tree" in sys.argv:
        sys.stdout.write("\n".join(["bethink/", *tree(SOURCE)]) + "\n")
        return 0
    wanted = {
        ROOT / "docs" / "cli.md": option_examples.with_examples(reference()),
        ROOT / "docs" / "python.md": python_reference.page(),
        ROOT / "docs" / "tools.md": tool_reference.page(),
    }
    stale = [
        page
        for page, text in wanted.items()
        if not page.exists() or page.read_text(encoding="utf-8") != text
    ]
    if "--check" in sys.argv:
        for page in stale:
            sys.stderr.write(f"{page.name} is out of date: run `make reference`\n")
        return 1 if stale else 0
    for page in stale:
        page.write_text(wanted[page], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
