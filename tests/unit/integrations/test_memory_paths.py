"""Paths of the memory tool: one form each, and none that leads out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.errors import Refused
from bethink.integrations.memory_files import normalize_path
from rows import each_row


@each_row(
    ("path", "form"),
    [
        ("/memories", "/memories"),
        ("/memories/", "/memories"),
        ("/memories//a///b/", "/memories/a/b"),
        ("/memories/./a/.", "/memories/a"),
        ("/memories/a..b", "/memories/a..b"),
        ("/memories/...", "/memories/..."),
        ("/memories/100%", "/memories/100%"),
        ("/memories/a%20b", "/memories/a%20b"),
        ("/memories/.hidden", "/memories/.hidden"),
        ("/memories/cafe\u0301", "/memories/caf\u00e9"),
        ("/memories/日本.md", "/memories/日本.md"),
    ],
)
def test_a_path_has_one_form(path: str, form: str) -> None:
    """Which is a path again, and its own form."""
    assert normalize_path(path) == form
    assert normalize_path(form) == form


@each_row(
    "path",
    [
        *(
            "",
            "/",
            "memories/a",
            "/memoriesX",
            "/memories.md",
            "/Memories/a",
            "/etc/passwd",
            " /memories",
        ),
        *("/memories/..", "/memories/../etc/passwd", "/memories/a/../../b", "/memories/a/../b"),
        *(
            "/memories/%2e%2e/x",
            "/memories/%2E%2e%2fx",
            "/memories/..%2fx",
            "/memories/%252e%252e/x",
        ),
        *("/memories/%25252e%25252e/x", "/memories/%" + "25" * 40 + "2e%2e", "/memories/.%2e/x"),
        *(
            "/memories/‥/x",
            "/memories/．．/x",
            "/memories/%EF%BC%8E%EF%BC%8E/x",
            "/memories/．．／x",
        ),
        *(
            "/memories/..\\x",
            "/memories\\..\\x",
            "/memories/a\\b",
            "/memories/.. /x",
            "/memories/ ../x",
        ),
        *(
            "/memories/a\x00",
            "/memories/a\nb",
            "/memories/%00/x",
            "/memories/\u202egpj",
            "/memories/a\u200b",
        ),
        *("/memories/\ud800", "/memories/" + "a" * 1000, "/memories/AKIAQ3EGLQ7XUVZ5T2MB"),
    ],
    ids=lambda path: ascii(path)[:40],
)
def test_what_leads_out_or_hides_something_is_refused(path: str) -> None:
    """Plain, encoded once or more often, in look-alikes, by other separators."""
    with pytest.raises(Refused):
        normalize_path(path)


@each_row("path", [None, 5, b"/memories", ["/memories"]])
def test_what_is_no_text_is_no_path(path: object) -> None:
    """Whatever a model sends."""
    with pytest.raises(Refused):
        normalize_path(path)


@given(path=st.text(alphabet="./%2eEfF５．‥\\ab\x00 ", max_size=25))
def test_every_accepted_path_stays_inside(path: str) -> None:
    """Its form begins with the root, has no empty or climbing part, and does not change."""
    try:
        form = normalize_path(f"/memories/{path}")
    except Refused:
        return
    parts = form.split("/")
    assert parts[:2] == ["", "memories"]
    assert not {"", ".", ".."} & set(parts[2:])
    assert normalize_path(form) == form
