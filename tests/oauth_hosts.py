"""The official MCP client as a remote host that signs in with OAuth."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from deferred import Deferred

sdk = Deferred(
    "mcp.client.client", "mcp.client.streamable_http", "mcp.client.auth", "mcp.shared.auth"
)
REDIRECT = "http://127.0.0.1:7777/callback"


class Storage:
    """What a host keeps between two runs."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client_info: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client_info

    async def set_client_info(self, client_info: Any) -> None:
        self.client_info = client_info


class Host:
    """A host: its user agrees to what it asks for, by ``agree``, which returns the redirect."""

    def __init__(
        self,
        url: str,
        agree: Callable[[str], Awaitable[str]],
        *,
        transport: Any = None,
        **more: Any,
    ) -> None:
        self._transport = transport
        self.asked: list[dict[str, str]] = []
        self.storage = Storage()
        self._agree, self._url, self._more = agree, url, more
        self._came = ""

    async def _redirect(self, url: str) -> None:
        self.asked.append({name: one[0] for name, one in parse_qs(urlsplit(url).query).items()})
        self._came = await self._agree(url)

    async def _callback(self) -> Any:
        told = {name: one[0] for name, one in parse_qs(urlsplit(self._came).query).items()}
        return sdk.AuthorizationCodeResult(
            code=told.get("code", ""), state=told.get("state"), iss=told.get("iss")
        )

    async def run(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        """Connect, signing in where that is asked for, and do some work."""
        import httpx2

        auth = sdk.OAuthClientProvider(
            self._url,
            sdk.OAuthClientMetadata(client_name="A <b>test</b> host", redirect_uris=[REDIRECT]),
            self.storage,
            self._redirect,
            self._callback,
            **self._more,
        )
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(
                httpx2.AsyncClient(auth=auth, timeout=60, transport=self._transport)
            )
            transport = sdk.streamable_http_client(self._url, http_client=http)
            client = await stack.enter_async_context(sdk.Client(transport))
            return await work(client)


def fields_of(page: str) -> dict[str, str]:
    """The hidden fields of the consent page."""
    found = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page)
    return {unescape(name): unescape(value) for name, value in found}


async def consent(url: str, code: str, decision: str = "allow") -> str:
    """What a person does on the consent page; returns where the browser is sent."""
    async with httpx.AsyncClient() as browser:
        page = await browser.get(url)
        assert page.status_code == 200, page.text
        answer = await browser.post(
            url.partition("?")[0], data={**fields_of(page.text), "code": code, "decision": decision}
        )
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]
