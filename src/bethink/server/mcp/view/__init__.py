"""Self-contained HTML view of a recall answer for hosts that support MCP Apps.

It runs in a sandboxed frame of the host. Its script and its style, built from ``ui/src/recall``,
are allowed by their hashes in the content security policy, so nothing else runs in it, whatever a
memory says.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from bethink.core.json_values import Json
from bethink.version import __version__

URI = "ui://bethink/recall"
MIME = "text/html;profile=mcp-app"
EXTENSION = "io.modelcontextprotocol/ui"
VIEW_META: Json = {"ui": {"prefersBorder": True}}
VIEW_RESOURCE: Json = {
    "name": "recall-view",
    "title": "Recalled memories",
    "uri": URI,
    "description": "A page that displays a recall answer: scores, reasons, sources.",
    "mimeType": MIME,
    "_meta": VIEW_META,
}
EVIDENCE_KEY = "bethink/evidence"  # key in the `_meta` of an answer: for the view, not for a model
_CSP = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)


def client_supports_views(capabilities: Mapping[str, object]) -> bool:
    """Check whether a client's capabilities include this kind of view."""
    extensions = capabilities.get("extensions")
    settings = extensions.get(EXTENSION) if isinstance(extensions, Mapping) else None
    kinds = settings.get("mimeTypes") if isinstance(settings, Mapping) else None
    return isinstance(kinds, list | tuple) and MIME in kinds


@cache
def render_page() -> str:
    """Return the complete page, assembled from its parts."""
    style = _read_part("view.css")
    script = _read_part("view.js").replace("{version}", __version__)
    policy = _CSP.format(script=_csp_hash(script), style=_csp_hash(style))
    parts = {"{policy}": policy, "{style}": style, "{script}": script}
    made = _read_part("view.html")
    for mark, part in parts.items():
        made = made.replace(mark, part)
    return made


def _read_part(name: str) -> str:
    from importlib.resources import files  # start-up time: few hosts ask for the page

    return files(__name__).joinpath(name).read_text(encoding="utf-8")


def _csp_hash(text: str) -> str:
    import base64  # start-up time, as above
    import hashlib

    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
