"""The page for people: every route in a line, and how to come in."""

from __future__ import annotations

from html import escape

from recollect.access.policy import POLICY
from recollect.serve.routes import PLAIN, WAYS
from recollect.version import __version__

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light dark}code{font-family:ui-monospace,monospace}"
    "td{padding:.15rem 1rem .15rem 0;vertical-align:top}"
)


def page() -> str:
    """HTML that loads nothing from anywhere."""
    lines = [(way.method, way.path, way.tool.name, way.tool.title) for way in WAYS]
    lines += [(plain.method, plain.path, plain.operation, plain.told) for plain in PLAIN]
    lines.append(("POST", "/mcp", "mcp", "The Model Context Protocol."))
    rows = "\n".join(
        f"<tr><td><code>{method} {escape(path)}</code></td>"
        f"<td>{POLICY[operation].word}</td><td>{escape(told)}</td></tr>"
        for method, path, operation, told in lines
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Recollect</title>'
        f"<style>{_STYLE}</style></head><body><h1>Recollect {__version__}</h1>"
        "<p>A memory over HTTP. Who has a token sends it along: "
        "<code>Authorization: Bearer rc_...</code>. The whole API is described in "
        '<a href="/openapi.json">openapi.json</a>.</p>'
        f"<table><tr><th>route</th><th>scope</th><th></th></tr>\n{rows}</table></body></html>"
    )
