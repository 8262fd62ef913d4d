"""Build the site of this version beside those of others: `python tools/site_versions.py FOLDER`.

The folder is what a web server serves. Each version has a folder of its own; `latest` leads
to the newest, and `versions.json` is what the list of versions on every page is made from.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from site_hooks import VERSIONED

from bethink.version import __version__

ROOT = Path(__file__).parent.parent
REDIRECT = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={to}/">'


def order(version: str) -> tuple[int, ...]:
    """Return a key that sorts versions by their numbers."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def publish(folder: Path) -> None:
    """Build this version into the folder, and list all that are there."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    env = os.environ | {VERSIONED: "1", "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(  # noqa: S603  # the command above
        [*command, "-d", folder / __version__], cwd=ROOT, env=env, check=True
    )
    built = [path.name for path in folder.iterdir() if (path / "sitemap.xml").exists()]
    versions = sorted(built, key=order, reverse=True)
    listed = [
        {"version": one, "title": one, "aliases": ["latest"] if one == versions[0] else []}
        for one in versions
    ]
    (folder / "versions.json").write_text(json.dumps(listed), encoding="utf-8")
    (folder / "latest").mkdir(exist_ok=True)
    (folder / "latest" / "index.html").write_text(REDIRECT.format(to=f"../{versions[0]}"))
    (folder / "index.html").write_text(REDIRECT.format(to=versions[0]))


if __name__ == "__main__":
    publish(Path(sys.argv[1]).absolute())
