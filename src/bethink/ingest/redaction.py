"""Detect and redact secrets in memories, and report their kinds.

Every pattern runs in RE2, in time linear in the text, and only on texts that hold one of
its keywords: the keywords are searched first, because hardly any memory holds one.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from bethink.model import Draft
from bethink.model.fields import GIVEN_FIELDS, field_names

_PLACEHOLDER = re.compile(
    r"your|example|change[_-]?me|placeholder|dummy|sample|xxxx|todo|redacted|insert|replace"
    r"|\$\{|\{\{|\$\(|%\(|process\.env|environ|getenv|env\[|secrets?\.|vault[:/]|\*\*\*|\.\.\.|…"
    r"|^<.*>$|^\$[A-Z_][A-Z0-9_]*$|^%\w+%$"
    r"|^(?:none|null|true|false|undefined|passw(?:or)?d|pass|pw|secret|token|api_?key|string|str"
    r"|test(?:ing)?|admin|root|guest|user(?:name)?|foo|bar|required|optional|secretstr|hidden)$",
    re.IGNORECASE,
)
_EXAMPLE_MARKER = re.compile(r"example|xxxxx|your|placeholder|\.\.\.|00000000", re.IGNORECASE)
_CODE_EXPRESSION = re.compile(r"[A-Za-z_][\w.]*[\[(]|[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+$")
_PATH_PREFIX = re.compile(r"(?:~|\.{1,2})?/|[A-Za-z]:\\|\w+://")
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
    """Return the Shannon entropy in bits per character."""
    total = len(value)
    counts = Counter(value).values()
    return -sum(count / total * math.log2(count / total) for count in counts)


def is_example(value: str) -> bool:
    """Check whether a well-formed token is only a documentation placeholder."""
    return _EXAMPLE_MARKER.search(value) is not None or len(set(value)) < 6


def is_real_token(value: str) -> bool:
    """Check a token that its prefix already identifies: not a placeholder."""
    return not is_example(value)


def is_random(value: str) -> bool:
    """Check whether a word looks machine-generated: character kinds alternate often."""
    if len(value) < 8 or _HEX.fullmatch(value) or _UUID.fullmatch(value) or _is_not_secret(value):
        return False
    if not any(char.isdigit() for char in value):
        return len(value) >= 20 and _kind_change_rate(value) >= 0.3 and entropy(value) >= 3.5
    letters = any(char.isalpha() for char in value)
    return letters and _kind_change_rate(value) >= 0.3 and entropy(value) >= 2.5


def is_random_or_hex(value: str) -> bool:
    """Like ``is_random``, but also accept hex strings, where the context is explicit."""
    return is_random(value) or (
        len(value) >= 32 and _HEX.fullmatch(value) is not None and not is_example(value)
    )


def is_password(value: str) -> bool:
    """Check a value assigned to a password: not a word, a placeholder or code."""
    if len(value) < 6 or _is_not_secret(value):
        return False
    if value.isdigit():
        return len(value) >= 8 and len(set(value)) > 2
    if " " in value:
        words = value.split()
        return len(words) <= 4 and any(
            len(word) > 4 and _count_character_kinds(word) > 2 for word in words
        )
    mixed = (
        sum((_has_kind(value, str.isdigit), _has_kind(value, str.isalpha), not value.isalnum()))
        >= 2
    )
    if mixed and "-" not in value and "_" not in value:
        return True
    return is_secret(value)


def is_stated_password(value: str) -> bool:
    """Check a password stated in a sentence: letters and digits, not a numbered name.

    Numbered names are, for example, postgres-16 and Bitwarden2.
    """
    mixed = _has_kind(value, str.isdigit) and _has_kind(value, str.isalpha)
    return mixed and is_password(value) and _NUMBERED_NAME.fullmatch(value) is None


def is_secret(value: str) -> bool:
    """Check a value assigned to a token, key or secret: machine-generated."""
    if len(value) < 8 or _is_not_secret(value):
        return False
    if " " in value:
        return any(is_random(part) for part in value.split())
    if _UUID.fullmatch(value) or _HEX.fullmatch(value):
        return len(value) >= 16 and not value.isdigit() and entropy(value) >= 2.5
    if not _has_kind(value, str.isdigit):
        return len(value) >= 16 and _kind_change_rate(value) >= 0.3 and entropy(value) >= 3.3
    return _kind_change_rate(value) >= 0.2 or (len(value) >= 20 and entropy(value) >= 3.3)


def is_url_password(value: str) -> bool:
    """Check the password part before the @ of a URL."""
    return len(value) >= 3 and not _PLACEHOLDER.search(value)


def is_basic_credentials(value: str) -> bool:
    """Check whether base64 text decodes to ``user:password``."""
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in decoded[1:] and decoded.isascii()


def is_key_block(value: str) -> bool:
    """Check whether a private key block holds a key, not just its first and last line."""
    return re.search(r"[A-Za-z0-9+/]{24}", value) is not None


def _is_not_secret(value: str) -> bool:
    """Check for a placeholder, code, a path, a number or the name of an algorithm."""
    if _PLACEHOLDER.search(value) or (_NUMBER.fullmatch(value) and not value.isdigit()):
        return True
    if _PATH_PREFIX.match(value) and not any(_is_random_segment(part) for part in value.split("/")):
        return True
    if _CODE_EXPRESSION.match(value) and _kind_change_rate(value) < 0.3:
        return True
    return len(value) < 24 and not _ALGORITHMS.isdisjoint(_SPLIT.split(value.lower()))


def _is_random_segment(part: str) -> bool:
    return len(part) >= 10 and _kind_change_rate(part) >= 0.3


def _has_kind(value: str, is_kind: Callable[[str], bool]) -> bool:
    return any(map(is_kind, value))


def _count_character_kinds(value: str) -> int:
    tests = (str.islower, str.isupper, str.isdigit, lambda char: not char.isalnum())
    return sum(_has_kind(value, is_kind) for is_kind in tests)


def _kind_change_rate(value: str) -> float:
    """Return the share of adjacent characters of different kinds.

    Kinds are lower case, upper case, digit and other.
    """
    kinds = [
        "a" if c.islower() else "A" if c.isupper() else "0" if c.isdigit() else c for c in value
    ]
    changed = sum(one != other for one, other in pairwise(kinds))
    return changed / max(1, len(value) - 1)


class SecretKind(NamedTuple):
    """A secret's pattern, the keywords it requires and a check of each match.

    The last group that took part in the match is the secret; without groups it is the whole
    match. Lower-case keywords are searched in any case.
    """

    name: str
    words: tuple[str, ...]
    pattern: str
    check: Callable[[str], bool] = is_real_token


_LOGIN_WORDS = r"(?:password|passwd|passphrase|passcode|passwort|pwd)"
# "The password manager is ..." states no password.
_PURPOSE_PHRASE = (
    r"(?:(?:\s?[(,]|\s(?:for|of|to|on|at|in|from|we|i|you|they|that|which|now|there|here|again|currently"
    r"|für|von|vom|zu|zum|zur|auf|am|an|im|bei|beim|der|des|jetzt)\b)[^\n.:=]{0,40}?)?"
)
_CHANGE_WORDS = r"(?:\s(?:is|was|has|had|been|got|now|changed|reset|set|rotated|updated)){0,4}?"
_KEY_WORDS = (
    r"(?:secret|token|api[_\-. ]?key|credentials?|connection[_\-]?string|(?:access|account|auth"
    r"|client|encryption|license|private|service|session|shared|signing|storage|webhook)[_\-. ]?key"
    r"|(?:bot|refresh|id|access|auth)[_\-. ]?token)"
)
_NAME_SUFFIX = (
    r"(?:[_\-.]?(?:value|key|base|string|prod(?:uction)?|dev|staging|test|live|primary|secondary"
    r"|main|default|[0-9]{1,3})){0,2}"
)
_ASSIGNMENT = r"\\?[\"'\x60]?\]?[ \t]{0,4}(?::=|=>|->|={1,2}|:)[ \t]{0,4}[brfu]?"
_VALUE = (
    r"(?:\\?\"([^\"\n\\]{6,})|'([^'\n]{6,})|\x60([^\x60\n]{6,})"
    r"|([^\s\"'\x60]{6,}))"
)
_PREFIXED_TOKENS: tuple[tuple[str, str, str], ...] = (
    ("anthropic-key", "sk-ant-", r"sk-ant-[A-Za-z0-9_\-]{20,}"),
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,}"),
    ("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,}"),
    (
        "gitlab-token",
        "glpat- gldt- glrt- glcbt- glptt- glsoat- glagent-",
        r"gl(?:pat|dt|rt|cbt|ptt|soat|agent)-[A-Za-z0-9_\-.]{20,}",
    ),
    ("slack-token", "xox", r"xox[abeoprs]-[A-Za-z0-9\-]{10,}"),
    ("slack-token", "xapp-", r"xapp-[0-9]-[A-Za-z0-9]{8,}-[0-9]{8,}-[A-Za-z0-9]{30,}"),
    ("slack-webhook", "hooks.slack.com", r"hooks\.slack\.com/[a-z]{5,20}/[A-Za-z0-9+/]{30,}"),
    ("google-key", "AIza", r"AIza[A-Za-z0-9_\-]{35}"),
    ("google-key", "GOCSPX-", r"GOCSPX-[A-Za-z0-9_\-]{28}"),
    ("google-key", "ya29.", r"ya29\.[A-Za-z0-9_\-]{20,}"),
    ("stripe-key", "k_live_ k_test_ k_prod_", r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{16,}"),
    ("stripe-key", "whsec_", r"whsec_[A-Za-z0-9+/=]{24,}"),
    ("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    ("pypi-token", "pypi-", r"pypi-[A-Za-z0-9_\-]{50,}"),
    ("jwt", "eyj", r"eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}"),
    ("sendgrid-key", "SG.", r"SG\.[A-Za-z0-9_\-]{16,32}\.[A-Za-z0-9_\-]{16,64}"),
    ("huggingface-token", "hf_", r"\bhf_[A-Za-z0-9]{30,50}"),
    ("aws-access-key", "AKIA ASIA ABIA ACCA", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    ("twilio-key", "SK", r"\bSK[0-9a-f]{32}\b"),
    ("telegram-token", ":A", r"\b[0-9]{8,10}:A[A-Za-z0-9_\-]{34}"),
    ("discord-webhook", "/api/webhooks/", r"/api/webhooks/[0-9]{17,20}/[A-Za-z0-9_\-]{60,}"),
    ("digitalocean-token", "_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    ("databricks-token", "dapi", r"\bdapi[a-f0-9]{32}(?:-[0-9])?\b"),
    ("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    ("notion-token", "ntn_", r"\bntn_[A-Za-z0-9]{40,60}"),
    ("linear-key", "lin_api_", r"lin_api_[A-Za-z0-9]{32,48}"),
    ("groq-key", "gsk_", r"\bgsk_[A-Za-z0-9]{40,60}"),
    ("replicate-token", "r8_", r"\br8_[A-Za-z0-9]{37}\b"),
    ("vault-token", "hvs.", r"\bhvs\.[A-Za-z0-9_\-]{24,}"),
    ("docker-token", "dckr_pat_", r"dckr_pat_[A-Za-z0-9_\-]{27}"),
    ("grafana-token", "glsa_", r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
    ("age-key", "age-secret-key-", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    ("azure-key", "8q~", r"[A-Za-z0-9_~.\-]{3}8Q~[A-Za-z0-9_~.\-]{31,34}"),
)
# A span belongs to the first kind that matches it.
SECRET_KINDS: tuple[SecretKind, ...] = (
    SecretKind("private", ("<private>",), r"(?is)<private>.*?</private>", lambda _: True),
    SecretKind(
        "private-key",
        ("private key",),
        r"(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----.*?"
        r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----",
        is_key_block,
    ),
    SecretKind(
        "private-key",
        ("private key",),
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----[A-Za-z0-9+/=\s\\]{40,}",
        is_key_block,
    ),
    *(SecretKind(name, tuple(words.split()), pattern) for name, words, pattern in _PREFIXED_TOKENS),
    SecretKind(
        "openai-key",
        ("sk-",),
        r"\bsk-(?:(?:proj|svcacct|admin|or-v1)-)?[A-Za-z0-9_\-]{20,}",
        lambda value: (
            is_real_token(value)
            and any(char.isdigit() for char in value[3:])
            and max(map(len, value.split("-"))) >= 16
        ),
    ),
    SecretKind(
        "discord-token",
        ("discord", "bot", "token"),
        r"\b[MNO][A-Za-z0-9_\-]{23,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,40}",
        is_random,
    ),
    SecretKind(
        "aws-secret-key",
        ("aws", "secret access key", "secretaccesskey", "secret_access_key"),
        r"(?i)(?:aws|secret[_ ]?access[_ ]?key)[^\n]{0,60}?[\s\"'\x60:=]([a-z0-9/+]{40})"
        r"(?:[^a-z0-9/+=]|\z)",
        is_random,
    ),
    SecretKind(
        "azure-key",
        ("accountkey=", "sharedaccesskey="),
        r"(?i)(?:account|sharedaccess)key=([a-z0-9+/]{40,90}={1,2})",
    ),
    SecretKind("azure-key", ("sig=",), r"[?&]sig=([A-Za-z0-9%+/]{40,80}(?:%3[dD]|=))"),
    SecretKind("twilio-key", ("twilio",), r"(?i)twilio[^\n]{0,60}?\b([0-9a-f]{32})\b"),
    SecretKind(
        "authorization",
        ("bearer",),
        r"(?i)\bbearer[\s:=\"']{1,4}([a-z0-9_\-.~+/]{16,}=*)",
        is_random_or_hex,
    ),
    SecretKind(
        "authorization",
        ("authorization", "basic "),
        r"(?i)\bbasic\s{1,3}([a-z0-9+/]{8,}={0,2})",
        is_basic_credentials,
    ),
    SecretKind(
        "authorization",
        ("authorization",),
        r"(?i)authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:token|apikey|digest|[a-z0-9]+-key)\s+"
        r"([a-z0-9_\-.~+/]{16,}=*)",
        is_random_or_hex,
    ),
    SecretKind(
        "url-credentials",
        ("://",),
        r"\b[A-Za-z][A-Za-z0-9+.\-]{1,30}://[^\s:/?#@\"'<>\x60]{0,}:([^\s/\"'<>\x60]{3,})@"
        r"[A-Za-z0-9\[_.\-]",
        is_url_password,
    ),
    SecretKind(
        "url-credentials",
        ("://",),
        r"\b[a-z][a-z0-9+.\-]{1,30}://([A-Za-z0-9_\-]{20,})@[A-Za-z0-9]",
        is_random_or_hex,
    ),
    SecretKind(
        "password",
        ("curl",),
        r"\bcurl\b[^\n]{0,}?\s(?:-u|--user)[ =]{0,2}[\"']?[^\s:\"']{1,}:([^\s\"']{3,})",
        is_url_password,
    ),
    SecretKind(
        "password",
        ("passw", "passphrase", "passcode", "pwd"),
        r"(?i)" + _LOGIN_WORDS + _NAME_SUFFIX + _ASSIGNMENT + _VALUE,
        is_password,
    ),
    SecretKind(
        "secret",
        ("secret", "token", "key", "credential", "connection"),
        r"(?i)" + _KEY_WORDS + _NAME_SUFFIX + _ASSIGNMENT + _VALUE,
        is_secret,
    ),
    SecretKind(
        "password",
        ("passw", "passphrase", "passcode", "pwd"),
        r"(?i)\b" + _LOGIN_WORDS + _PURPOSE_PHRASE + _CHANGE_WORDS + r"\s(?:is|was|to)[:\s]{1,3}"
        r"(?:now[:\s]{1,3})?[\"'\x60]?([^\s\"'\x60]{8,})",
        is_random,
    ),
    SecretKind(
        "password",
        ("passw", "passphrase", "passcode", "pwd"),
        r"(?i)\b" + _LOGIN_WORDS + _PURPOSE_PHRASE + r"\s(?:is|ist)[:\s]{1,3}"
        r"(?:(?:now|jetzt)[:\s]{1,3})?[\"'\x60]?([^\s\"'\x60]{6,})",
        is_stated_password,
    ),
    SecretKind(
        "secret",
        ("secret", "token", "key", "credential"),
        r"(?i)\b" + _KEY_WORDS + r"\b(?:[^\n.:=]{0,40}?\s(?:is|was|to))?[\s:=(,\"'\x60]{1,4}"
        r"([a-z0-9_\-+/=.~]{16,})",
        is_random,
    ),
)

_CASELESS_KEYWORDS = tuple(
    (word, i) for i, kind in enumerate(SECRET_KINDS) for word in kind.words if word.islower()
)
_CASED_KEYWORDS = tuple(
    (word, i) for i, kind in enumerate(SECRET_KINDS) for word in kind.words if not word.islower()
)
_NEXT_FIELD = re.compile(r"[,;&](?=[\w .\-]{1,40}=)|[,;]$")
_QUOTES = (b'"', b"'", b"`")
_TRAILING_PUNCTUATION = ".,;:!?)]}>\\"
_PASSWORD_NAME = re.compile(r"pass(?:w(?:or)?d|phrase|code|wort)$|pwd$", re.IGNORECASE)
_SECRET_NAME = re.compile(
    r"(?:secret|token|api[_\-. ]?key|(?:access|private|auth|account)[_\-]?key|credentials?)$",
    re.IGNORECASE,
)


class Redacted(NamedTuple):
    """A redacted text and the kinds of its secrets, in order of appearance."""

    text: str
    kinds: tuple[str, ...] = ()


def redact(text: str) -> Redacted:
    """Replace each secret with ``[redacted:kind]``; leave the rest unchanged."""
    candidates = _candidate_kinds(text)
    if not candidates:
        return Redacted(text)
    raw = text.encode()
    claimed: list[tuple[int, int, str]] = []
    for i in candidates:
        _claim_matches(i, raw, claimed)
    if not claimed:
        return Redacted(text)
    parts, at = [], 0
    for start, end, name in claimed:
        parts += [raw[at:start], f"[redacted:{name}]".encode()]
        at = end
    kinds = tuple(dict.fromkeys(name for _, _, name in claimed))
    return Redacted(b"".join([*parts, raw[at:]]).decode(), kinds)


def _candidate_kinds(text: str) -> list[int]:
    """Return the indexes of the kinds whose keywords occur in the text."""
    lower = text.lower()
    found = {i for word, i in _CASELESS_KEYWORDS if word in lower}
    found.update(i for word, i in _CASED_KEYWORDS if word in text)
    return sorted(found)


@cache
def _compile_kind(kind_index: int) -> Any:
    import re2  # start-up time: loaded only for texts with a keyword

    return re2.compile(SECRET_KINDS[kind_index].pattern.encode())


def _claim_matches(kind_index: int, raw: bytes, claimed: list[tuple[int, int, str]]) -> None:
    """Add one kind's matches to the claimed spans, in order, where they do not overlap."""
    kind = SECRET_KINDS[kind_index]
    for match in _compile_kind(kind_index).finditer(raw):
        group = match.lastindex or 0
        start, end = match.span(group)
        position = bisect_left(claimed, (start,))
        before_is_free = position == 0 or claimed[position - 1][1] <= start
        if not before_is_free or (position < len(claimed) and end > claimed[position][0]):
            continue
        value = raw[start:end].decode()
        if group and raw[end : end + 1] not in _QUOTES:
            value = _trim_value(value)
        if kind.check(value):
            claimed.insert(position, (start, start + len(value.encode()), kind.name))


def _trim_value(value: str) -> str:
    """Strip a following field of the same line and trailing punctuation."""
    value = _NEXT_FIELD.split(value, maxsplit=1)[0]
    return value.rstrip(_TRAILING_PUNCTUATION) if len(value) > 6 else value


_REDACTED_FIELDS = tuple(field for field in GIVEN_FIELDS if field.redacted)
_TEXT_FIELDS = field_names(_REDACTED_FIELDS, "text", "word")
_LIST_FIELDS = field_names(_REDACTED_FIELDS, "words")


def redact_draft(draft: Draft) -> tuple[Draft, tuple[str, ...]]:
    """Redact all text fields of a draft; return the draft and the kinds found."""
    # One check of all texts at once: nearly no draft goes further.
    values = [getattr(draft, name) or "" for name in _TEXT_FIELDS]
    listed = [text for name in _LIST_FIELDS for text in getattr(draft, name)]
    everything = "\n".join((*values, *listed))
    if not draft.metadata and not _candidate_kinds(everything):
        return draft, ()
    kinds: dict[str, None] = {}

    def clean(text: str) -> str:
        cleaned = redact(text)
        kinds.update(dict.fromkeys(cleaned.kinds))
        return cleaned.text

    changes: dict[str, Any] = {
        name: clean(value) for name, value in zip(_TEXT_FIELDS, values, strict=True) if value
    }
    changes |= {name: tuple(map(clean, getattr(draft, name))) for name in _LIST_FIELDS}
    changes["metadata"] = _redact_json(draft.metadata, clean, kinds)
    return (draft._replace(**changes) if kinds else draft), tuple(kinds)


def _redact_json(value: Any, clean: Callable[[str], str], kinds: dict[str, None]) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {
            clean(name): _redact_field(name, entry, kinds) or _redact_json(entry, clean, kinds)
            for name, entry in value.items()
        }
    if isinstance(value, list | tuple):
        return [_redact_json(entry, clean, kinds) for entry in value]
    return value


def _redact_field(name: str, value: object, kinds: dict[str, None]) -> str | None:
    """Return the replacement for a value that only its field name gives away."""
    if not isinstance(value, str):
        return None
    if _PASSWORD_NAME.search(name) and is_password(value):
        kind = "password"
    elif _SECRET_NAME.search(name) and is_secret(value):
        kind = "secret"
    else:
        return None
    kinds[kind] = None
    return f"[redacted:{kind}]"
