"""Questions to git about a repository that may come from strangers.

A repository's own configuration can name programs: hooks, monitors, filters, remote helpers.
So git is only asked about commits, trees and the index, never to compare the files on disk,
which would run filters; what else it might run or fetch is switched off. Files are read here.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from shutil import which
from threading import Timer
from time import monotonic
from typing import IO, cast

from bethink.code.files import FileContent, read_within_roots
from bethink.errors import BethinkError

MAX_FILE_BYTES = 1024 * 1024
_MAX_ANSWER_BYTES = 16 * 1024 * 1024
_SAFE = (
    "--no-pager", "--literal-pathspecs", "--no-replace-objects",
    *("-c", "core.fsmonitor=false"),
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "core.sshCommand=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "safe.bareRepository=explicit"),
)  # fmt: skip
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "LC_ALL": "C",
}


@cache
def _program() -> str | None:
    """The path of git; None where there is none outside of the working directory."""
    found = which("git")
    return found if found and os.path.isabs(found) else None  # noqa: PTH117 - a text


class Repository:
    """A folder under git, and until when its questions must be answered (`time.monotonic`).

    ``inner`` is where the folder that it was found from is in it.
    """

    def __init__(self, root: Path, inner: PurePosixPath, until: float) -> None:
        self.root, self.inner, self.until = root, inner, until

    def ask(self, *words: str, given: bytes = b"") -> bytes | None:
        """What git answers; None where it fails, takes too long or answers too much."""
        program, left = _program(), self.until - monotonic()
        if program is None or left <= 0 or Path(program).is_relative_to(self.root):
            return None
        kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        command = (program, *_SAFE, "-C", str(self.root), *words)
        try:
            process = subprocess.Popen(  # noqa: S603 - an absolute path, no shell
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, env=kept | _ENVIRONMENT,
            )  # fmt: skip
        except OSError:
            return None
        timer = Timer(left, process.kill)
        timer.start()
        try:
            with process:
                ask, told = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
                ask.write(given)  # less than a pipe holds
                ask.close()
                answer = told.read(_MAX_ANSWER_BYTES + 1)
                if len(answer) > _MAX_ANSWER_BYTES:
                    process.kill()
        except OSError:
            return None
        finally:
            timer.cancel()
        return answer if process.returncode == 0 else None

    @property
    def is_late(self) -> bool:
        """Whether the time for questions is over: what was not answered is not known."""
        return monotonic() >= self.until

    def read(self, path: str) -> FileContent | None:
        """A file of the working tree; None where it is none, too large, or a link out of it."""
        try:
            return read_within_roots(self.root / path, (self.root,), max_bytes=MAX_FILE_BYTES)
        except BethinkError:
            return None

    @cached_property
    def origin(self) -> tuple[str, str]:
        """The first commit and the one checked out; empty without commits or all of them.

        A shallow copy does not know its first commit.
        """
        head = _word(self.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}"))
        shallow = _word(self.ask("rev-parse", "--is-shallow-repository"))
        if not head or shallow != "false":
            return "", head
        return _word(self.ask("rev-list", "--first-parent", "--max-parents=0", "HEAD")), head

    def knows(self, commits: Sequence[str]) -> set[str]:
        """Those of some commits that the repository has."""
        asked = "".join(f"{commit}\n" for commit in commits).encode()
        answer = self.ask("cat-file", "--batch-check", given=asked) or b""
        kinds = [line.rpartition(b" ")[0].endswith(b" commit") for line in answer.splitlines()]
        return {commit for commit, known in zip(commits, kinds, strict=False) if known}

    def blobs(self, names: Iterable[str]) -> dict[str, bytes]:
        """The content of those of some blobs that the repository has."""
        asked = "".join(f"{name}\n" for name in sorted(names)).encode()
        rest = (self.ask("cat-file", "--batch", given=asked) if asked else None) or b""
        found = {}
        while rest:
            head, _, rest = rest.partition(b"\n")
            if len(parts := head.split()) == 3:  # else it is missing
                size = int(parts[2])
                found[parts[0].decode()], rest = rest[:size], rest[size + 1 :]
        return found

    def tracked(self, paths: Sequence[str]) -> list[str]:
        """Those of some paths that are in the index."""
        return _names(self.ask("ls-files", "-z", "--", *paths)) if paths else []

    def renames(self, commit: str) -> dict[str, str]:
        """Where files of a commit are in the index, by their paths then; only moved ones."""
        words = ("diff-index", "--cached", "-M", "-z", "--name-status", "--diff-filter=R")
        safe = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "-l400")
        fields = _names(self.ask(*words, *safe, commit, "--")) if commit else []
        return dict(zip(fields[1::3], fields[2::3], strict=False))

    def holders(self, blob: str) -> list[str]:
        """Paths in the index that have some content."""
        entries = _names(self.ask("ls-files", "-s", "-z")) if blob else []
        found = (entry.partition("\t") for entry in entries)
        return [path for head, _, path in found if head.split(" ")[1:2] == [blob]]

    def mentioning(self, words: Iterable[str]) -> dict[str, list[str]]:
        """The tracked files that contain each of some words."""
        asked = [part for word in sorted(words) for part in ("-e", word)]
        safe = ("grep", "--no-textconv", "--no-recurse-submodules", "--no-line-number")
        answer = self.ask(*safe, "-o", "-z", "-w", "-F", "-I", *asked, "--", ".") if asked else b""
        found: dict[str, list[str]] = {}
        for line in dict.fromkeys((answer or b"").splitlines()):
            path, _, word = line.partition(b"\0")
            found.setdefault(os.fsdecode(word), []).append(os.fsdecode(path))
        return found

    def stamp(self) -> int:
        """A number that changes whenever the index does; 0 where it cannot be told."""
        try:
            return os.stat(self._folder() / "index").st_mtime_ns  # noqa: PTH116
        except OSError:
            return 0

    def _folder(self) -> Path:
        """The folder of git itself, which the .git file of a further work tree only names."""
        folder = self.root / ".git"
        if not folder.is_file():
            return folder
        named = folder.read_text(errors="replace")[:4096].removeprefix("gitdir:").strip()
        return self.root / named


def find_repository(folder: Path | None, limit_s: float) -> Repository | None:
    """The repository that a folder is in, to be asked for some seconds; None without one."""
    if folder is None:
        return None
    top = Path(os.path.realpath(folder))
    for root in (top, *top.parents):
        if os.path.lexists(root / ".git"):
            inner = PurePosixPath(top.relative_to(root).as_posix())
            return Repository(root, inner, monotonic() + limit_s)
    return None


def _word(answer: bytes | None) -> str:
    return (answer or b"").partition(b"\n")[0].strip().decode(errors="replace")


def _names(answer: bytes | None) -> list[str]:
    """The names in an answer that ends each with a NUL."""
    return [os.fsdecode(name) for name in (answer or b"").split(b"\0") if name]
