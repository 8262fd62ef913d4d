"""What other tools keep, read as drafts. A new source is one reader and one line here.

`recollect.sources.importing.import_from` brings one in; docs/import.md says what each reads.
"""

from __future__ import annotations

from recollect.parts import Parts

SOURCES = Parts(
    "recollect.sources",
    {
        "mcp-memory": "mcp_memory:McpMemory",
        "mem0": "mem0:Mem0",
        "remind": "remind:Remind",
        "claude-mem": "claude_mem:ClaudeMem",
        "basic-memory": "basic_memory:BasicMemory",
        "claude-code": "claude_code:ClaudeCode",
        "chatgpt": "chatgpt:ChatGpt",
        "claude": "claude_ai:ClaudeAi",
        "markdown": "markdown:Markdown",
    },
)
# Read from a stream, so that they can also be piped in.
STREAMS = ("jsonl", "text", "lines", "recollect")
AUTO = "auto"
KINDS = (AUTO, *SOURCES, *STREAMS)
