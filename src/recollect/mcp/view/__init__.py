"""The view of an answer that hosts of MCP Apps draw: one page, nothing of it from elsewhere.

A page of its own in a sandboxed frame of the host's. Its script and its style are named to
the browser by their hashes, so that nothing else runs in it, whatever a memory says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from recollect.jsonable import Json
from recollect.version import __version__

URI = "ui://recollect/recall"
MIME = "text/html;profile=mcp-app"
EXTENSION = "io.modelcontextprotocol/ui"
META: Json = {"ui": {"prefersBorder": True}}
LISTED: Json = {
    "name": "recall-view",
    "title": "What was recalled",
    "uri": URI,
    "description": "An answer of recall to look at: scores, reasons, where each comes from.",
    "mimeType": MIME,
    "_meta": META,
}
EVIDENCE = "recollect/evidence"  # in the `_meta` of an answer: for the view, not for a model
_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


def shows_views(capabilities: Mapping[str, object]) -> bool:
    """Whether a client with these capabilities said that it can draw the view."""
    extensions = capabilities.get("extensions")
    told = extensions.get(EXTENSION) if isinstance(extensions, Mapping) else None
    kinds = told.get("mimeTypes") if isinstance(told, Mapping) else None
    return isinstance(kinds, list | tuple) and MIME in kinds


@cache
def page() -> str:
    """The whole page, put together from its parts."""
    style = _part("view.css")
    script = _part("host.js") + _part("view.js").replace("{version}", __version__)
    policy = _POLICY.format(script=_hash(script), style=_hash(style))
    parts = {"{policy}": policy, "{style}": style, "{script}": script}
    made = _part("view.html")
    for mark, part in parts.items():
        made = made.replace(mark, part)
    return made


def _part(name: str) -> str:
    from importlib.resources import files  # start-up time: few hosts ask for the page

    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    import base64  # start-up time, as above
    import hashlib

    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
