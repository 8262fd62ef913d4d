"""The key by which a machine signs, and the secret with which a carrier can read nothing."""

from __future__ import annotations

import hashlib
import os
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from functools import lru_cache
from typing import Any

from bethink.core.named_tuple import NamedTuple
from bethink.errors import MissingExtra, Refused

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
