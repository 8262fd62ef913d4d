"""MCP request handlers on the official library; calls run on worker threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from bethink.access.policy import Principal, principal_of, require
from bethink.core.json_values import Json
from bethink.errors import BethinkError
from bethink.render.quoting import one_line
from bethink.server.mcp.manifest import (
    NAME,
    TITLE,
    Completion,
    ResourceContent,
    ServerManifest,
    complete_argument,
    filter_permitted,
    read_resource,
    render_prompt,
    resource_operation,
)
from bethink.server.mcp.memory_loader import MemoryLoader
from bethink.server.mcp.stdio import (
    READ_TIMEOUT_S,
    error_content,
    too_slow_content,
)
from bethink.server.mcp.view import (
    EXTENSION,
    MIME,
    URI,
    VIEW_META,
    client_supports_views,
    render_page,
)
from bethink.server.tools.answers import in_tool_words
from bethink.server.tools.calls import ToolExecutor, ToolRequest, log_bug
from bethink.server.tools.catalog import LIST_ENTITIES
from bethink.server.tools.tool import Reply, Tool
from bethink.version import __version__

T = TypeVar("T")
_Ctx = ServerRequestContext[object]
_Paged = types.PaginatedRequestParams | None


class McpHandlers:
    """Handlers of the protocol's requests."""

    def __init__(self, manifest: ServerManifest, executor: ToolExecutor, timeout_s: float) -> None:
        self._tools, self._manifest, self._executor = manifest.tools, manifest, executor
        self._timeout_s = timeout_s

    def _principal(self, ctx: _Ctx) -> Principal:
        """Return the principal set by the guard, or the default one without an HTTP request."""
        return (
            self._executor.default_principal
            if ctx.request is None
            else principal_of(ctx.request.scope)
        )

    async def list_tools(self, ctx: _Ctx, _: _Paged) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate(self._list("tools/list", ctx))

    async def list_prompts(self, ctx: _Ctx, _: _Paged) -> types.ListPromptsResult:
        return types.ListPromptsResult.model_validate(self._list("prompts/list", ctx))

    async def list_resources(self, ctx: _Ctx, _: _Paged) -> types.ListResourcesResult:
        return types.ListResourcesResult.model_validate(self._list("resources/list", ctx))

    async def list_templates(self, ctx: _Ctx, _: _Paged) -> types.ListResourceTemplatesResult:
        content = self._list("resources/templates/list", ctx)
        return types.ListResourceTemplatesResult.model_validate(content)

    def _list(self, method: str, ctx: _Ctx) -> Json:
        """Return a list with the entries that the client supports and the caller may use."""
        whole = self._manifest.lists_for(_capabilities(ctx))[method]
        return filter_permitted(method, whole, self._principal(ctx), self._manifest)

    async def call_tool(
        self, ctx: _Ctx, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name not in self._tools:
            known = ", ".join(tool["name"] for tool in self._list("tools/list", ctx)["tools"])
            message = f"there is no tool {one_line(repr(params.name), 80)}; there are: {known}"
            raise MCPError(types.INVALID_PARAMS, message)
        return await self._run_tool(self._tools[params.name], params.arguments or {}, ctx)

    async def read_resource(
        self, ctx: _Ctx, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri, principal = str(params.uri), self._principal(ctx)

        def work() -> ResourceContent:
            require(principal, resource_operation(uri))
            if uri == URI:
                return ResourceContent(render_page(), MIME)
            return read_resource(uri, self._executor.memory_for(principal))

        content = await self._run_read(work)
        if uri == URI:
            view = types.TextResourceContents(
                uri=uri, text=content.text, mime_type=content.mime, _meta=VIEW_META
            )
            return types.ReadResourceResult(contents=[view])
        resource = types.TextResourceContents(uri=uri, text=content.text, mime_type=content.mime)
        return types.ReadResourceResult(contents=[resource])

    async def get_prompt(
        self, ctx: _Ctx, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        name, arguments, principal = params.name, params.arguments or {}, self._principal(ctx)
        prompts = self._manifest.prompts

        def work() -> str:
            if name in prompts:
                require(principal, prompts[name].operation or f"prompt {name}")
            return render_prompt(
                name, arguments, lambda: self._executor.memory_for(principal), prompts
            )

        text = await self._run_read(work)
        content = types.TextContent(type="text", text=text)
        return types.GetPromptResult(
            description=prompts[name].description,
            messages=[types.PromptMessage(role="user", content=content)],
        )

    async def complete(
        self, ctx: _Ctx, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        ref, argument, principal = params.ref, params.argument, self._principal(ctx)
        target = ref.name if isinstance(ref, types.PromptReference) else ref.uri

        def work() -> Completion:
            require(principal, LIST_ENTITIES.name)
            return complete_argument(
                target, argument.name, argument.value, self._executor.memory_for(principal)
            )

        found = await self._run_read(work)
        values = [one_line(name) for name in found.values]
        completion = types.Completion(values=values, has_more=found.truncated)
        return types.CompleteResult(completion=completion)

    async def _run_tool(self, tool: Tool, arguments: Json, ctx: _Ctx) -> types.CallToolResult:
        """Run a tool and return its reply; a failure becomes a message for the model."""

        def progress(done: int, total: int) -> None:
            anyio.from_thread.run(ctx.session.report_progress, float(done), float(total) or None)

        request = ToolRequest(
            tool,
            arguments,
            self._principal(ctx),
            client=_client(ctx),
            progress=progress,
            supports_views=client_supports_views(_capabilities(ctx)),
        )

        def work() -> Reply:
            return self._executor(request)

        try:
            if tool.read_only:
                reply = await _run_in_thread(work, self._timeout_s)
            else:
                # A write has no timeout here: the store's own limits end it.
                reply = await anyio.to_thread.run_sync(work)
        except BethinkError as error:
            return _error_result(error.message, error.remedy, type(error).__name__)
        except TimeoutError:
            return types.CallToolResult.model_validate(too_slow_content(tool.name, self._timeout_s))
        except Exception as error:  # noqa: BLE001 - logged, and reported by its type
            # The outermost loop of this surface: only the type of a bug is reported, its
            # message may contain stored text.
            return _error_result(log_bug(f"the tool {tool.name}", error), "please report it", "Bug")
        text = types.TextContent(type="text", text=reply.text)
        return types.CallToolResult(
            content=[text], structured_content=reply.content, _meta=reply.meta
        )

    async def _run_read(self, work: Callable[[], T]) -> T:
        """Run a resource or prompt handler; a refusal becomes an MCP error."""
        try:
            return await _run_in_thread(work, self._timeout_s)
        except BethinkError as error:
            message = in_tool_words(
                one_line(error.message)
                + (f". Try: {one_line(error.remedy)}" if error.remedy else "")
            )
            raise MCPError(types.INVALID_PARAMS, message, {"kind": type(error).__name__}) from error
        except TimeoutError as error:
            message = f"it took longer than {self._timeout_s:g} seconds"
            raise MCPError(types.INTERNAL_ERROR, message) from error
        except Exception as error:  # noqa: BLE001 - logged, and reported by its type
            # As for tools; the library would put the error's message into a span.
            message = log_bug("a resource or a prompt", error)
            raise MCPError(types.INTERNAL_ERROR, message) from None


def make_server(
    manifest: ServerManifest,
    loader: MemoryLoader,
    *,
    timeout_s: float = READ_TIMEOUT_S,
    executor: ToolExecutor | None = None,
) -> Server[object]:
    """Build the MCP server for a manifest and a memory; reads have a timeout."""
    handlers = McpHandlers(manifest, executor or ToolExecutor(loader), timeout_s)
    server: Server[object] = Server(
        NAME,
        title=TITLE,
        version=__version__,
        instructions=manifest.instructions,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_completion=handlers.complete,
    )
    server.extensions = {EXTENSION: {}}
    return server


def _client(ctx: _Ctx) -> str:
    """Return the host's name for the provenance of what it writes."""
    params = ctx.session.client_params
    return one_line(params.client_info.name, 60) if params is not None else ""


def _capabilities(ctx: _Ctx) -> Mapping[str, object]:
    """Return the client capabilities that matter here."""
    capabilities = ctx.session.client_capabilities
    return {"extensions": capabilities.extensions} if capabilities is not None else {}


def _error_result(message: str, remedy: str, kind: str) -> types.CallToolResult:
    """Return a failed result: a message for the model and the error's kind for programs."""
    return types.CallToolResult.model_validate(error_content(message, remedy, kind))


async def _run_in_thread(work: Callable[[], T], timeout_s: float) -> T:
    """Run a read on a worker thread; on timeout it is abandoned and ends by itself."""
    with anyio.fail_after(timeout_s):
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
