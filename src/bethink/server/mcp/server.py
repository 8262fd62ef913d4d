"""MCP request handlers on the official library; calls run on worker threads."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar

import anyio
import anyio.from_thread
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from bethink.access.policy import Principal, principal_of
from bethink.core.json_values import Json
from bethink.render.quoting import one_line
from bethink.server.mcp import requests
from bethink.server.mcp.manifest import NAME, TITLE, ServerManifest, filter_permitted
from bethink.server.mcp.memory_loader import MemoryLoader
from bethink.server.mcp.view import EXTENSION, client_supports_views
from bethink.server.tools.calls import ToolExecutor, ToolRequest
from bethink.server.tools.tool import Reply, Tool
from bethink.version import __version__

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)
_Ctx = ServerRequestContext[object]


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

    def lister(self, method: str, kind: type[M]) -> Callable[[_Ctx, object], Awaitable[M]]:
        """Return the handler of a list."""

        async def answer(ctx: _Ctx, _: object) -> M:
            return kind.model_validate(self._list(method, ctx))

        return answer

    def reader(self, method: str, kind: type[M]) -> Callable[[_Ctx, BaseModel], Awaitable[M]]:
        """Return the handler of a resource, a prompt or completions."""

        async def answer(ctx: _Ctx, params: BaseModel) -> M:
            return kind.model_validate(await self._run_read(method, params, ctx))

        return answer

    def _list(self, method: str, ctx: _Ctx) -> Json:
        """Return a list with the entries that the client supports and the caller may use."""
        whole = self._manifest.lists_for(_capabilities(ctx))[method]
        return filter_permitted(method, whole, self._principal(ctx), self._manifest)

    async def call_tool(
        self, ctx: _Ctx, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name not in self._tools:
            known = (tool["name"] for tool in self._list("tools/list", ctx)["tools"])
            fault = requests.unknown_tool(params.name, known)
            raise MCPError(fault.code, fault.message)
        content = await self._run_tool(self._tools[params.name], params.arguments or {}, ctx)
        return types.CallToolResult.model_validate(content)

    async def _run_tool(self, tool: Tool, arguments: Json, ctx: _Ctx) -> Json:
        """Run a tool and return its result; a failure becomes a message for the model."""

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
        except Exception as error:  # noqa: BLE001 - a bug is logged, and reported by its type
            return requests.failed_content(error, tool.name, self._timeout_s)
        return requests.reply_content(*reply)

    async def _run_read(self, method: str, params: BaseModel, ctx: _Ctx) -> Json:
        """Return a resource, a prompt or completions; a refusal becomes an MCP error."""
        principal = self._principal(ctx)
        given = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        memory = partial(self._executor.memory_for, principal)
        try:
            work = partial(requests.READS[method], given, principal, memory, self._manifest)
            return await _run_in_thread(work, self._timeout_s)
        except Exception as error:  # noqa: BLE001 - a bug is logged, and reported by its type
            fault = requests.read_fault(error, self._timeout_s)
            # Not from the error: the library would put its message into a span.
            raise MCPError(fault.code, fault.message, fault.data) from None


def make_server(
    manifest: ServerManifest,
    loader: MemoryLoader,
    *,
    timeout_s: float = requests.READ_TIMEOUT_S,
    executor: ToolExecutor | None = None,
) -> Server[object]:
    """Build the MCP server for a manifest and a memory; reads have a timeout."""
    handlers = McpHandlers(manifest, executor or ToolExecutor(loader), timeout_s)
    server: Server[object] = Server(
        NAME,
        title=TITLE,
        version=__version__,
        instructions=manifest.instructions,
        on_call_tool=handlers.call_tool,
        on_list_tools=handlers.lister("tools/list", types.ListToolsResult),
        on_list_resources=handlers.lister("resources/list", types.ListResourcesResult),
        on_list_resource_templates=handlers.lister(
            "resources/templates/list", types.ListResourceTemplatesResult
        ),
        on_list_prompts=handlers.lister("prompts/list", types.ListPromptsResult),
        on_read_resource=handlers.reader("resources/read", types.ReadResourceResult),
        on_get_prompt=handlers.reader("prompts/get", types.GetPromptResult),
        on_completion=handlers.reader("completion/complete", types.CompleteResult),
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


async def _run_in_thread(work: Callable[[], T], timeout_s: float) -> T:
    """Run a read on a worker thread; on timeout it is abandoned and ends by itself."""
    with anyio.fail_after(timeout_s):
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
