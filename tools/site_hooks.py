"""MkDocs hooks: pages and lists from outside docs/, links that work on site and in checkout."""

from __future__ import annotations

import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import error_messages  # noqa: E402  # a neighbour, which MkDocs does not look for

# Set by tools/site_versions.py: there are other versions to choose from.
VERSIONED = "BETHINK_SITE_VERSIONS"
# Found after everything else in a search.
BACKGROUND = ("decisions/", "results.md", "changelog.md", "features.md")
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
    """Replace each folder in the navigation by its pages; offer versions where they are built."""
    docs = Path(config["docs_dir"])
    config["nav"] = [_with_pages(docs, entry) for entry in config["nav"]]
    if os.environ.get(VERSIONED):
        config["extra"]["version"] = {"provider": "mike"}
    return config


def _with_pages(docs: Path, entry: Any) -> Any:
    if isinstance(entry, str):
        return entry
    ((title, page),) = entry.items()
    if isinstance(page, list):
        return {title: [_with_pages(docs, one) for one in page]}
    return {title: _pages(docs, page) if page.endswith("/") else page}


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
    if here.startswith(BACKGROUND):
        page.meta["search"] = {"boost": 0.3}
    if here == "errors.md":
        page.meta["search"] = {"boost": 4}  # a message that is pasted into the search
        markdown += error_messages.page()
    origin = _ORIGINS.get(here, f"docs/{here}")

    def replace(match: re.Match[str]) -> str:
        target = link_target(origin, here, match[1], config["extra"]["repository"])
        return f"]({target}{match[2] or ''})"

    parts = _FENCED.split(markdown)
    return "".join(
        part if number % 2 else _LINK.sub(replace, part) for number, part in enumerate(parts)
    )


def on_post_page(output: str, **_: Any) -> str:
    """Name the search dialog of the theme for screen readers."""
    return output.replace('role="dialog">', 'role="dialog" aria-label="Search">')


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
