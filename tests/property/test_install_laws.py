"""Whatever a host's settings look like: there and back again is nothing."""

from __future__ import annotations

import json
import re
import tomllib
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.hooks.install.config_text import look_up, parse_json, remove_key, set_key
from bethink.hooks.install.hosts import ConfigEntry, Installation
from bethink.hooks.install.plan import (
    Manifest,
    apply_plan,
    make_patch,
    plan_install,
    plan_uninstall,
)

KEYS = ("mcpServers", "bethink")
VALUE = {"command": "/bin/bethink", "args": ["mcp"], "env": {"A": "${b}"}}

names = st.text(max_size=6).filter(lambda name: name != "bethink")
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
objects = st.dictionaries(names.filter(lambda name: name != "mcpServers"), values, max_size=4)
servers = st.dictionaries(names, values, max_size=3)
indents = st.sampled_from([None, 0, 1, 2, 3, 4, 8, "\t", " \t"])
spaced = st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : "), (",  ", ":")])
remarks = st.lists(
    st.sampled_from(["", "", " // to the end\n", "/* { , */", ' /* "\n */ ', "//\n"]), max_size=6
)
PARTS = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/|[{\[,\]}]', re.DOTALL)


def commented(text: str, remarks: list[str]) -> str:
    """The text with remarks before and after its brackets and commas, and trailing commas."""
    texts = cycle(remarks or [""])

    def with_remarks(found: re.Match[str]) -> str:
        if found[0].startswith('"'):
            return found[0]
        return f"{next(texts)}{found[0]}{next(texts)}"

    return PARTS.sub(with_remarks, text)


def comments(text: str) -> list[str]:
    return [part for part in PARTS.findall(text) if part.startswith(("//", "/*"))]


@st.composite
def settings_files(draw: st.DrawFn) -> bytes:
    """A JSON object, laid out in one of many ways."""
    held: dict[str, Any] = draw(objects)
    if draw(st.booleans()):
        held = {**held, "mcpServers": draw(servers), **draw(objects)}
    text = json.dumps(
        held,
        indent=draw(indents),
        separators=draw(spaced),
        ensure_ascii=draw(st.booleans()),
    )
    text = commented(text, draw(remarks))
    blank = draw(st.sampled_from(["", "\n", "\r\n", "  ", "\n\n"]))
    text = draw(st.sampled_from(["", "\n"])) + text + blank
    if draw(st.booleans()):
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return (draw(st.sampled_from(["", "\ufeff"])) + text).encode("utf-8", "surrogatepass")


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


files = settings_files().filter(_is_utf8)


def wanted(path: Path, value: Any = None) -> Installation:
    entry = ConfigEntry(path, KEYS, value or VALUE, comments=True)
    return Installation("cursor", path, path.parent, entries=(entry,))


def installed(want: Installation, known: Manifest) -> Manifest:
    plan = plan_install(want, known)
    assert not plan.kept
    apply_plan(plan)
    return plan.manifest


def removed(path: Path, known: Manifest) -> Manifest:
    plan = plan_uninstall(known, path.parent)
    apply_plan(plan)
    return plan.manifest


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("host")


@given(content=files)
def test_there_and_back_is_nothing(folder: Path, content: bytes) -> None:
    """After install and uninstall, and after an upgrade in between, every byte is as it was."""
    path = folder / "mcp.json"
    path.write_bytes(content)

    known = installed(wanted(path), Manifest())
    assert look_up(parse_json(path.read_bytes().decode()), KEYS) == VALUE
    assert not plan_install(wanted(path), known).changes
    known = installed(wanted(path, {"command": "other"}), known)
    left = removed(path, known)

    assert path.read_bytes() == content
    assert left == Manifest((), (), known.version)


@given(content=files, extra=objects)
def test_the_users_changes_survive(folder: Path, content: bytes, extra: dict[str, Any]) -> None:
    """What the user adds after the install is there after the uninstall; we are not."""
    path = folder / "mcp.json"
    path.write_bytes(content)
    known = installed(wanted(path), Manifest())
    mine = {**parse_json(path.read_bytes().decode()), **extra}
    path.write_text(json.dumps(mine), encoding="utf-8")

    removed(path, known)

    found = parse_json(path.read_bytes().decode())
    before = parse_json(content.decode())
    assert found == {**before, **extra}


@given(content=files)
def test_adding_and_taking_out_means_the_same(content: bytes) -> None:
    """As text, too: what is set is there, what is taken out is gone, all else is equal."""
    text = content.decode()
    before = parse_json(text)

    new = set_key(text, KEYS, VALUE)
    left = remove_key(new, KEYS)

    assert parse_json(left) == {**before, "mcpServers": before.get("mcpServers", {})}
    assert comments(text) == comments(new) == comments(left)


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_a_patch_can_be_undone(before: bytes, after: bytes) -> None:
    """From what came after and the patch, what was before can be made, to the byte."""
    patch = make_patch(before, after)

    assert patch.undone(after) == before
    assert len(patch.removed) <= len(before)


tables = st.dictionaries(
    st.from_regex(r"[a-z_]{1,8}", fullmatch=True).filter(lambda name: name != "mcp_servers"),
    st.integers(0, 9) | st.booleans() | st.text("abc \"'[]#", max_size=8),
    max_size=4,
)


@given(
    top=tables, other=tables, crlf=st.booleans(), ends=st.sampled_from(["", "\n", "\n\n", "  # x"])
)
def test_toml_there_and_back(
    folder: Path, top: dict[str, Any], other: dict[str, Any], *, crlf: bool, ends: str
) -> None:
    """The same holds for the TOML of Codex."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in top.items()]
    lines += ["[mcp_servers.other]", *(f"{key} = {json.dumps(val)}" for key, val in other.items())]
    text = "\n".join(lines) + ends
    content = (text.replace("\n", "\r\n") if crlf else text).encode()
    path = folder / "config.toml"
    path.write_bytes(content)
    value = {"command": "/bin/bethink", "args": ["mcp"]}
    want = Installation(
        "codex", path, folder, entries=(ConfigEntry(path, ("mcp_servers", "bethink"), value),)
    )

    known = installed(want, Manifest())
    assert tomllib.loads(path.read_text())["mcp_servers"]["bethink"] == value
    removed(path, known)

    assert path.read_bytes() == content
