"""Writes transcripts as Claude Code writes them: one entry a line, among much else."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from corpus import NOW


class Transcript:
    """A session's file, written on as the session goes."""

    def __init__(self, path: Path, session: str, *, cwd: Path | str = "/project") -> None:
        self.path, self.session, self.cwd = path, session, str(cwd)
        self._match_at: datetime = NOW
        self._count = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def raw(self, line: str | bytes) -> None:
        """A line as it is, whatever it is."""
        with self.path.open("ab") as file:
            file.write(line if isinstance(line, bytes) else line.encode("utf-8", "surrogatepass"))

    def entry(self, **fields: Any) -> str:
        """One entry with what every entry has; gives its id."""
        self._count += 1
        self._match_at += timedelta(seconds=5)
        name = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self.session}/{self._count}"))
        whole = {
            "parentUuid": None,
            "isSidechain": False,
            "uuid": name,
            "timestamp": self._match_at.isoformat().replace("+00:00", "Z"),
            "userType": "external",
            "entrypoint": "cli",
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": "2.1.325",
            "gitBranch": "main",
        }
        self.raw(json.dumps(whole | fields, ensure_ascii=False) + "\n")
        return str((whole | fields)["uuid"])

    def user(self, text: Any, **more: Any) -> str:
        """A prompt."""
        message = {"role": "user", "content": text}
        told = {"type": "user", "promptSource": "typed", "message": message}
        return self.entry(**{**told, **more})

    def agent(self, *blocks: Any, **more: Any) -> str:
        """Something of the agent's: texts, or blocks as they are."""
        content = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
        message = {"id": "msg_1", "type": "message", "role": "assistant", "content": content}
        return self.entry(**{"type": "assistant", "message": message, **more})

    def tool(
        self, name: str, told: Mapping[str, Any], result: Any = "ok", *, failed: bool = False
    ) -> str:
        """A call of a tool and what came of it; gives the call's id."""
        call = f"toolu_{self.session}_{self._count}"
        self.agent({"type": "tool_use", "id": call, "name": name, "input": dict(told)})
        block = {"type": "tool_result", "tool_use_id": call, "content": result}
        block |= {"is_error": True} if failed else {}
        self.user([block], toolUseResult={"stdout": "ok"})
        return call

    def given(self, text: str, event: str = "UserPromptSubmit") -> None:
        """What a hook has put before the agent."""
        shown = f"<system-reminder>\n{event} hook additional context: {text}\n</system-reminder>"
        told = {"type": "hook_additional_context", "content": [text], "hookEvent": event}
        self.entry(type="attachment", attachment=told, rendered=[{"content": shown}])
