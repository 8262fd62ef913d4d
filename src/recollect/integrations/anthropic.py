"""Claude's memory tool on a memory: its files have a history, and recall finds what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from recollect.errors import RecollectError
from recollect.integrations.memory_files import MemoryFiles
from recollect.integrations.opening import missing, open_memory
from recollect.memory import Memory

try:
    from anthropic.lib.tools import (
        BetaAbstractMemoryTool,
        BetaAsyncAbstractMemoryTool,
        ToolError,
    )
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
    raise missing(
        error, "the Anthropic SDK", extra="anthropic", modules="anthropic anyio"
    ) from error

__all__ = ["RecollectAsyncMemoryTool", "RecollectMemoryTool"]

_COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")


class RecollectMemoryTool(BetaAbstractMemoryTool):
    """The memory tool with its files in a space of Recollect.

    A file has up to 64 KiB. A changed file is the next revision of its memory, a deleted
    one is forgotten; ``recollect history`` and ``restore`` know both. Secrets are taken out
    before a file is stored, and the answer tells the model so.
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
        """Carries a command out; one that does not exist is an error the model can read."""
        name = input.get("command") if isinstance(input, dict) else None
        if name not in _COMMANDS:
            raise ToolError(f"There is no command {name!r:.40}. It is one of {_COMMANDS}.")
        return str(super().call(input))

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """A file with line numbers, or what is in a folder."""
        return _told(
            lambda: self._files.view(
                _field(command, "path"), getattr(command, "view_range", None) or None
            )
        )

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Makes a file."""
        return _told(
            lambda: self._files.create(_field(command, "path"), _field(command, "file_text"))
        )

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replaces a text that occurs once."""
        return _told(
            lambda: self._files.str_replace(
                _field(command, "path"), _field(command, "old_str"), _field(command, "new_str")
            )
        )

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Puts a text after a line."""
        line = getattr(command, "insert_line", None)
        return _told(
            lambda: self._files.insert(
                _field(command, "path"), line, _field(command, "insert_text")
            )
        )

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Forgets a file or a folder."""
        return _told(lambda: self._files.delete(_field(command, "path")))

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Moves a file or a folder."""
        return _told(
            lambda: self._files.rename(_field(command, "old_path"), _field(command, "new_path"))
        )

    def clear_all_memory(self) -> str:
        """Forgets every file."""
        return _told(self._files.clear)


class RecollectAsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for the asynchronous client: nothing holds the event loop up."""

    def __init__(
        self,
        memory: Memory | str | None = None,
        *,
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._tool = RecollectMemoryTool(memory)
        self.memory = self._tool.memory

    async def call(self, input: object) -> str:  # noqa: A002 - the interface's name
        """Carries a command out."""
        return await run_sync(self._tool.call, input)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """A file with line numbers, or what is in a folder."""
        return await run_sync(self._tool.view, command)

    async def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """Makes a file."""
        return await run_sync(self._tool.create, command)

    async def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """Replaces a text that occurs once."""
        return await run_sync(self._tool.str_replace, command)

    async def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """Puts a text after a line."""
        return await run_sync(self._tool.insert, command)

    async def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """Forgets a file or a folder."""
        return await run_sync(self._tool.delete, command)

    async def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """Moves a file or a folder."""
        return await run_sync(self._tool.rename, command)

    async def clear_all_memory(self) -> str:
        """Forgets every file."""
        return await run_sync(self._tool.clear_all_memory)


def _told(work: Callable[[], str]) -> str:
    """What a command answers; our errors become such as the runner shows to the model."""
    try:
        return work()
    except RecollectError as error:
        remedy = f" ({error.remedy})" if error.remedy else ""
        raise ToolError(f"{error.message}{remedy}") from error


def _field(command: object, name: str) -> Any:
    """A field of a command. The SDK does not look whether it is there, or what it is."""
    value = getattr(command, name, None)
    if not isinstance(value, str):
        raise ToolError(f"`{name}` must be a text, not {value!r:.40}")
    return value
