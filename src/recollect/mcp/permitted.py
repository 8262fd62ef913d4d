"""The server's lists as far as somebody may use what is in them."""

from __future__ import annotations

from recollect.access.policy import permits
from recollect.access.rights import Principal
from recollect.errors import NotFound
from recollect.jsonable import Json
from recollect.mcp.resources import RESOURCES, TEMPLATES
from recollect.mcp.view import LISTED

_ENTRIES = {
    "tools/list": ("tools", "name", ""),
    "prompts/list": ("prompts", "name", "prompt "),
    "resources/list": ("resources", "uri", "resource "),
    "resources/templates/list": ("resourceTemplates", "uriTemplate", "resource "),
}


def permitted(method: str, whole: Json, principal: Principal) -> Json:
    """The list without what the policy keeps from somebody."""
    under, key, prefix = _ENTRIES[method]
    kept = [entry for entry in whole[under] if permits(principal, prefix + entry[key])]
    return whole | {under: kept}


def resource_operation(uri: str) -> str:
    """The row of the policy that reading an address falls under, or NotFound."""
    listed = [one["uri"] for one in (*RESOURCES, LISTED)]
    listed += [one["uriTemplate"] for one in TEMPLATES]
    for known in listed:
        if _kind(known) == _kind(uri):
            return f"resource {known}"
    raise NotFound("there is no such resource", remedy=f"one of {', '.join(listed)}")


def _kind(uri: str) -> str:
    """What an address leads to, whichever of it: ``memory://item``."""
    scheme, mark, rest = uri.partition("://")
    return scheme + mark + rest.partition("/")[0]
