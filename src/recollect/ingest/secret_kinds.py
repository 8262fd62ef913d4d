"""The kinds of secrets that are known by their looks.

Every pattern runs in RE2, in time linear in the text, and only on texts that hold one
of its words: those are sought first, because nearly no memory holds any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from recollect.ingest.randomness import (
    is_basic_credentials,
    is_key_block,
    is_password,
    is_random,
    is_random_or_hex,
    is_real_token,
    is_secret,
    is_told_password,
    is_url_password,
)


class SecretKind(NamedTuple):
    """A pattern, the words it cannot do without, and a second look at what it finds.

    The last group that took part in the match is the secret; without groups it is the
    whole match. Words in lower case are sought in any case.
    """

    name: str
    words: tuple[str, ...]
    pattern: str
    check: Callable[[str], bool] = is_real_token


_LOGIN_WORDS = r"(?:password|passwd|passphrase|passcode|passwort|pwd)"
# Of a password manager, policy or reset it is something else that the sentence tells.
_OF_WHAT = (
    r"(?:(?:\s?[(,]|\s(?:for|of|to|on|at|in|from|we|i|you|they|that|which|now|there|here|again|currently"
    r"|für|von|vom|zu|zum|zur|auf|am|an|im|bei|beim|der|des|jetzt)\b)[^\n.:=]{0,40}?)?"
)
_CHANGED = r"(?:\s(?:is|was|has|had|been|got|now|changed|reset|set|rotated|updated)){0,4}?"
_KEY_WORDS = (
    r"(?:secret|token|api[_\-. ]?key|credentials?|connection[_\-]?string|(?:access|account|auth"
    r"|client|encryption|license|private|service|session|shared|signing|storage|webhook)[_\-. ]?key"
    r"|(?:bot|refresh|id|access|auth)[_\-. ]?token)"
)
_SUFFIX = (
    r"(?:[_\-.]?(?:value|key|base|string|prod(?:uction)?|dev|staging|test|live|primary|secondary"
    r"|main|default|[0-9]{1,3})){0,2}"
)
_ASSIGN = r"\\?[\"'\x60]?\]?[ \t]{0,4}(?::=|=>|->|={1,2}|:)[ \t]{0,4}[brfu]?"
_VALUE = (
    r"(?:\\?\"([^\"\n\\]{6,})|'([^'\n]{6,})|\x60([^\x60\n]{6,})"
    r"|([^\s\"'\x60]{6,}))"
)
_PREFIXED: tuple[tuple[str, str, str], ...] = (
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
# First come, first served: a span belongs to the first kind that claims it.
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
    *(SecretKind(name, tuple(words.split()), pattern) for name, words, pattern in _PREFIXED),
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
        r"(?i)" + _LOGIN_WORDS + _SUFFIX + _ASSIGN + _VALUE,
        is_password,
    ),
    SecretKind(
        "secret",
        ("secret", "token", "key", "credential", "connection"),
        r"(?i)" + _KEY_WORDS + _SUFFIX + _ASSIGN + _VALUE,
        is_secret,
    ),
    SecretKind(
        "password",
        ("passw", "passphrase", "passcode", "pwd"),
        r"(?i)\b" + _LOGIN_WORDS + _OF_WHAT + _CHANGED + r"\s(?:is|was|to)[:\s]{1,3}"
        r"(?:now[:\s]{1,3})?[\"'\x60]?([^\s\"'\x60]{8,})",
        is_random,
    ),
    SecretKind(
        "password",
        ("passw", "passphrase", "passcode", "pwd"),
        r"(?i)\b" + _LOGIN_WORDS + _OF_WHAT + r"\s(?:is|ist)[:\s]{1,3}"
        r"(?:(?:now|jetzt)[:\s]{1,3})?[\"'\x60]?([^\s\"'\x60]{6,})",
        is_told_password,
    ),
    SecretKind(
        "secret",
        ("secret", "token", "key", "credential"),
        r"(?i)\b" + _KEY_WORDS + r"\b(?:[^\n.:=]{0,40}?\s(?:is|was|to))?[\s:=(,\"'\x60]{1,4}"
        r"([a-z0-9_\-+/=.~]{16,})",
        is_random,
    ),
)
