"""`bethink serve` for other machines: TLS, the public URL, and who signs in how."""

from __future__ import annotations

import subprocess
from pathlib import Path

import httpx
import pytest

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
    done = subprocess.run(
        [SCRIPT, "serve", "--port", "0", *words], cwd=tmp_path, env=room(tmp_path),
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 4
