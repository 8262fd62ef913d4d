"""Claude's memory tool on a memory answers as the SDK's own tool on a folder does."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from bethink import Memory
from deferred import Deferred
from thorough import examples

anthropic = Deferred("anthropic.lib.tools", "anthropic.tools")
integration = Deferred("bethink.integrations.anthropic")

NAMES = st.sampled_from(["a", "b.md", "c", ".hidden", "é", "a b"])
PATHS = st.lists(NAMES, max_size=3).map(lambda parts: "/".join(["/memories", *parts]))
TEXTS = st.text(alphabet="ab\n\té.", max_size=12)
LINES = st.integers(-1, 6)


def prune(folder: Path) -> None:
    """A folder is there as long as a file is in it; in a file system it would stay."""
    for each, _, _ in os.walk(folder, topdown=False):
        if each != str(folder) and not os.listdir(each):  # noqa: PTH208
            Path(each).rmdir()


def without_folder_sizes(text: str, folder: str) -> str:
    """What a folder takes on a disk is the file system's business."""
    lines = [
        f"?\t{line.partition(chr(9))[2]}" if line.endswith(("/", f"\t{folder}")) else line
        for line in text.split("\n")
    ]
    return "\n".join(lines)


class LikeAFolder(RuleBasedStateMachine):
    """Does the same to both and looks whether both say the same."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = Memory.open(":memory:", embedder="none")
        self.error_type = integration.BethinkMemoryTool(self.memory)
        self.folder = tempfile.TemporaryDirectory()
        self.theirs = anthropic.BetaLocalFilesystemMemoryTool(self.folder.name)

    def teardown(self) -> None:
        self.memory.close()
        self.folder.cleanup()

    def both(self, **command: Any) -> None:
        ours = self.told(self.error_type, command)
        theirs = self.told(self.theirs, command)
        prune(Path(self.folder.name) / "memories")
        if theirs.startswith("? "):
            assert ours.startswith("! ")
        elif command["command"] == "view":
            folder = command["path"]
            assert without_folder_sizes(ours, folder) == without_folder_sizes(theirs, folder)
        else:
            assert ours == theirs

    def told(self, tool: Any, command: dict[str, Any]) -> str:
        try:
            return str(tool.call(command))
        except anthropic.ToolError as error:
            return f"! {error}"
        except OSError as error:
            return f"? {error}"  # the folder's tool lets these through

    @rule(path=PATHS, text=TEXTS)
    def create(self, path: str, text: str) -> None:
        self.both(command="create", path=path, file_text=text)

    @rule(path=PATHS)
    def view(self, path: str) -> None:
        self.both(command="view", path=path)

    @rule(path=PATHS, first=LINES, last=LINES)
    def view_lines(self, path: str, first: int, last: int) -> None:
        self.both(command="view", path=path, view_range=[first, last])

    @rule(path=PATHS, old=TEXTS.filter(bool), new=TEXTS)
    def str_replace(self, path: str, old: str, new: str) -> None:
        self.both(command="str_replace", path=path, old_str=old, new_str=new)

    @rule(path=PATHS, line=LINES, text=TEXTS)
    def insert(self, path: str, line: int, text: str) -> None:
        self.both(command="insert", path=path, insert_line=line, insert_text=text)

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        self.both(command="delete", path=path)

    @rule(old=PATHS, new=PATHS)
    def rename(self, old: str, new: str) -> None:
        self.both(command="rename", old_path=old, new_path=new)

    @rule()
    def view_all(self) -> None:
        self.both(command="view", path="/memories")


def test_it_answers_as_the_sdks_own_tool() -> None:
    """Whatever is created, edited, moved and deleted, in any order, to the letter."""
    run_state_machine_as_test(
        LikeAFolder,
        settings=settings(
            max_examples=examples(20, 40),
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
