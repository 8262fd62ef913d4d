"""The TypeScript client is that of this API: its types, its errors, its version."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from bethink import errors
from bethink.access import guard
from bethink.render.wire import error_kind
from bethink.server.rest import http_messages
from bethink.server.rest.routes import TOOL_ROUTES
from bethink.version import __version__

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "typescript"
sys.path.insert(0, str(ROOT / "tools"))


def test_the_types_are_those_of_the_api() -> None:
    """By the digest of the document that they were made from; `make ts-check` makes them anew."""
    from typescript import head

    made = (CLIENT / "src" / "schema.ts").read_text(encoding="utf-8")

    assert made.startswith(head()), "the API has changed: make ts"


def test_every_kind_of_error_has_a_class() -> None:
    """Those of the package, of the guard before the server and of the server itself."""
    known = (one for one in vars(errors).values() if isinstance(one, type))
    kinds = {
        error_kind(one.__new__(one))
        for one in (*known, http_messages.Malformed, http_messages.WrongMedia)
        if issubclass(one, errors.BethinkError) and one is not errors.BethinkError
    }
    kinds |= {one.kind for one in vars(guard).values() if isinstance(one, guard.Refusal)}
    kinds |= {guard.rate_limited(1).kind, guard.body_too_large(1).kind}
    source = Path(http_messages.__file__).read_text(encoding="utf-8")
    kinds |= set(re.findall(r'"(too_slow|bug|wrong_method)"', source))

    table = (CLIENT / "src" / "errors.ts").read_text(encoding="utf-8")

    assert {kind for kind in kinds if f"  {kind}: " not in table} == set()


def test_only_what_can_be_repeated_is_retried() -> None:
    """The routes that the client repeats without a key are tools that allow it."""
    source = (CLIENT / "src" / "transport.ts").read_text(encoding="utf-8")
    listed = re.findall(r'^  "POST (\S+)",$', source, re.MULTILINE)
    tools = {route.path: route.tool for route in TOOL_ROUTES if route.method == "POST"}

    assert listed
    assert all(tools[path].read_only or tools[path].idempotent for path in listed)


def test_the_package_is_ready_to_publish() -> None:
    """The version and the licence are ours, and the lock file names no host."""
    package = json.loads((CLIENT / "package.json").read_text(encoding="utf-8"))

    assert package["version"] == __version__
    assert "dependencies" not in package
    assert (CLIENT / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert "://" not in (CLIENT / "pnpm-lock.yaml").read_text(encoding="utf-8")
    code = "".join(path.read_text(encoding="utf-8") for path in (CLIENT / "src").glob("*.ts"))
    assert not re.search(r'from "node:|process\.|Buffer\.|require\(', code)
