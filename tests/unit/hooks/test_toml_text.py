"""Changing one table of a TOML text."""

from __future__ import annotations

import tomllib

import pytest

from bethink.errors import BadSetting
from bethink.hooks.install.config_text import remove_table, set_table
from rows import each_row

KEYS = ("mcp_servers", "bethink")
VALUE = {"command": "/bin/bethink", "args": ["mcp"]}


@each_row(
    "text",
    ["", 'model = "x"', 'model = "x" # note\n\n[a]\nb = 1\n', "[mcp_servers.other]\ncommand = 'y'\r\n",
     "# only a comment", "[mcp_servers]\n", 's = """\n[mcp_servers.bethink]\n"""\n'],
)  # fmt: skip
def test_a_table_is_added_at_the_end(text: str) -> None:
    """All that was there is there still, before the table."""
    new = set_table(text, KEYS, VALUE)

    assert new.startswith(text)
    assert tomllib.loads(new)["mcp_servers"]["bethink"] == VALUE
    assert ("\r\n" in text) == ("\r\n" in new)


@each_row("text", ["", 'model = "x"\n', "[a]\nb = 1\n", "[mcp_servers.x]\na = 1\n"])
def test_what_was_added_can_be_taken_out(text: str) -> None:
    """Without the table the text is as it was."""
    assert remove_table(set_table(text, KEYS, VALUE), KEYS) == text


@each_row(
    "later",
    ["\n# My own server.\n[mcp_servers.mine]\na = 1\n", "# The end.\n", "\n\n[b]\n\n# Of b.\nc = 1\n",
     "# One line\u2028of two.\r\n[b]\r\n"],
)  # fmt: skip
def test_what_was_written_below_it_stays(later: str) -> None:
    """Remarks and blank lines that follow the table are not the table's."""
    text = set_table('model = "x"\n', KEYS, VALUE)

    assert remove_table(text + later, KEYS) == f'model = "x"\n{later}'


def test_tables_below_it_and_other_spellings_go_too() -> None:
    """However its head is written, the table goes with its parts; what follows stays."""
    text = (
        '[ mcp_servers . "bethink" ]\ncommand = "x"\n[mcp_servers.bethink.env]\nA = "1"\n'
        "\n[mcp_servers.recalled]\na = 1\n"
    )

    assert remove_table(text, KEYS).strip() == "[mcp_servers.recalled]\na = 1"


@each_row(
    "text",
    ["a =", "[a", "mcp_servers = {x = {command = 'y'}}", "mcp_servers = 5",
     "[[mcp_servers]]\na = 1\n"],
)  # fmt: skip
def test_what_cannot_be_changed_safely_is_refused(text: str) -> None:
    """Broken files, and tables written so that one cannot be added, are left alone."""
    with pytest.raises(BadSetting):
        set_table(text, KEYS, VALUE)
