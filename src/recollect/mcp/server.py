"""The server itself, on the official library: its lists from tables, its calls on threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from recollect.access.policy import require
from recollect.access.rights import Principal, principal_of
from recollect.errors import RecollectError
from recollect.jsonable import Json
from recollect.mcp.bugs import log_bug
from recollect.mcp.calling import Asked, Calling
from recollect.mcp.completing import Completed, completed
from recollect.mcp.fencing import one_line
from recollect.mcp.offer import INSTRUCTIONS, NAME, TITLE, Offer
from recollect.mcp.opening import Opening
from recollect.mcp.permitted import permitted, resource_operation
from recollect.mcp.prompts import PROMPTS, said
from recollect.mcp.resources import Content, read
from recollect.mcp.tool import Reply, Tool
from recollect.mcp.tools.usual import LIST_ENTITIES
from recollect.mcp.view import EXTENSION, META, MIME, URI, page, shows_views
from recollect.version import __version__

READ_WITHIN_S = 10.0
KIND = "recollect/error"  # in the `_meta` of a failure: what the command line calls its kind
T = TypeVar("T")
_Ctx = ServerRequestContext[Any]
_Paged = types.PaginatedRequestParams | None


class Serving:
    """What is done for each request of the protocol."""

    def __init__(self, offer: Offer, calling: Calling, within_s: float) -> None:
        self._tools, self._offer, self._calling = offer.tools, offer, calling
        self._within_s = within_s

    def _who(self, ctx: _Ctx) -> Principal:
        """Who asks: whom the guard let in or, where no request says, who is trusted unseen."""
        return self._calling.unseen if ctx.request is None else principal_of(ctx.request.scope)

    async def list_tools(self, ctx: _Ctx, _: _Paged) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate(self._list("tools/list", ctx))

    async def list_prompts(self, ctx: _Ctx, _: _Paged) -> types.ListPromptsResult:
        return types.ListPromptsResult.model_validate(self._list("prompts/list", ctx))

    async def list_resources(self, ctx: _Ctx, _: _Paged) -> types.ListResourcesResult:
        return types.ListResourcesResult.model_validate(self._list("resources/list", ctx))

    async def list_templates(self, ctx: _Ctx, _: _Paged) -> types.ListResourceTemplatesResult:
        told = self._list("resources/templates/list", ctx)
        return types.ListResourceTemplatesResult.model_validate(told)

    def _list(self, method: str, ctx: _Ctx) -> Json:
        """A list as far as the client can use it, and who asks may."""
        whole = self._offer.lists_for(_capabilities(ctx))[method]
        return permitted(method, whole, self._who(ctx))

    async def call_tool(
        self, ctx: _Ctx, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name not in self._tools:
            known = ", ".join(tool["name"] for tool in self._list("tools/list", ctx)["tools"])
            told = f"there is no tool {one_line(repr(params.name), 80)}; there are: {known}"
            raise MCPError(types.INVALID_PARAMS, told)
        return await self._called(self._tools[params.name], params.arguments or {}, ctx)

    async def read_resource(
        self, ctx: _Ctx, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri, principal = str(params.uri), self._who(ctx)

        def work() -> Content:
            require(principal, resource_operation(uri))
            if uri == URI:
                return Content(page(), MIME)
            return read(uri, self._calling.memory_for(principal))

        content = await self._answered(work)
        if uri == URI:
            view = types.TextResourceContents(
                uri=uri, text=content.text, mime_type=content.mime, _meta=META
            )
            return types.ReadResourceResult(contents=[view])
        told = types.TextResourceContents(uri=uri, text=content.text, mime_type=content.mime)
        return types.ReadResourceResult(contents=[told])

    async def get_prompt(
        self, ctx: _Ctx, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        name, given, principal = params.name, params.arguments or {}, self._who(ctx)

        def work() -> str:
            if name in PROMPTS:
                require(principal, f"prompt {name}")
            return said(name, given, lambda: self._calling.memory_for(principal))

        text = await self._answered(work)
        content = types.TextContent(type="text", text=text)
        return types.GetPromptResult(
            description=PROMPTS[name].description,
            messages=[types.PromptMessage(role="user", content=content)],
        )

    async def complete(
        self, ctx: _Ctx, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        ref, begun, principal = params.ref, params.argument, self._who(ctx)
        taker = ref.name if isinstance(ref, types.PromptReference) else ref.uri

        def work() -> Completed:
            require(principal, LIST_ENTITIES.name)
            return completed(taker, begun.name, begun.value, self._calling.memory_for(principal))

        found = await self._answered(work)
        values = [one_line(name) for name in found.values]
        told = types.Completion(values=values, has_more=found.is_cut)
        return types.CompleteResult(completion=told)

    async def _called(
        self, tool: Tool, arguments: dict[str, Any], ctx: _Ctx
    ) -> types.CallToolResult:
        """A tool's reply or, where it failed, a sentence the model can act on."""

        def progress(done: int, total: int) -> None:
            anyio.from_thread.run(ctx.session.report_progress, float(done), float(total) or None)

        asked = Asked(
            tool,
            arguments,
            self._who(ctx),
            client=_client(ctx),
            progress=progress,
            draws=shows_views(_capabilities(ctx)),
        )

        def work() -> Reply:
            return self._calling(asked)

        try:
            if tool.reads:
                reply = await _on_thread(work, self._within_s)
            else:
                # A write is not given up halfway, whoever stops waiting for it: the store's
                # own limits end it.
                reply = await anyio.to_thread.run_sync(work)
        except RecollectError as error:
            return _failed(error.message, error.remedy, type(error).__name__)
        except TimeoutError:
            return _failed(
                f"{tool.name} took longer than {self._within_s:g} seconds",
                "ask again, with fewer memories or a narrower question",
                "TooSlow",
            )
        except Exception as error:  # noqa: BLE001 - logged, and told by its kind
            # The outermost loop of this surface: a bug is told by its kind alone, its text
            # may hold what was stored.
            return _failed(log_bug(f"the tool {tool.name}", error), "please report it", "Bug")
        text = types.TextContent(type="text", text=reply.text)
        return types.CallToolResult(
            content=[text], structured_content=reply.content, _meta=reply.meta
        )

    async def _answered(self, work: Callable[[], T]) -> T:
        """What a resource or a prompt gives; a refusal becomes the protocol's own error."""
        try:
            return await _on_thread(work, self._within_s)
        except RecollectError as error:
            told = one_line(error.message) + (
                f". Try: {one_line(error.remedy)}" if error.remedy else ""
            )
            raise MCPError(types.INVALID_PARAMS, told, {"kind": type(error).__name__}) from error
        except TimeoutError as error:
            told = f"it took longer than {self._within_s:g} seconds"
            raise MCPError(types.INTERNAL_ERROR, told) from error
        except Exception as error:  # noqa: BLE001 - logged, and told by its kind
            # As for tools; the library would put the error's own words into a span.
            told = log_bug("a resource or a prompt", error)
            raise MCPError(types.INTERNAL_ERROR, told) from None


def make_server(
    offer: Offer,
    opening: Opening,
    *,
    within_s: float = READ_WITHIN_S,
    calling: Calling | None = None,
) -> Server[Any]:
    """A server that offers this of that memory; a question is answered within that time."""
    serving = Serving(offer, calling or Calling(opening), within_s)
    server: Server[Any] = Server(
        NAME,
        title=TITLE,
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=serving.list_tools,
        on_call_tool=serving.call_tool,
        on_list_resources=serving.list_resources,
        on_list_resource_templates=serving.list_templates,
        on_read_resource=serving.read_resource,
        on_list_prompts=serving.list_prompts,
        on_get_prompt=serving.get_prompt,
        on_completion=serving.complete,
    )
    server.extensions = {EXTENSION: {}}
    return server


def _client(ctx: _Ctx) -> str:
    """The host's name as it gave it, for the provenance of what it writes."""
    params = ctx.session.client_params
    return one_line(params.client_info.name, 60) if params is not None else ""


def _capabilities(ctx: _Ctx) -> Mapping[str, object]:
    """What the host says it can do, as far as it matters here."""
    told = ctx.session.client_capabilities
    return {"extensions": told.extensions} if told is not None else {}


def _failed(message: str, remedy: str, kind: str) -> types.CallToolResult:
    """A failure: a sentence for the model and, for programs, the name of what it is."""
    told = one_line(message, 500) + (f". Try: {one_line(remedy, 1000)}" if remedy else "")
    text = types.TextContent(type="text", text=told)
    return types.CallToolResult(content=[text], is_error=True, _meta={KIND: kind})


async def _on_thread(work: Callable[[], T], within_s: float) -> T:
    """What a question gives; who no longer waits for it leaves it to end by itself."""
    with anyio.fail_after(within_s):
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
