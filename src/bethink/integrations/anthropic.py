"""Claude's memory tool with its files stored as memories, with history and recall."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from bethink.errors import BethinkError
from bethink.integrations.hits import missing_extra_error, open_memory
from bethink.integrations.memory_files import MemoryFiles
from bethink.memory import Memory

__all__ = ["BethinkAsyncMemoryTool", "BethinkMemoryTool"]


try:
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
    from anthropic.types.beta import (
        BetaCacheControlEphemeralParam,
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )
    from anyio.to_thread import run_sync
except ModuleNotFoundError as error:
    raise missing_extra_error(
        error, "the Anthropic SDK", extra="anthropic", modules="anthropic anyio"
    ) from error

_COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")


class BethinkMemoryTool(BetaAbstractMemoryTool):
    """Claude's memory tool with its files in a space of Bethink.

    A file has up to 64 KiB. A changed file is the next revision of its memory, a deleted one is
    forgotten; ``bethink history`` and ``restore`` work on both. Secrets are redacted before a
    file is stored, and the answer informs the model.
    """

    def __init__(
        self,
        memory: Memory | str | None = None,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self.memory = open_memory(memory)
        self._files = MemoryFiles(self.memory)

    def call(self, input: object) -> str:  # noqa: A002 - the interface's name
        """Run a command; an unknown one is an error that the model can read."""
        name = input.get("command") if isinstance(input, dict) else None
        if name not in _COMMANDS:
            raise ToolError(f"There is no command {name!r:.40}. Use one of {_COMMANDS}.")
        return str(super().call(input))

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """Show a file with line numbers, or the contents of a folder."""
        lines = getattr(command, "view_range", None) or None
        return _run(lambda path: self._files.view(path, lines), command, "path")

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Create a file."""
        return _run(self._files.create, command, "path", "file_text")

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replace a text that occurs once."""
        return _run(self._files.str_replace, command, "path", "old_str", "new_str")

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Insert a text after a line."""
        line = getattr(command, "insert_line", None)
        return _run(
            lambda path, text: self._files.insert(path, line, text), command, "path", "insert_text"
        )

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Forget a file or a folder."""
        return _run(self._files.delete, command, "path")

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Move a file or a folder."""
        return _run(self._files.rename, command, "old_path", "new_path")

    def clear_all_memory(self) -> str:
        """Forget every file."""
        return _run(self._files.clear, None)


def _on_thread(name: str) -> Any:
    """Return a method that runs the one of that name of `BethinkMemoryTool` on a thread."""

    @wraps(getattr(BethinkMemoryTool, name))
    async def run(self: BethinkAsyncMemoryTool, *given: object) -> str:
        return await run_sync(getattr(self._tool, name), *given)

    return run


class BethinkAsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for the asynchronous client; it does not block the event loop."""

    def __init__(
        self,
        memory: Memory | str | None = None,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = BethinkMemoryTool(memory)
        self.memory = self._tool.memory

    view, create, str_replace = map(_on_thread, ("view", "create", "str_replace"))
    insert, delete, rename = map(_on_thread, ("insert", "delete", "rename"))
    call, clear_all_memory = map(_on_thread, ("call", "clear_all_memory"))


def _run(work: Callable[..., str], command: object, *names: str) -> str:
    """Run a command with these of its fields, which the SDK does not check.

    Our errors are converted to the SDK's, which the runner shows to the model.
    """
    fields = [getattr(command, name, None) for name in names]
    for name, value in zip(names, fields, strict=True):
        if not isinstance(value, str):
            raise ToolError(f"`{name}` must be a string, not {value!r:.40}")
    try:
        return work(*fields)
    except BethinkError as error:
        remedy = f" ({error.remedy})" if error.remedy else ""
        raise ToolError(f"{error.message}{remedy}") from error
