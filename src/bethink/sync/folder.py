"""A folder as carrier: each machine adds files of its own, which it never changes.

`SPACE/DEVICE/device.json` says who a machine is, `state.json` up to where it has read, and
`NUMBER-HASH.ops` are operations: a line with the machine and its signature, then the lines of
JSON, compressed and perhaps encrypted. The hash is of the whole file, so that a torn one shows.
A machine signs with a key of its own; without the secret a carrier can read nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import zlib
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from bethink.core.atomic_write import atomic_replace, fsync_folder
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import MissingExtra, Refused
from bethink.ports import OpBatch, is_span

_SCRYPT_COST = 2**15
_SALT_BYTES = 16


def _load(name: str) -> Any:
    """Return a module of the library for keys."""
    from importlib import import_module  # start-up time: only a sync needs it

    try:
        return import_module(f"cryptography.{name}")
    except ImportError as error:
        raise MissingExtra("sync by a folder", extra="sync") from error


class Identity(NamedTuple):
    """A machine: its name, its id, which is a hash of its public key, and its private key."""

    id: str
    name: str
    private: str
    public: str

    @classmethod
    def make(cls, name: str) -> Identity:
        """Make the identity of a new machine."""
        made = _load("hazmat.primitives.asymmetric.ed25519").Ed25519PrivateKey.generate()
        public = b64encode(made.public_key().public_bytes_raw()).decode()
        return cls(device_id(public), name, b64encode(made.private_bytes_raw()).decode(), public)

    def sign(self, data: bytes) -> str:
        """Return the signature of some bytes."""
        kind = _load("hazmat.primitives.asymmetric.ed25519").Ed25519PrivateKey
        key = kind.from_private_bytes(b64decode(self.private))
        return b64encode(key.sign(data)).decode()


def device_id(public: str) -> str:
    """Return the id of the machine with a public key."""
    return hashlib.sha256(b64decode(public)).hexdigest()[:16]


def is_signed(public: str, signature: str, data: bytes) -> bool:
    """Whether the machine with this key has signed some bytes."""
    kind = _load("hazmat.primitives.asymmetric.ed25519").Ed25519PublicKey
    try:
        kind.from_public_bytes(b64decode(public)).verify(b64decode(signature), data)
    except (ValueError, _load("exceptions").InvalidSignature):
        return False
    return True


class Cipher(NamedTuple):
    """How the files of one machine are encrypted: Fernet, with a key from secret and salt."""

    secret: bytes
    salt: str

    def encrypt(self, data: bytes) -> bytes:
        """Return the bytes encrypted and authenticated."""
        return urlsafe_b64decode(self._fernet().encrypt(data))

    def decrypt(self, data: bytes) -> bytes:
        """Return the bytes that were encrypted; raise Refused where the secret is another one."""
        try:
            return bytes(self._fernet().decrypt(urlsafe_b64encode(data)))
        except _load("fernet").InvalidToken as error:
            raise Refused("the passphrase or key is not the one it was encrypted with") from error

    def _fernet(self) -> Any:
        return _load("fernet").Fernet(_derive(self.secret, self.salt))


@lru_cache(maxsize=64)  # it is slow on purpose
def _derive(secret: bytes, salt: str) -> bytes:
    scrypt = _load("hazmat.primitives.kdf.scrypt").Scrypt
    kdf = scrypt(salt=b64decode(salt), length=32, n=_SCRYPT_COST, r=8, p=1)
    return urlsafe_b64encode(kdf.derive(secret))


def make_salt() -> str:
    """Return a new salt."""
    return b64encode(os.urandom(_SALT_BYTES)).decode()


_SEGMENT = re.compile(r"(\d{8})-([0-9a-f]{32})\b.*\.ops")
_SPACE_NAME = re.compile(r"[\w.-]{1,128}")
_HEAD = "bethink-sync 1"
MAX_BYTES = 256 << 20  # of a file; nothing that we write comes near


class Segment(NamedTuple):
    """A file of operations: where it is, its hash, and of which machine's folder."""

    path: Path
    hash: str
    device: str

    @property
    def size(self) -> int:
        """How long the file is; 0 where it has gone."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


_SAID = ("id", "name", "key", "salt", "proof")  # of a machine, in its device.json


class Bad(Exception):
    """A file that cannot be taken, and why."""


class Folder:
    """The files of one space in a folder."""

    def __init__(self, root: Path, space: str, secret: bytes | None) -> None:
        """Use a folder that exists; ``secret`` encrypts what is written."""
        if not root.is_dir():
            if root.exists():
                raise Refused(f"{root} is no folder", remedy="name a folder of its own")
            raise Refused(f"there is no folder {root}", remedy=f"mkdir {root}")
        if not _SPACE_NAME.fullmatch(space):
            raise Refused(f"a space named {space!r} cannot be a folder")
        self.root, self._space, self.secret = root / space, space, secret

    def devices(self) -> Iterator[tuple[str, Json | str]]:
        """Yield each machine's folder with what it says of itself, or why it is not taken."""
        folders = self.root.iterdir() if self.root.is_dir() else ()
        for folder in sorted(folders):
            if not folder.is_dir() or folder.is_symlink() or folder.name.startswith("."):
                continue
            try:
                yield folder.name, self._device(folder)
            except (OSError, Bad) as error:
                yield folder.name, str(error) or type(error).__name__

    def own(self, me: Identity) -> Json | None:
        """Return what the folder says of this machine; None where it must be written."""
        try:
            return self._signed(self.root / me.id / "device.json", me.public)
        except (OSError, Bad):
            return None

    def _device(self, folder: Path) -> Json:
        said = self._signed(folder / "device.json", "")
        if not all(isinstance(said.get(name), str) for name in _SAID):
            raise Bad("device.json is torn")
        if said["id"] != folder.name or device_id(said["key"]) != said["id"]:
            raise Bad("device.json is not of this machine")
        if self.secret is None and said["salt"]:
            raise Refused(
                f"{said['name']} encrypts its files here; nothing was written",
                remedy="give the passphrase (BETHINK_SYNC_PASSPHRASE) or --key",
            )
        if self.secret is not None and not said["salt"]:
            raise Bad("it is not encrypted, and this machine would encrypt")
        said["proven"] = False
        if self.secret is not None:
            try:
                proof = Cipher(self.secret, said["salt"]).decrypt(bytes.fromhex(said["proof"]))
            except (Refused, ValueError) as error:
                raise Bad(str(error)) from error
            said["proven"] = proof == said["id"].encode()
        return said

    def introduce(self, me: Identity, salt: str) -> None:
        """Write who this machine is, unless the folder says so already."""
        folder = self.root / me.id
        folder.mkdir(parents=True, exist_ok=True)
        if self.own(me) is not None:
            return
        said = {"id": me.id, "name": me.name, "key": me.public, "salt": salt, "proof": ""}
        if self.secret is not None:
            said["proof"] = Cipher(self.secret, salt).encrypt(me.id.encode()).hex()
        self._write_signed(folder / "device.json", said, me)

    def state(self, device: Mapping[str, Any]) -> Json:
        """Return up to where a machine has read; empty where it does not say so yet."""
        try:
            return self._signed(self.root / device["id"] / "state.json", device["key"])
        except (OSError, Bad):
            return {}

    def tell_state(self, me: Identity, said: Json) -> None:
        """Say up to where this machine has read, if that has changed."""
        path = self.root / me.id / "state.json"
        try:
            known = self._signed(path, me.public)
        except (OSError, Bad):
            known = {}
        if {**known, "at": ""} != {**said, "at": ""}:
            self._write_signed(path, said, me)

    def _signed(self, path: Path, public: str) -> Json:
        """Return what a signed file says; ``public`` as it says itself where none is given."""
        try:
            text, signature = path.read_text("utf-8").splitlines()
            said = json.loads(text)
            key = public or str(said["key"])
            if isinstance(said, dict) and is_signed(key, signature, self._told(text.encode())):
                return said
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Bad(f"{path.name} is torn") from error
        raise Bad(f"{path.name} has a wrong signature")

    def _write_signed(self, path: Path, said: Json, me: Identity) -> None:
        text = json.dumps(said, sort_keys=True)
        signature = me.sign(self._told(text.encode()))
        atomic_replace(path, f"{text}\n{signature}\n".encode(), mode=0o644)

    def _told(self, data: bytes) -> bytes:
        """Return what is signed: a file of one space is none of another."""
        return f"{_HEAD} {self._space}\n".encode() + data

    def segments(self, device: str) -> list[Segment]:
        """Return the files of a machine, in the order in which they were written."""
        found = []
        for path in sorted((self.root / device).glob("*.ops")):
            match = _SEGMENT.fullmatch(path.name)
            if match and not path.is_symlink():
                found.append(Segment(path, match[2], device))
        return found

    def read(self, segment: Segment, device: Mapping[str, Any]) -> OpBatch:
        """Return the operations of a file; raise Bad where it is torn or forged."""
        if segment.path.stat().st_size > MAX_BYTES:
            raise Bad("it is too large")
        content = segment.path.read_bytes()
        if hashlib.sha256(content).hexdigest()[:32] != segment.hash:
            raise Bad("it is torn: its hash is another one")
        head, _, body = content.partition(b"\n")
        version, _, signature = head.decode("utf-8", "replace").rpartition(" ")
        if version != _HEAD:
            raise Bad("it is of a later version of Bethink, or none of its files")
        if not is_signed(device["key"], signature, self._told(body)):
            raise Bad(f"it is not signed by {device['name']}")
        return self._unpack(body, device)

    def _unpack(self, body: bytes, device: Mapping[str, Any]) -> OpBatch:
        try:
            if self.secret is not None:
                body = Cipher(self.secret, device["salt"]).decrypt(body)
            inflate = zlib.decompressobj()
            lines = inflate.decompress(body, MAX_BYTES).decode().split("\n")
            header = json.loads(lines[0])
            ranges = {str(name): (a, b) for name, (a, b) in header["ranges"].items()}
            if inflate.unconsumed_tail or header["count"] != len(lines) - 1:
                raise Bad("it is not whole")
        except (ValueError, KeyError, TypeError, zlib.error, Refused, RecursionError) as error:
            raise Bad(f"it cannot be read: {error}") from error
        if not all(is_span(name, span) for name, span in ranges.items()):
            raise Bad("it covers no series of operations")
        return OpBatch(ranges, lines[1:])

    def add(self, batch: OpBatch, me: Identity, salt: str) -> Segment:
        """Write operations as a new file of this machine."""
        header = {"ranges": batch.ranges, "count": len(batch.ops)}
        body = zlib.compress("\n".join([json.dumps(header), *batch.ops]).encode())
        if self.secret is not None:
            body = Cipher(self.secret, salt).encrypt(body)
        content = f"{_HEAD} {me.sign(self._told(body))}\n".encode() + body
        digest = hashlib.sha256(content).hexdigest()[:32]
        own = [int(one.path.name[:8]) for one in self.segments(me.id)]
        path = self.root / me.id / f"{max(own, default=0) + 1:08d}-{digest}.ops"
        atomic_replace(path, content, mode=0o644)
        fsync_folder(path.parent)
        if hashlib.sha256(path.read_bytes()).hexdigest()[:32] != digest:
            raise Refused(f"{path} was not written as it should be")
        return Segment(path, digest, me.id)

    def remove(self, segments: Sequence[Segment]) -> None:
        """Remove files, which others have taken the place of."""
        for segment in segments:
            segment.path.unlink(missing_ok=True)
