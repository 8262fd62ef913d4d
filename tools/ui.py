"""Build the inspector's page: TypeScript types from the OpenAPI document, then the files.

``python tools/ui.py`` builds ``ui/`` into ``src/bethink/server/ui``, and the view of a recall into
``src/bethink/server/mcp/view``. With ``--check`` it builds elsewhere and fails where the types or
the files in the repository are others.
"""

from __future__ import annotations

import filecmp
import json
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any, cast

from bethink.server.rest.routes import openapi_document

ROOT = Path(__file__).parents[1]
SOURCE, BUILT = ROOT / "ui", ROOT / "src" / "bethink" / "server" / "ui"
VIEW, VIEW_FILES = ROOT / "src" / "bethink" / "server" / "mcp" / "view", ("view.js", "view.css")
TYPES = SOURCE / "src" / "lib" / "types.ts"
_PNPM = json.loads((SOURCE / "package.json").read_text(encoding="utf-8"))["packageManager"]
_NODE = (20, 19)
_HEAD = "// Written by tools/ui.py from the OpenAPI document; do not edit.\n\n"
_SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean",
           "null": "null"}  # fmt: skip


def ts_type(schema: dict[str, Any], depth: int = 0) -> str:
    """Return the TypeScript type of values that a JSON Schema admits."""
    if "$ref" in schema:
        return ts_type(_resolve(schema["$ref"]), depth)
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    kinds = schema.get("type", "object")
    if isinstance(kinds, list):
        return " | ".join(ts_type({**schema, "type": kind}, depth) for kind in kinds)
    if kinds in _SIMPLE:
        return _SIMPLE[kinds]
    if kinds == "array":
        item = ts_type(schema.get("items", {}), depth)
        return f"({item})[]" if "|" in item else f"{item}[]"
    return _object_type(schema, depth)


@cache
def _document() -> dict[str, Any]:
    return openapi_document()


def _resolve(reference: str) -> dict[str, Any]:
    found: Any = _document()
    for name in reference.removeprefix("#/").split("/"):
        found = found[name]
    return cast("dict[str, Any]", found)


def _object_type(schema: dict[str, Any], depth: int) -> str:
    extra = schema.get("additionalProperties")
    if "properties" not in schema:
        value = ts_type(extra, depth) if isinstance(extra, dict) else "unknown"
        return f"Record<string, {value}>"
    needed, pad = schema.get("required", ()), "  " * (depth + 1)
    lines = [
        f"{pad}{json.dumps(name) if not name.isidentifier() else name}"
        f"{'' if name in needed else '?'}: {ts_type(prop, depth + 1)};"
        for name, prop in schema["properties"].items()
    ]
    return "\n".join(["{", *lines, "  " * depth + "}"]) if lines else "Record<string, never>"


def page() -> str:
    """Return the whole file: for every operation its path, its arguments and its answer."""
    parts = []
    for path, methods in _document()["paths"].items():
        for method, operation in methods.items():
            answer = operation["responses"]["200"]["content"].get("application/json", {})
            if "schema" not in answer:
                continue
            parts.append(
                f"  {json.dumps(f'{method.upper()} {path}')}: {{\n"
                f"    arguments: {_arguments(operation)};\n"
                f"    answer: {ts_type(answer['schema'], 2)};\n  }};"
            )
    return _HEAD + "export interface Operations {\n" + "\n".join(parts) + "\n}\n"


def _arguments(operation: dict[str, Any]) -> str:
    properties = {entry["name"]: entry["schema"] for entry in operation.get("parameters", ())}
    needed = [entry["name"] for entry in operation.get("parameters", ()) if entry["required"]]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body is not None:
        properties |= body["schema"].get("properties", {})
        needed += body["schema"].get("required", [])
    if not properties:
        return "Record<string, never>"
    return ts_type({"type": "object", "properties": properties, "required": needed}, 2)


def build(target: Path, view: Path) -> None:
    """Build the page and the view into folders, with exactly the packages of the lock file."""
    npx = shutil.which("npx")
    if npx is None or _node_version() < _NODE:
        sys.exit(f"building the inspector needs Node {_NODE[0]}.{_NODE[1]} or newer, with npm")
    pnpm = [npx, "--yes", _PNPM]
    page = ["--outDir", str(target), "--emptyOutDir", "--logLevel", "warn"]
    recall = ["--config", "vite.recall.config.ts", "--outDir", str(view), "--logLevel", "warn"]
    for command in (
        [*pnpm, "install", "--frozen-lockfile", "--silent"],
        [*pnpm, "exec", "tsc", "--noEmit"],
        [*pnpm, "exec", "vite", "build", *page],
        [*pnpm, "exec", "vite", "build", *recall],
    ):
        subprocess.run(command, cwd=SOURCE, check=True)  # noqa: S603 - our own commands


def _node_version() -> tuple[int, ...]:
    node = shutil.which("node")
    if node is None:
        return (0,)
    ran = subprocess.run([node, "--version"], capture_output=True, text=True, check=True)  # noqa: S603
    return tuple(int(part) for part in ran.stdout.strip().removeprefix("v").split(".")[:2])


def differences(one: Path, other: Path) -> list[str]:
    """Return the files that are not the same in two folders."""
    names = {str(path.relative_to(folder)) for folder in (one, other)
             for path in folder.rglob("*") if path.is_file()}  # fmt: skip
    _, differing, missing = filecmp.cmpfiles(one, other, sorted(names), shallow=False)
    return [*differing, *missing]


def main() -> int:
    """Build, or compare."""
    if "--check" not in sys.argv[1:]:
        TYPES.write_text(page(), encoding="utf-8")
        build(BUILT, VIEW)
        return 0
    if TYPES.read_text(encoding="utf-8") != page():
        sys.stderr.write("the types of the API in ui/src/lib/types.ts are stale: make ui\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        page_files, view = Path(folder) / "page", Path(folder) / "view"
        build(page_files, view)
        found = differences(page_files, BUILT)
        found += filecmp.cmpfiles(view, VIEW, VIEW_FILES, shallow=False)[1]
    sys.stderr.writelines(f"{name} is not what ui/ builds: make ui\n" for name in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
