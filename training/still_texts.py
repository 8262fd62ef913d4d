"""Collect texts of which none updates another, from Debian packages: documents, entries, code.

    python training/still_texts.py OUT

One JSON object per line: ``source``, ``text``. The model of two memories learns from them
that paragraphs, definitions, dialogues and functions may be alike and all stay true.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from collect import catalogue_pairs, dictionary_pairs, fetch, html_pairs, jobs, package_files

DOCUMENTS = {
    "debian-reference-en": 700,
    "git-doc": 700,
    "python3.11-doc": 900,
    "debian-faq": 300,
}
DICTIONARIES = {"dict-foldoc": 900, "dict-gcide": 500}
CODE = {"libpython3.11-stdlib": 1500, "python3-django": 600}
# Dialogues of a game, in English and in translation.
STORIES, STORY_TEXTS, FOREIGN_TEXTS = "wesnoth-1.16-data", 1800, 900
MIN_CHARACTERS, MAX_CHARACTERS, BLOCK = 50, 800, 25


def functions(files: dict[str, bytes]) -> Iterator[str]:
    for name, content in files.items():
        if not name.endswith(".py"):
            continue
        code = content.decode("utf-8", "replace")
        try:
            tree = ast.parse(code)
        except (SyntaxError, ValueError, RecursionError):
            continue
        lines = code.splitlines()
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield textwrap.dedent("\n".join(lines[node.lineno - 1 : node.end_lineno]))


def collect(downloads: Path) -> Iterator[tuple[str, Iterable[str], int]]:
    """Source, texts, and how many of them are taken."""
    known = jobs(downloads)

    def files(package: str) -> dict[str, bytes]:
        return dict(package_files(fetch(known[package][2], downloads)))

    for package, most in DOCUMENTS.items():
        yield package, (pair.right for pair in html_pairs(files(package))), most
    for package, most in DICTIONARIES.items():
        entries = dictionary_pairs(files(package), "P")
        yield package, (f"{pair.left}: {pair.right}" for pair in entries), most
    for package, most in CODE.items():
        yield package, functions(files(package)), most
    told = list(catalogue_pairs(files(STORIES)))
    yield STORIES, (pair.right for pair in told), STORY_TEXTS
    yield f"{STORIES}, translated", (pair.left for pair in told), FOREIGN_TEXTS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--work", type=Path, default=Path(__file__).parent / "work")
    given = parser.parse_args()
    downloads = given.work / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    draw = random.Random(3)
    with given.out.open("w", encoding="utf-8") as file:
        for source, texts, most in collect(downloads):
            fit = (text for text in texts if MIN_CHARACTERS <= len(text) <= MAX_CHARACTERS)
            found = list(dict.fromkeys(fit))
            # In blocks: what stands together is most alike.
            starts = range(0, len(found), BLOCK)
            for start in draw.sample(starts, min(len(starts), most // BLOCK)):
                for text in found[start : start + BLOCK]:
                    row = {"source": source, "text": text}
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
            print(f"{source}: {most} of {len(found)}", flush=True)


if __name__ == "__main__":
    main()
