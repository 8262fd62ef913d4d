"""Writes everything that names the version, and builds what a release consists of.

    tools/release.py write [VERSION]    version.py, manifests, plug-ins, the npm package
    tools/release.py check              is all of it as `write` would have it?
    tools/release.py cut YYYY-MM-DD     what is unreleased in the changelog is this version's
    tools/release.py notes              what the changelog says of this version
    tools/release.py build FOLDER       wheel and sdist, built twice and compared, and the bundle
    tools/release.py bundle FOLDER      the .mcpb bundle for Claude Desktop alone

`build` needs the package `build`; the time in the files is SOURCE_DATE_EPOCH, else that of the
last commit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from datetime import UTC, date, datetime
from importlib import reload
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))

from bethink import version  # noqa: E402
from bethink.hooks.install import hosts  # noqa: E402

NAME = "io.github.bethink/bethink"
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
SUMMARY = "Memory for AI agents: offline, explained, with sources."
AUTHOR = {"name": "Bethink contributors"}
REPOSITORY = "https://github.com/bethink/bethink"
BUNDLE = Path("packaging/mcpb")
MAIN = '''"""Start the MCP server of Bethink for a desktop application."""

import sys

from bethink.cli import main

if __name__ == "__main__":
    sys.exit(main(["mcp", *sys.argv[1:]]))
'''


def derived() -> dict[Path, str]:
    """Every file that is written from the version and the code, with its text."""
    number = version.__version__
    wanted = f"bethink=={number}"
    command = ("uvx", "--from", wanted, "bethink")
    request = hosts.InstallRequest(None, ROOT, {}, command)
    texts = {
        Path("server.json"): server_json(number),
        Path("gemini-extension.json"): hosts.gemini_manifest(request),
        Path(".claude-plugin/marketplace.json"): claude_marketplace(number),
        Path(".agents/plugins/marketplace.json"): codex_marketplace(),
        BUNDLE / "manifest.json": bundle_manifest(number),
    }
    plugin = hosts.shared_plugin_files(Path("plugins/bethink"), command)
    return (
        {path: json.dumps(value, indent=2) + "\n" for path, value in texts.items()}
        | {file.path: file.content.decode() for file in plugin}
        | {BUNDLE / "pyproject.toml": bundle_project(number, wanted)}
        | {BUNDLE / "server/main.py": MAIN}
        | numbered(number)
    )  # fmt: skip


def server_json(number: str) -> dict[str, Any]:
    """The entry of the MCP registry."""
    return {
        "$schema": SCHEMA,
        "name": NAME,
        "title": "Bethink",
        "description": SUMMARY,
        "version": number,
        "websiteUrl": "https://bethink.github.io/bethink/",
        "repository": {"url": REPOSITORY, "source": "github"},
        "packages": [
            {
                "registryType": "pypi",
                "identifier": "bethink",
                "version": number,
                "runtimeHint": "uvx",
                "packageArguments": [{"type": "positional", "value": "mcp"}],
                "transport": {"type": "stdio"},
            }
        ],
    }


def claude_marketplace(number: str) -> dict[str, Any]:
    """The marketplace of Claude Code with its one plug-in."""
    plugin = {
        "name": "bethink",
        "source": "./plugins/bethink",
        "description": "A memory of each project: recalled with prompts, captured from sessions",
        "version": number,
    }
    return {
        "name": "bethink",
        "description": "A memory for coding agents",
        "owner": AUTHOR,
        "plugins": [plugin],
    }


def codex_marketplace() -> dict[str, Any]:
    """The marketplace of Codex; the plug-in is the same folder."""
    plugin = {
        "name": "bethink",
        "source": {"source": "local", "path": "./plugins/bethink"},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": "Productivity",
    }
    return {"name": "bethink", "interface": {"displayName": "Bethink"}, "plugins": [plugin]}


def bundle_manifest(number: str) -> dict[str, Any]:
    """The manifest of the bundle; the application brings uv, which fetches the package."""
    arguments = ["run", "--directory", "${__dirname}", "server/main.py"]
    return {
        "manifest_version": "0.4",
        "name": "bethink",
        "display_name": "Bethink",
        "version": number,
        "description": SUMMARY,
        "author": AUTHOR,
        "repository": {"type": "git", "url": REPOSITORY},
        "license": "Apache-2.0",
        "server": {
            "type": "uv",
            "entry_point": "server/main.py",
            "mcp_config": {
                "command": "uv",
                "args": [*arguments, "--space", "${user_config.space}"],
            },
        },
        "user_config": {
            "space": {
                "type": "string",
                "title": "Space",
                "description": "The memory to use",
                "default": "desktop",
                "required": False,
            }
        },
    }


def bundle_project(number: str, wanted: str) -> str:
    """The project that uv installs for the bundle."""
    return (
        f'[project]\nname = "bethink-bundle"\nversion = "{number}"\n'
        f'requires-python = ">=3.11"\ndependencies = ["{wanted}"]\n'
    )


def numbered(number: str) -> dict[Path, str]:
    """Files of people in which only the version is ours, with this one."""
    patterns = {
        "clients/typescript/package.json": r'("version": ")[^"]+',
        "compose.yaml": r"(ghcr.io/bethink/bethink:)[\w.]+",
        "compose.postgres.yaml": r"(ghcr.io/bethink/bethink:)[\w.]+",
        "docs/typescript.md": r"(bethink-)[\d.]+\d(?=\.tgz)",
    }
    return {
        Path(name): re.sub(pattern, rf"\g<1>{number}", text)
        for name, pattern in patterns.items()
        if (text := _read(Path(name))) is not None
    }


def write(number: str | None) -> None:
    """Write the version, and every file that names it."""
    if number is not None:
        if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", number):
            raise SystemExit(f"{number} is not a version")
        path = ROOT / "src/bethink/version.py"
        text = re.sub(r'(__version__ = ")[^"]+', rf"\g<1>{number}", path.read_text())
        path.write_text(text)
        reload(version)
        reload(hosts)
    for path, text in derived().items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
        print(path)  # noqa: T201 - what was written


def stale() -> list[str]:
    """The files that are not as `write` would have them, or that it would not write."""
    files = derived()
    kept = [path for path, text in files.items() if _read(path) == text]
    found = {
        path.relative_to(ROOT) for folder in ("plugins", "packaging/mcpb")
        for path in (ROOT / folder).rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }  # fmt: skip
    return sorted(str(path) for path in (files.keys() | found) - set(kept))


def _read(path: Path) -> str | None:
    return (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).exists() else None


def check() -> None:
    """Exit with 1 where a file is stale, or the tag or the changelog names another version."""
    wrong = stale()
    number, tag = version.__version__, os.environ.get("GITHUB_REF_NAME", "")
    if tag.startswith("v"):
        wrong += [] if tag == f"v{number}" else [f"the tag {tag} is not the version {number}"]
        heading = rf"^## \[{re.escape(number)}\] - \d"
        changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
        wrong += (
            [] if re.search(heading, changelog, re.MULTILINE) else ["no heading in CHANGELOG.md"]
        )
    if wrong:
        raise SystemExit("\n".join([*wrong, "run tools/release.py write"]))


def cut(day: str) -> None:
    """Give what is unreleased the version and a date; leave an empty heading above."""
    date.fromisoformat(day)
    path = ROOT / "CHANGELOG.md"
    text = path.read_text(encoding="utf-8")
    heading = f"## [{version.__version__}] - "
    if heading in text:
        raise SystemExit(f"{version.__version__} is in the changelog already")
    path.write_text(
        text.replace("## [Unreleased]\n", f"## [Unreleased]\n\n{heading}{day}\n", 1),
        encoding="utf-8",
    )


def notes() -> None:
    """Print what the changelog says of this version."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    after = text.split(f"## [{version.__version__}]", 1)[1].split("\n", 1)[1]
    sys.stdout.write(after.split("\n## ", 1)[0].strip() + "\n")


def bundle(folder: Path) -> Path:
    """Write the bundle: the same bytes every time."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"bethink-{version.__version__}.mcpb"
    moment = datetime.fromtimestamp(_epoch(), UTC).timetuple()[:6]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in ("manifest.json", "pyproject.toml", "server/main.py"):
            entry = zipfile.ZipInfo(path, moment)
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, (ROOT / BUNDLE / path).read_bytes())
    return target


def build(folder: Path) -> None:
    """Build wheel and sdist twice, in two folders; refuse where a byte differs."""
    with tempfile.TemporaryDirectory() as other:
        built = [_build_once(folder), _build_once(Path(other))]
    if built[0] != built[1]:
        raise SystemExit(f"two builds differ: {built[0]} and {built[1]}")
    made = bundle(folder)
    sums = built[0] | {made.name: hashlib.sha256(made.read_bytes()).hexdigest()}
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
    (folder / "SHA256SUMS").write_text(lines)
    sys.stdout.write(lines)


def _build_once(folder: Path) -> dict[str, str]:
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    env = os.environ | {"SOURCE_DATE_EPOCH": str(_epoch())}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)  # noqa: S603 - ours
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.glob(f"bethink-{version.__version__}*"))
        if path.suffix in {".whl", ".gz"}
    }


def _epoch() -> int:
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return int(given)
    command = ["git", "log", "-1", "--format=%ct"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603
    return int(told.stdout)


def main() -> None:
    """Run one of the steps."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("step", choices=["write", "check", "cut", "notes", "build", "bundle"])
    parser.add_argument("value", nargs="?")
    given = parser.parse_args()
    if given.step in {"cut", "build", "bundle"} and given.value is None:
        parser.error(f"{given.step} needs a value")
    steps = {
        "write": lambda: write(given.value), "check": check, "cut": lambda: cut(given.value),
        "notes": notes, "build": lambda: build(Path(given.value)),
        "bundle": lambda: bundle(Path(given.value)),
    }  # fmt: skip
    steps[given.step]()


if __name__ == "__main__":
    main()
