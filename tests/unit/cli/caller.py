"""Calls commands inside the test's own process, with memories of their own."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bethink.cli import main


class Said(NamedTuple):
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> Any:
        """Its JSON document."""
        return json.loads(self.out)


class Caller:
    """The command line in an empty folder; no vectors unless asked for."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        width: int = 10_000,
    ) -> None:
        # Not wrapped, unless a test is about that: the paths of tests differ in length.
        monkeypatch.setattr("bethink.cli.output._PIPED_WIDTH", width)
        self.folder = folder
        self._capsys = capsys
        self._monkeypatch = monkeypatch
        monkeypatch.chdir(folder)
        monkeypatch.setenv("HOME", str(folder / "home"))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "home" / "config"))
        monkeypatch.setenv("BETHINK_DATA_DIR", str(folder / "data"))
        monkeypatch.setenv("BETHINK_EMBEDDER", "none")
        # In the test's own process, whichever models are named.
        monkeypatch.setenv("BETHINK_WORKER", "off")

    def set(self, name: str, value: str) -> None:
        """Sets a variable of the environment."""
        self._monkeypatch.setenv(name, value)

    def __call__(self, *words: str, stdin: bytes = b"") -> Said:
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(words)
        said = self._capsys.readouterr()
        assert "bug in Bethink" not in said.out + said.err, said
        return Said(code, said.out, said.err)

    def remember(self, text: str, *words: str) -> str:
        """Stores one memory and gives its id."""
        return self("remember", text, *words, "--json").told["id"]
