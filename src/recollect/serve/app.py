"""The application: REST and MCP over one memory, behind one guard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from anyio import fail_after, to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from recollect.access.guard import MOST_BODY, Door, Guard
from recollect.access.policy import POLICY, permits, require
from recollect.access.rights import NOBODY, Principal, Right, principal_of
from recollect.errors import RecollectError
from recollect.mcp.calling import Asked, Calling
from recollect.mcp.http import PATH as MCP_PATH
from recollect.mcp.http import Streamable, is_brief
from recollect.mcp.masking import masked
from recollect.mcp.offer import Offer
from recollect.mcp.opening import Opening
from recollect.mcp.server import READ_WITHIN_S, make_server
from recollect.memory import Memory
from recollect.serve.answering import answered, bug, no_route, refused, too_slow
from recollect.serve.asking import arguments_of
from recollect.serve.figures import MEDIA, ROUTE, Figures
from recollect.serve.moving import MOST_IMPORT, exported, imported
from recollect.serve.openapi import document
from recollect.serve.page import page
from recollect.serve.routes import PLAIN, WAYS, Plain, Way

Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(
    offer: Offer,
    opening: Opening,
    door: Door,
    *,
    within_s: float = READ_WITHIN_S,
    ways: Sequence[Way] = WAYS,
) -> Guard:
    """Everything that `recollect serve` serves."""
    figures = Figures()
    calling = Calling(opening, [figures.watch], unseen=NOBODY)
    rest = Rest(calling, figures, within_s, ways)
    mcp = Streamable(make_server(offer, opening, within_s=within_s, calling=calling))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with mcp.run():
            yield

    app = Starlette(
        routes=[*rest.routes(), Route(MCP_PATH, _Named(mcp))],
        lifespan=lifespan,
        exception_handlers={HTTPException: no_route},
    )
    app.router.redirect_slashes = False
    open_to_all = frozenset(one.path for one in PLAIN if POLICY[one.operation] is Right.ANYONE)
    told = replace(
        door, room=_room, brief=is_brief, watch=figures.answered, open_to_all=open_to_all
    )
    return Guard(app, told)


class _Named:
    """The MCP endpoint, with its route noted for the figures."""

    def __init__(self, app: Streamable) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[ROUTE] = MCP_PATH
        await self._app(scope, receive, send)


def _room(scope: Scope, principal: Principal) -> int:
    """How large a body may be: an import is large, from who may import."""
    is_import = scope["path"] == "/v1/import" and permits(principal, "import")
    return MOST_IMPORT if is_import else MOST_BODY


class Rest:
    """The routes of the REST API."""

    def __init__(
        self, calling: Calling, figures: Figures, within_s: float, ways: Sequence[Way]
    ) -> None:
        self._calling, self._figures, self._within_s = calling, figures, within_s
        self._ways = ways
        self._document, self._text = answered(document()).body, page()

    def routes(self) -> list[Route]:
        """One for each path, whatever the methods it takes."""
        found: dict[str, dict[str, Endpoint]] = {}
        for way in self._ways:
            found.setdefault(way.path, {})[way.method] = partial(self._tool, way)
        for plain in PLAIN:
            does = getattr(self, f"_{plain.operation}")
            found.setdefault(plain.path, {})[plain.method] = partial(self._plain, plain, does)
        return [
            Route(path, _dispatch(path, endpoints), methods=[*endpoints])
            for path, endpoints in found.items()
        ]

    async def _tool(self, way: Way, request: Request) -> Response:
        """Calls the tool behind a route, just as the MCP server would."""
        tool, principal = way.tool, principal_of(request.scope)
        try:
            # First, so that who may not learns nothing about the arguments.
            require(principal, tool.name)
            told = await arguments_of(request, way)
            asked = Asked(tool, told, principal, client=principal.name, via="http")
            work = partial(self._calling, asked, whole=True)
            # A write is not given up halfway: the store's own limits end it.
            with fail_after(self._within_s if tool.reads else None):
                reply = await to_thread.run_sync(work, abandon_on_cancel=tool.reads)
        except RecollectError as error:
            return refused(error)
        except TimeoutError:
            return too_slow(tool.name, self._within_s)
        except Exception as error:  # noqa: BLE001 - the outermost loop of this surface
            return bug(tool.name, error)
        return answered(reply.content)

    async def _plain(self, plain: Plain, does: Endpoint, request: Request) -> Response:
        principal = principal_of(request.scope)
        try:
            require(principal, plain.operation)
            with masked(principal):
                return await does(request)
        except RecollectError as error:
            return refused(error)
        except Exception as error:  # noqa: BLE001 - the outermost loop of this surface
            return bug(plain.operation, error)

    async def _health(self, _: Request) -> Response:
        opening = self._calling.opening
        well = opening.is_open or not opening.is_loaded
        return answered({"status": "ok" if well else "not ok"}, 200 if well else 503)

    async def _ready(self, _: Request) -> Response:
        opening = self._calling.opening
        ready = opening.is_open and opening.is_loaded
        return answered({"status": "ok" if ready else "not ok"}, 200 if ready else 503)

    async def _metrics(self, _: Request) -> Response:
        return Response(self._figures.text(), headers={"content-type": MEDIA})

    async def _openapi(self, _: Request) -> Response:
        return Response(self._document, media_type="application/json")

    async def _page(self, _: Request) -> Response:
        return HTMLResponse(self._text)

    async def _export(self, request: Request) -> Response:
        return await exported(await self._memory(request))

    async def _import(self, request: Request) -> Response:
        told = await imported(request, await self._memory(request))
        self._figures.wrote("import")
        return answered(told)

    async def _memory(self, request: Request) -> Memory:
        principal = principal_of(request.scope)
        return await to_thread.run_sync(partial(self._calling.memory_for, principal, writing=True))


def _dispatch(path: str, endpoints: dict[str, Endpoint]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        request.scope[ROUTE] = path
        return await endpoints["GET" if request.method == "HEAD" else request.method](request)

    return endpoint
