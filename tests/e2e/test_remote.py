"""`bethink serve` for other machines: TLS, the public URL, and who signs in how."""

from __future__ import annotations

import json
import os
import select
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import warm
from inspector_page import new_context, running_browser
from nodes import SCRIPTS, node, packages
from oauth_hosts import REDIRECT, Host, consent
from remote_host import SCRIPT, free_port, make_certificate, room, run, serving, trusting
from rows import each_row

# Each starts a process that imports the protocol library and a web server.
pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


def test_a_certificate_makes_it_https(tmp_path: Path) -> None:
    """For REST, MCP and streams; who speaks plain HTTP learns nothing."""
    cert, key = make_certificate(tmp_path, "127.0.0.1", "memory.example.org")
    token = {"Authorization": f"Bearer {run(tmp_path, 'token', 'create', 'a', '--scope', 'write')}"}
    port = free_port()
    words = ("--tls-cert", str(cert), "--tls-key", str(key))
    with serving(tmp_path, port, *words, cert=cert) as url:
        assert url == f"https://127.0.0.1:{port}"
        with httpx.Client(verify=trusting(cert), base_url=url, headers=token) as client:
            stored = client.post("/v1/memories", json={"text": "Releases are cut on Tuesdays"})
            assert stored.status_code == 200
            with client.stream("GET", "/v1/events/stream") as stream:
                assert next(stream.iter_lines()).startswith("id: ")
        with ExitStack() as held:
            silent = [held.enter_context(socket.create_connection(("127.0.0.1", port)))
                      for _ in range(600)]  # fmt: skip
            # More than are kept: some make way although no handshake has begun.
            assert httpx.get(f"{url}/health", verify=trusting(cert), timeout=60).status_code == 200
            assert select.select(silent, [], [], 0)[0]
        with pytest.raises(httpx.ConnectError, match="self-signed"):
            httpx.get(url)
        with pytest.raises(httpx.TransportError):
            httpx.get(f"http://127.0.0.1:{port}/health")


def test_at_a_public_url_everybody_needs_a_token(tmp_path: Path) -> None:
    """Also who looks local: a proxy on this machine may hide that it is one."""
    token = {"Authorization": f"Bearer {run(tmp_path, 'token', 'create', 'a', '--scope', 'read')}"}
    port = free_port()
    with serving(tmp_path, port, "--public-url", "https://memory.example.org/") as url:
        assert url == "https://memory.example.org"
        here = f"http://127.0.0.1:{port}/v1/stats"
        assert httpx.get(here).status_code == 401
        for host in ("memory.example.org", f"127.0.0.1:{port}"):
            assert httpx.get(here, headers=token | {"Host": host}).status_code == 200
        assert httpx.get(here, headers=token | {"Host": "other.example.org"}).status_code == 421


@each_row(
    "words",
    {
        "a file that is not there": ["--tls-cert", "none.pem", "--tls-key", "none.pem"],
        "no key": ["--tls-cert", "cert.pem"],
        "the key of another": ["--tls-cert", "cert.pem", "--tls-key", "other.pem"],
        "no PEM": ["--tls-cert", "text.pem", "--tls-key", "text.pem"],
        "plain http": ["--public-url", "http://memory.example.org"],
        "a path": ["--public-url", "https://memory.example.org/memory"],
        "no token yet": ["--public-url", "https://memory.example.org"],
    }.values(),
)
def test_what_cannot_be_served_is_told(tmp_path: Path, words: list[str]) -> None:
    """In a sentence with a remedy, before anything listens."""
    make_certificate(tmp_path, "other.example.org")
    (tmp_path / "key.pem").rename(tmp_path / "other.pem")
    make_certificate(tmp_path, "127.0.0.1")
    (tmp_path / "text.pem").write_text("hello")
    done = warm.run(
        [SCRIPT, "serve", "--port", "0", *words], cwd=tmp_path, env=room(tmp_path),
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 4


def text_of(answer: Any) -> str:
    return " ".join(getattr(part, "text", "") for part in answer.content)


def test_the_official_client_connects_by_consent(tmp_path: Path) -> None:
    """Registers, asks, reads and writes, asks for more when it needs more, and is shut out."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    scopes = ["write", "admin"]

    async def agree(asked: str) -> str:
        return await consent(asked, run(tmp_path, "token", "sign-in", "--scope", scopes.pop(0)))

    async def work(client: Any) -> None:
        stored = await client.call_tool("remember", {"text": "Releases are cut on Tuesdays"})
        item = stored.structured_content["id"]
        found = await client.call_tool("recall", {"query": "when are releases cut?"})
        assert "Tuesdays" in text_of(found)
        gone = await client.call_tool("forget", {"ids": [item], "erase": True})
        assert "Tuesdays" in text_of(gone)

    async def conversation() -> None:
        host = Host(f"{url}/mcp", agree)
        await host.run(work)
        tokens.append(host.storage.tokens.access_token)
        assert [one["scope"] for one in host.asked] == [
            "memory:read memory:write",
            "memory:read memory:write memory:admin",
        ]
        assert {one["resource"] for one in host.asked} == {f"{url}/mcp"}

    tokens: list[str] = []
    with serving(tmp_path, port, "--public-url", url, "--oauth-register"):
        anyio.run(conversation)
        header = {"Authorization": f"Bearer {tokens[0]}"}
        assert httpx.get(f"{url}/v1/stats", headers=header).status_code == 200
        names = [line.split()[0] for line in run(tmp_path, "token", "list").splitlines()[1:]]
        assert len(names) == 2
        for name in names:
            run(tmp_path, "token", "revoke", name)
        assert httpx.get(f"{url}/v1/stats", headers=header).status_code == 401


@contextmanager
def provider(folder: Path, **told: Any) -> Iterator[str]:
    """The issuer of a certified provider in a process of its own."""
    script = folder / f"{os.getpid()}-oidc-provider.mjs"
    shutil.copyfile(SCRIPTS / "oidc-provider.mjs", script)  # it finds the packages beside itself
    process = subprocess.Popen(
        [node(), script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(told))
            process.stdin.close()
            yield str(json.loads(process.stdout.readline())["issuer"])
        finally:
            process.kill()
            script.unlink()


async def agree_at_provider(url: str) -> str:
    """Follows the provider's redirects to the host's own address, as a browser would."""
    async with httpx.AsyncClient() as browser:
        for _ in range(20):
            answer = await browser.get(url)
            url = str(answer.url.join(answer.headers["location"]))
            if url.startswith(REDIRECT):
                return url
    pytest.fail("the provider did not come to an end")


@pytest.mark.parametrize("right", ["read", "write"])
def test_a_certified_provider_signs_people_in(
    tmp_path: Path, request: pytest.FixtureRequest, right: str
) -> None:
    """By its keys; what a person may do is what the table says, whatever the token allows."""
    npm, port, other = packages(request.config), free_port(), free_port()
    url = f"http://127.0.0.1:{port}"
    resource = f"{url}/mcp"
    with provider(npm, port=other, resource=resource, audience=resource) as issuer:
        (tmp_path / "config").mkdir()
        (tmp_path / "config" / "oauth.toml").write_text(
            f'[[issuer]]\nurl = "{issuer}"\njwks = "{issuer}/jwks"\n'
            f'[[grant]]\nissuer = "{issuer}"\nvalue = "anna-7f3a"\nscope = "{right}"\n'
            'spaces = ["*"]\nname = "anna"\n'
        )

        async def work(client: Any) -> list[str]:
            if right == "write":
                await client.call_tool("remember", {"text": "Releases are cut on Tuesdays"})
            return [tool.name for tool in (await client.list_tools()).tools]

        with serving(tmp_path, port, "--public-url", url):
            host = Host(resource, agree_at_provider)
            tools = anyio.run(host.run, work)
            header = {"Authorization": f"Bearer {host.storage.tokens.access_token}"}
            told = httpx.get(f"{url}/v1/session", headers=header).json()
    assert (told["name"], told["scope"]) == ("anna", right)
    assert "recall" in tools
    assert ("remember" in tools) == (right == "write")


def test_a_token_for_another_server_is_refused(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Though the provider is the right one and the person is known."""
    npm, port, other = packages(request.config), free_port(), free_port()
    url = f"http://127.0.0.1:{port}"
    elsewhere = "https://other.example.org/mcp"
    with provider(npm, port=other, resource=f"{url}/mcp", audience=elsewhere) as issuer:
        (tmp_path / "config").mkdir()
        (tmp_path / "config" / "oauth.toml").write_text(
            f'[[issuer]]\nurl = "{issuer}"\njwks = "{issuer}/jwks"\n'
            f'[[grant]]\nissuer = "{issuer}"\nvalue = "anna-7f3a"\nscope = "admin"\n'
            'spaces = ["*"]\nname = "anna"\n'
        )

        async def work(client: Any) -> None:
            await client.list_tools()

        with serving(tmp_path, port, "--public-url", url):
            host = Host(f"{url}/mcp", agree_at_provider)
            with pytest.raises(ExceptionGroup):
                anyio.run(host.run, work)
            header = {"Authorization": f"Bearer {host.storage.tokens.access_token}"}
            assert httpx.get(f"{url}/v1/stats", headers=header).status_code == 401


HOST_PAGE = b"""<!doctype html><title>Host</title><p id=came></p><script>
addEventListener("message", event => { document.getElementById("came").textContent = event.data })
if (location.pathname === "/callback") opener.postMessage(location.search, "*")
</script>"""


@contextmanager
def hosting() -> Iterator[str]:
    """The site of a host, whose callback tells the page that opened it what came."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(HOST_PAGE)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_person_allows_a_host_in_a_real_browser(tmp_path: Path) -> None:
    """In a window that the host opened: its page hears the answer, and cannot frame ours."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    words = ("--public-url", url, "--oauth-register")
    with serving(tmp_path, port, *words), hosting() as host, running_browser() as browser:
        client = httpx.post(
            f"{url}/register",
            json={"client_name": "Notes of Mara", "redirect_uris": [f"{host}/callback"]},
        ).json()["client_id"]
        asked = {"client_id": client, "redirect_uri": f"{host}/callback", "response_type": "code",
                 "code_challenge": "c" * 43, "code_challenge_method": "S256", "state": "s"}  # fmt: skip
        link = str(httpx.URL(f"{url}/authorize", params=asked))
        with new_context(browser) as context:
            page = context.new_page()
            page.goto(host)
            with page.expect_popup() as opened:
                page.evaluate("link => { window.open(link) }", link)
            popup = opened.value
            popup.get_by_label("To allow it").fill("a guess")
            popup.get_by_role("button", name="Allow").click()
            expect(popup.get_by_role("alert")).to_have_text("That code was used, or is too old.")
            assert not Axe().run(popup).response["violations"]
            expect(popup.locator("body")).to_contain_text("Notes of Mara")
            expect(popup.locator("body")).to_contain_text("a program on the computer")
            popup.get_by_label("To allow it").fill(run(tmp_path, "token", "sign-in"))
            popup.get_by_role("button", name="Allow").click()
            expect(page.locator("#came")).to_contain_text("?code=")
            expect(page.locator("#came")).to_contain_text(f"iss={quote(url, safe='')}")
            with page.expect_popup() as opened:
                page.evaluate("link => { window.open(link) }", link)
            opened.value.get_by_role("button", name="Deny").click()
            expect(page.locator("#came")).to_contain_text("?error=access_denied&state=s")
            page.set_content(f'<iframe src="{link}"></iframe>')
            frame = page.locator("iframe").content_frame
            expect(frame.get_by_role("button", name="Allow")).to_have_count(0)
            assert "Notes of Mara" not in frame.locator("html").inner_text()
