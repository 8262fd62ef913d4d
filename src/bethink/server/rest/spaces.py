"""Several spaces at one address: one at the root, every one below /spaces/NAME.

A space that is not served answers as one that the caller may not use.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Router
from starlette.types import Receive, Scope, Send

from bethink.access.guard import Guard, GuardConfig
from bethink.server.rest.browser import PAGE_PATH
from bethink.server.rest.http_messages import routing_error_response

PREFIX = "/spaces/"
VISIBLE = "bethink.spaces"  # of a request: finds the spaces that its caller may read


class SpacesApp:
    """Forwards each request to the application of its space."""

    def __init__(self, root: Guard, spaces: Mapping[str, Guard], config: GuardConfig) -> None:
        self._root, self._spaces = root, dict(spaces)
        self._config = replace(config, trust_loopback=False)
        self._router = Router(lifespan=self._live)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._router.lifespan(scope, receive, send)
            return
        path = scope.get("path", "")
        scope = {**scope, VISIBLE: partial(self._visible, scope)}
        if not path.startswith(PREFIX):
            await self._root(scope, receive, send)
            return
        name, _, rest = path.removeprefix(PREFIX).partition("/")
        app = self._spaces.get(name) or Guard(_answer_not_found, for_space(self._config, name))
        if f"/{rest}/".startswith(f"{PAGE_PATH}/"):
            app = self._root  # the page holds no data: it is the same for every name
        await app({**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}, receive, send)

    async def _visible(self, scope: Scope) -> list[str]:
        """Return the spaces that the caller of a request may read."""
        return [name for name, app in self._spaces.items() if await app.admits(scope)]

    @asynccontextmanager
    async def _live(self, _: object) -> AsyncIterator[None]:
        """Start and stop all applications with the server."""
        async with AsyncExitStack() as stack:
            for guard in dict.fromkeys((self._root, *self._spaces.values())):
                app: Any = guard.app
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield


def for_space(config: GuardConfig, name: str) -> GuardConfig:
    """Return how another space is guarded: OAuth grants the first one only."""
    return replace(config, space=name, verify=None)


async def _answer_not_found(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)
    response = await routing_error_response(request, HTTPException(404))
    await response(scope, receive, send)
