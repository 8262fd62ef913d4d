"""Make the TypeScript client: its types from the OpenAPI document, its files, its tests.

``python tools/typescript.py`` writes ``src/schema.ts`` and builds ``dist``. With ``--check`` it
fails where the types in the repository are others, builds the package as npm would publish it,
and tests what is in it against a real server: in Node, in the installed Chromium, and in each
further program that is named (``--with /path/to/deno``).
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from hashlib import sha256
from pathlib import Path

from bethink.server.rest.routes import openapi_document

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "clients" / "typescript"
TYPES = SOURCE / "src" / "schema.ts"
PACKED = ("LICENSE", "README.md", "package.json", "dist/", "examples/")
_PNPM = json.loads((SOURCE / "package.json").read_text(encoding="utf-8"))["packageManager"]
_BLOCK = re.compile(r"^```(js|ts)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# What the tests need besides the package itself: its peers.
_PEERS = ("ai", "@langchain", "zod")


def described_api() -> str:
    """Return the OpenAPI document that the types are made from, whatever the version."""
    document = openapi_document()
    document["info"]["version"] = "any"
    return json.dumps(document, indent=1)


def head() -> str:
    """Return the first lines of the types: the digest tells which document they are of."""
    digest = sha256(described_api().encode()).hexdigest()
    return (
        "// Written by tools/typescript.py from the OpenAPI document; do not edit.\n"
        f"// sha256 {digest}\n\n"
    )


def run(*command: str, cwd: Path = SOURCE) -> None:
    """Run a command of the package with its own tools; a failure ends this program."""
    subprocess.run(command, cwd=cwd, check=True)  # noqa: S603 - our own commands


def make_types(target: Path) -> None:
    """Write the types of the API as they are now."""
    with tempfile.TemporaryDirectory() as folder:
        document, made = Path(folder) / "openapi.json", Path(folder) / "schema.ts"
        document.write_text(described_api(), encoding="utf-8")
        options = ("--empty-objects-unknown", "--default-non-nullable=false")
        run(*_pnpm(), "exec", "openapi-typescript", str(document), *options, "-o", str(made))
        target.write_text(head() + made.read_text(encoding="utf-8"), encoding="utf-8")


def _pnpm() -> list[str]:
    npx = shutil.which("npx")
    if npx is None:
        sys.exit("the TypeScript client needs Node 20 or newer, with npm")
    return [npx, "--yes", _PNPM]


def install() -> None:
    """Install exactly the packages of the lock file."""
    run(*_pnpm(), "install", "--frozen-lockfile", "--silent")


def build() -> None:
    """Compile the package into ``dist``."""
    shutil.rmtree(SOURCE / "dist", ignore_errors=True)
    run(*_pnpm(), "exec", "tsc")


def pack(folder: Path) -> Path:
    """Build the archive that npm would publish into a folder, and check what is in it."""
    run(*_pnpm(), "pack", "--silent", "--pack-destination", str(folder))
    archive = next(folder.glob("bethink-*.tgz"))
    with tarfile.open(archive) as files:
        names = sorted(name.removeprefix("package/") for name in files.getnames())
    built = sorted(str(path.relative_to(SOURCE)) for path in (SOURCE / "dist").iterdir())
    strange = [name for name in names if not name.startswith(PACKED)]
    missing = [name for name in (*PACKED[:3], *built) if name not in names]
    if strange or missing:
        sys.exit(f"the package has {strange or 'nothing strange'} and lacks {missing or 'nothing'}")
    return archive


def unpack(archive: Path, folder: Path) -> Path:
    """Lay the packed files where npm would install them, with the peers and the tests."""
    modules = folder / "node_modules"
    modules.mkdir()
    with tarfile.open(archive) as files:
        files.extractall(modules, filter="data")
    (modules / "package").rename(modules / "bethink")
    for name in _PEERS:
        (modules / name).symlink_to(SOURCE / "node_modules" / name)
    shutil.copytree(SOURCE / "test", folder / "test")
    shutil.copy(SOURCE / "tsconfig.json", folder / "test" / "tsconfig.base.json")
    (folder / "package.json").write_text('{"type": "module", "private": true}', encoding="utf-8")
    return folder


def add_examples(place: Path) -> None:
    """Lay the examples of the pages beside the tests: JavaScript to run, TypeScript to compile."""
    for page in (SOURCE / "README.md", ROOT / "docs" / "typescript.md"):
        found = _BLOCK.findall(page.read_text(encoding="utf-8"))
        for number, (language, code) in enumerate(found):
            suffix = "test.js" if language == "js" else "ts"
            target = place / "test" / f"{page.stem.lower()}-{number}.{suffix}"
            target.write_text(_at_test_server(code) if language == "js" else code, encoding="utf-8")


def _at_test_server(code: str) -> str:
    code = code.replace("new Bethink()", "new Bethink({})")
    return code.replace("new Bethink({", "new Bethink({ url: process.env.BETHINK_URL, ")


def check(runtimes: list[str]) -> int:
    """Compare the types, then build, pack and test; return the exit status."""
    install()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_types(folder / "schema.ts")
        if (folder / "schema.ts").read_text(encoding="utf-8") != TYPES.read_text(encoding="utf-8"):
            sys.stderr.write("the types of the API in clients/typescript are stale: make ts\n")
            return 1
        build()
        place = unpack(pack(folder), folder)
        add_examples(place)
        run(*_pnpm(), "exec", "tsc", "--project", str(place / "test" / "tsconfig.json"))
        tests = sorted(str(path.relative_to(place)) for path in (place / "test").glob("*.test.js"))
        run(sys.executable, str(SOURCE / "test" / "serve.py"), *runtimes, "--", *tests, cwd=place)
    return 0


def main() -> int:
    """Make, or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--with", dest="runtimes", action="append", default=[])
    options = parser.parse_args()
    if options.check:
        return check(["node", *options.runtimes])
    install()
    make_types(TYPES)
    build()
    return 0


if __name__ == "__main__":
    sys.exit(main())
