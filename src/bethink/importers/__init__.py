"""Importers of other tools' data, one reader per source, and their registry.

A new source is one reader and one line in this registry.
`Memory.import_` runs an import; docs/import.md lists what each
source reads.
"""

from __future__ import annotations

from typing import Any

from bethink.core.registry import Registry

_OWN = {
    "mcp-memory": "bethink.importers.mcp_memory:McpMemory",
    "mem0": "bethink.importers.mem0:Mem0",
    "remind": "bethink.importers.remind:Remind",
    "linksee": "bethink.importers.linksee:Linksee",
    "abmind": "bethink.importers.abmind:Abmind",
    "siftcoder": "bethink.importers.siftcoder:Siftcoder",
    "memind": "bethink.importers.memind:Memind",
    "claude-mem": "bethink.importers.claude_mem:ClaudeMem",
    "basic-memory": "bethink.importers.basic_memory:BasicMemory",
    "logseq": "bethink.importers.logseq:Logseq",
    "claude-code": "bethink.importers.claude_code:ClaudeCode",
    "chatgpt": "bethink.importers.chat_exports:ChatGpt",
    "claude": "bethink.importers.chat_exports:ClaudeAi",
    "markdown": "bethink.importers.markdown:Markdown",
}
IMPORTERS: Registry[Any] = Registry("importer", _OWN, group="bethink.importers")
# Read from a stream, so that they can also be piped in.
STREAMS = ("jsonl", "text", "lines", "bethink")
AUTO = "auto"
# Without plug-ins: reading their names takes longer than showing help.
KINDS = (AUTO, *_OWN, *STREAMS)
