"""Whether a string is a secret rather than a word, a placeholder, a hash or a piece of code."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

_PLACEHOLDER = re.compile(
    r"your|example|change[_-]?me|placeholder|dummy|sample|xxxx|todo|redacted|insert|replace"
    r"|\$\{|\{\{|\$\(|%\(|process\.env|environ|getenv|env\[|secrets?\.|vault[:/]|\*\*\*|\.\.\.|…"
    r"|^<.*>$|^\$[A-Z_][A-Z0-9_]*$|^%\w+%$"
    r"|^(?:none|null|true|false|undefined|passw(?:or)?d|pass|pw|secret|token|api_?key|string|str"
    r"|test(?:ing)?|admin|root|guest|user(?:name)?|foo|bar|required|optional|secretstr|hidden)$",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r"example|xxxxx|your|placeholder|\.\.\.|00000000", re.IGNORECASE)
_CODE = re.compile(r"[A-Za-z_][\w.]*[\[(]|[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+$")
_PATH = re.compile(r"(?:~|\.{1,2})?/|[A-Za-z]:\\|\w+://")
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]+")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NUMBER = re.compile(r"[\d.,:%/-]+")
_NUMBERED_NAME = re.compile(r"(?:[A-Za-z]+|v?\d+)(?:[-_.](?:[A-Za-z]+|v?\d+))+|[A-Z]?[a-z]+\d{1,2}")
_SPLIT = re.compile(r"[-_/.+]+")
_ALGORITHMS = frozenset(
    {"sha1", "sha256", "sha384", "sha512", "sha", "md5", "hmac", "aes", "aes128", "aes256", "rsa"}
    | {"rs256", "hs256", "hs512", "es256", "ed25519", "base64", "oauth2", "jwt", "uuid", "uuid4"}
    | {"utf", "bcrypt", "argon2", "argon2id", "scrypt", "pbkdf2", "gcm", "tls", "x509", "pkcs12"}
)


def entropy(value: str) -> float:
    """Bits a character, by the characters of the value itself."""
    total = len(value)
    counts = Counter(value).values()
    return -sum(count / total * math.log2(count / total) for count in counts)


def is_example(value: str) -> bool:
    """Whether a well-formed token only stands in for one, as documentation writes it."""
    return _EXAMPLE.search(value) is not None or len(set(value)) < 6


def is_real_token(value: str) -> bool:
    """For tokens whose prefix already says what they are."""
    return not is_example(value)


def is_random(value: str) -> bool:
    """Whether a word looks drawn by a machine: kinds of characters change all the time."""
    if len(value) < 8 or _HEX.fullmatch(value) or _UUID.fullmatch(value) or _is_plain(value):
        return False
    if not any(char.isdigit() for char in value):
        return len(value) >= 20 and _changes(value) >= 0.3 and entropy(value) >= 3.5
    letters = any(char.isalpha() for char in value)
    return letters and _changes(value) >= 0.3 and entropy(value) >= 2.5


def is_random_or_hex(value: str) -> bool:
    """The same, where the words before say so clearly that a hex string counts too."""
    return is_random(value) or (
        len(value) >= 32 and _HEX.fullmatch(value) is not None and not is_example(value)
    )


def is_password(value: str) -> bool:
    """For what is assigned to a password: anything but a word, a placeholder or code."""
    if len(value) < 6 or _is_plain(value):
        return False
    if value.isdigit():
        return len(value) >= 8 and len(set(value)) > 2
    if " " in value:
        words = value.split()
        return len(words) <= 4 and any(len(word) > 4 and _kinds(word) > 2 for word in words)
    mixed = sum((_has(value, str.isdigit), _has(value, str.isalpha), not value.isalnum())) >= 2
    if mixed and "-" not in value and "_" not in value:
        return True
    return is_secret(value)


def is_told_password(value: str) -> bool:
    """For what a sentence says a password is: digits among letters, and no name with a number
    (postgres-16, Bitwarden2)."""
    mixed = _has(value, str.isdigit) and _has(value, str.isalpha)
    return mixed and is_password(value) and _NUMBERED_NAME.fullmatch(value) is None


def is_secret(value: str) -> bool:
    """For what is assigned to a token, key or secret: something drawn by a machine."""
    if len(value) < 8 or _is_plain(value):
        return False
    if " " in value:
        return any(is_random(part) for part in value.split())
    if _UUID.fullmatch(value) or _HEX.fullmatch(value):
        return len(value) >= 16 and not value.isdigit() and entropy(value) >= 2.5
    if not _has(value, str.isdigit):
        return len(value) >= 16 and _changes(value) >= 0.3 and entropy(value) >= 3.3
    return _changes(value) >= 0.2 or (len(value) >= 20 and entropy(value) >= 3.3)


def is_url_password(value: str) -> bool:
    """For what stands before the @ of an address."""
    return len(value) >= 3 and not _PLACEHOLDER.search(value)


def is_basic_credentials(value: str) -> bool:
    """Whether base64 text decodes to ``user:password``."""
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in decoded[1:] and decoded.isascii()


def is_key_block(value: str) -> bool:
    """Whether a private key block holds a key, not just its first and last line."""
    return re.search(r"[A-Za-z0-9+/]{24}", value) is not None


def _is_plain(value: str) -> bool:
    """A placeholder, code, a path, a number, the name of an algorithm."""
    if _PLACEHOLDER.search(value) or (_NUMBER.fullmatch(value) and not value.isdigit()):
        return True
    if _PATH.match(value) and not any(_is_drawn(part) for part in value.split("/")):
        return True
    if _CODE.match(value) and _changes(value) < 0.3:
        return True
    return len(value) < 24 and not _ALGORITHMS.isdisjoint(_SPLIT.split(value.lower()))


def _is_drawn(part: str) -> bool:
    return len(part) >= 10 and _changes(part) >= 0.3


def _has(value: str, is_kind: Callable[[str], bool]) -> bool:
    return any(map(is_kind, value))


def _kinds(value: str) -> int:
    tests = (str.islower, str.isupper, str.isdigit, lambda char: not char.isalnum())
    return sum(_has(value, is_kind) for is_kind in tests)


def _changes(value: str) -> float:
    """The share of neighbours that are of different kinds: small, capital, digit, sign."""
    kinds = [
        "a" if c.islower() else "A" if c.isupper() else "0" if c.isdigit() else c for c in value
    ]
    changed = sum(one != other for one, other in pairwise(kinds))
    return changed / max(1, len(value) - 1)
