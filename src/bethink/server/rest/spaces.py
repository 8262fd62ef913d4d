"""Several spaces at one address: one at the root, every one below /spaces/NAME.

A space that is not served answers as one that the caller may not use.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
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

    async def _live(self, receive: Receive, send: Send) -> None:
        """Start and stop all applications with the server."""
        await receive()
        async with AsyncExitStack() as stack:
            for app in dict.fromkeys((self._root, *self._spaces.values())):
                await stack.enter_async_context(_alive(app))
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


def for_space(config: GuardConfig, name: str) -> GuardConfig:
    """Return how another space is guarded: OAuth grants the first one only."""
    return replace(config, space=name, verify=None)


@asynccontextmanager
async def _alive(app: Guard) -> AsyncIterator[None]:
    """Keep one application between its start and its end."""
    told: asyncio.Queue[Message] = asyncio.Queue()
    said: asyncio.Queue[Message] = asyncio.Queue()
    task = asyncio.create_task(app({"type": "lifespan", "asgi": {}}, told.get, said.put))
    await told.put({"type": "lifespan.startup"})
    answer = await said.get()
    if answer["type"] != "lifespan.startup.complete":
        raise RuntimeError(answer.get("message", "a space could not be started"))
    try:
        yield
    finally:
        await told.put({"type": "lifespan.shutdown"})
        await said.get()
        await task


async def _answer_not_found(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)
    response = await routing_error_response(request, HTTPException(404))
    await response(scope, receive, send)
