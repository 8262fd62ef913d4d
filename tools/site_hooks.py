"""MkDocs hooks: pages from outside docs/, and links that work on the site and in the checkout."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
# Files of the repository that are pages of the site, too.
COPIED = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "bench/RESULTS.md": "results.md",
}
_ORIGINS = {page: source for source, page in COPIED.items()}
_FENCED = re.compile(r"(^```.*?^```[ ]*$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?![a-z]+:|#|/)([^)\s#]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """Replace each folder in the navigation by its pages, in order of their names."""
    entries = [
        {title: _pages(Path(config["docs_dir"]), page) if str(page).endswith("/") else page}
        for entry in config["nav"]
        for title, page in entry.items()
    ]
    config["nav"] = [entry for entry in entries if next(iter(entry.values()))]
    return config


def _pages(docs: Path, folder: str) -> list[str]:
    pages = sorted(path.name for path in (docs / folder).glob("*.md"))
    pages.sort(key=lambda name: name not in ("README.md", "index.md"))
    return [f"{folder}{name}" for name in pages]


def on_files(files: Files, config: Any) -> Files:
    """Add the files of the repository that are pages of the site."""
    for source, page in COPIED.items():
        content = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Point relative links at pages of the site, and else at the repository."""
    here = page.file.src_uri
    origin = _ORIGINS.get(here, f"docs/{here}")

    def replace(match: re.Match[str]) -> str:
        target = link_target(origin, here, match[1], config["extra"]["repository"])
        return f"]({target}{match[2] or ''})"

    parts = _FENCED.split(markdown)
    return "".join(
        part if number % 2 else _LINK.sub(replace, part) for number, part in enumerate(parts)
    )


def link_target(origin: str, here: str, link: str, repository: str) -> str:
    """Return where a link of the file ``origin``, shown as the page ``here``, leads."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), link))
    page = COPIED.get(path)
    if page is None and path.startswith("docs/"):
        page = path.removeprefix("docs/")
        if (ROOT / path).is_dir():
            page += "/README.md"
    if page is not None:
        return posixpath.relpath(page, posixpath.dirname(here) or ".")
    if not (ROOT / path).exists():
        return link  # MkDocs reports it
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{repository}/{kind}/main/{path}"
