"""A server as other machines meet it: with a certificate, at its public URL, in a process."""

from __future__ import annotations

import json
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

import warm
from server_process import PATIENT

SCRIPT = str(Path(sys.executable).with_name("bethink"))


def room(folder: Path) -> dict[str, str]:
    """An environment that knows nothing of this machine's own memories and tokens."""
    own = {"HOME": folder / "home", "BETHINK_DATA_DIR": folder / "data",
           "BETHINK_CONFIG_DIR": folder / "config"}  # fmt: skip
    told = {name: str(value) for name, value in own.items()}
    return {"PATH": os.environ["PATH"], "BETHINK_EMBEDDER": "none", **PATIENT, **told}


def run(folder: Path, *words: str) -> str:
    """What a command prints; it must succeed."""
    done = warm.run(
        [SCRIPT, *words], cwd=folder, env=room(folder), capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def make_certificate(folder: Path, *names: str) -> tuple[Path, Path]:
    """A certificate for these names, signed by itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.now(UTC)
    known = [
        x509.IPAddress(ip_address(name)) if name[0].isdigit() else x509.DNSName(name)
        for name in names
    ]
    cert = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(known), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(cert.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return cert_file, key_file


def trusting(cert: Path) -> ssl.SSLContext:
    """A client that trusts this certificate alone."""
    return ssl.create_default_context(cafile=str(cert))


@contextmanager
def serving(folder: Path, port: int, *words: str, cert: Path | None = None) -> Iterator[str]:
    """The URL of a server that answers, and is gone afterwards."""
    process = warm.popen(
        [SCRIPT, "serve", "--port", str(port), "--json", *words], cwd=folder, env=room(folder),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with process:
        try:
            assert process.stdout is not None
            url = str(json.loads(process.stdout.readline())["url"])
            at = f"{'https' if cert else 'http'}://127.0.0.1:{port}"
            give_up = time.monotonic() + 60
            with httpx.Client(verify=trusting(cert) if cert else True) as client:
                while not _is_ready(client, f"{at}/ready"):
                    if time.monotonic() > give_up:
                        pytest.fail("the server was not ready in time")
                    time.sleep(0.05)
            yield url
        finally:
            process.kill()


def _is_ready(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(url, timeout=5).status_code == 200
    except httpx.TransportError:
        return False  # it does not listen yet
