"""Detect and redact secrets in memories, and report their kinds.

Every pattern runs in RE2, in time linear in the text, and only on texts that hold one of
its keywords: the keywords are searched first, because hardly any memory holds one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.ingest.content_checks import (
    is_basic_credentials,
    is_card_number,
    is_code_seed,
    is_key_block,
    is_option_value,
    is_pass_phrase,
    is_password,
    is_random,
    is_random_or_hex,
    is_real_token,
    is_secret,
    is_seed_phrase,
    is_stated_password,
    is_told_password,
    is_url_password,
    trim_value,
)
from bethink.model import Draft
from bethink.model.fields import GIVEN_FIELDS, field_names


class SecretKind(NamedTuple):
    """A secret's pattern, the keywords it requires and a check of each match.

    The last group that took part in the match is the secret; without groups it is the whole
    match. Lower-case keywords are searched in any case.
    """

    name: str
    words: tuple[str, ...]
    pattern: str
    check: Callable[[str], bool] = is_real_token


_LOGIN_WORDS = (
    r"(?:password|passwd|pass[ \-]?phrase|passcode|passwort|kennwort|pwd|mot de passe"
    r"|contrase(?:ñ|n)a|senha|palavra-passe|parola(?: d'ordine)?|wachtwoord|lösenord(?:et)?|hasło"
    r"|şifre|Пароль|пароль|密码|密碼|パスワード|비밀번호)"
)
_LOGIN_KEYWORDS = (
    *("passw", "pass phrase", "pass-phrase", "passphrase", "passcode", "pwd", "kennwort"),
    *("mot de passe", "contrase", "senha", "palavra-passe", "parola", "wachtwoord", "lösenord"),
    *("hasło", "şifre", "пароль"),
    *("密码", "密碼", "パスワード", "비밀번호"),
)
# "The password manager is ..." states no password.
_PURPOSE_PHRASE = (
    r"(?:(?:\s?[(,]|\s(?:for|of|to|on|at|in|from|we|i|you|they|that|which|now|there|here|again|currently"
    r"|für|von|vom|zu|zum|zur|auf|am|an|im|bei|beim|der|des|jetzt|de|du|del|do|da|della|dell|pour"
    r"|para|per|van|voor|till|för)\b|\s(?:от|для)\s)[^\n.:=]{0,40}?)?"
)
# The verb between "the password" and the password, and what may stand before the latter.
_VERB = (
    r"\s(?:is|was|ist|war|lautete?|heißt|heisst|est|était|c'est|es|era|è|é|är|to|este|auf|à)"
    r"[:\s]{1,3}(?:(?:now|jetzt|nun|maintenant|ahora|ora|agora|nu)[:\s]{1,3})?"
)
_OPENING = r"(?:[\"'\x60]|[«„“‘]\s?)?"
_WORD = _OPENING + r"([^\s\"'\x60»”]*[0-9][^\s\"'\x60»”]*)"
_CHANGE_WORDS = (
    r"(?:\s(?:is|was|has|had|been|got|now|changed|reset|set|rotated|updated|wurde|ist)){0,4}?"
)
_KEY_WORDS = (
    r"(?:secret|token|api[_\-. ]?key|credentials?|connection[_\-]?string|(?:access|account|auth"
    r"|client|encryption|license|private|service|session|shared|signing|storage|webhook)[_\-. ]?key"
    r"|(?:bot|refresh|id|access|auth)[_\-. ]?token)"
)
_NAME_SUFFIX = (
    r"(?:[_\-.]?(?:value|key|base|string|prod(?:uction)?|dev|staging|test|live|primary|secondary"
    r"|main|default|[0-9]{1,3})){0,2}"
)
_ASSIGNMENT = (
    r"\\?[\"'\x60]?\]?[ \t]{0,4}(?::=|=>|->|={1,2}|:|：|是|は)[ \t]{0,4}(?:![a-z]+ )?[brfu]?"
)
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
    ("xai-key", "xai-", r"\bxai-[A-Za-z0-9]{60,}"),
    ("supabase-key", "sbp_ sb_secret_", r"\b(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_\-]{20,})"),
    ("doppler-token", "dp.", r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.\-]{30,}"),
    ("perplexity-key", "pplx-", r"\bpplx-[A-Za-z0-9]{32,}"),
    ("nvidia-key", "nvapi-", r"\bnvapi-[A-Za-z0-9_\-]{40,}"),
    ("pinecone-key", "pcsk_", r"\bpcsk_[A-Za-z0-9_]{30,}"),
    ("langsmith-key", "lsv2_", r"\blsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    ("tavily-key", "tvly-", r"\btvly-[A-Za-z0-9\-]{24,}"),
    ("figma-token", "figd_", r"\bfigd_[A-Za-z0-9_\-]{30,}"),
    ("postman-key", "pmak-", r"\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    ("pulumi-token", "pul-", r"\bpul-[a-f0-9]{40}\b"),
    ("tailscale-key", "tskey-", r"\btskey-[a-z]{3,10}-[A-Za-z0-9]{8,}-[A-Za-z0-9]{20,}"),
    ("netlify-token", "nfp_", r"\bnfp_[A-Za-z0-9]{36,}"),
    ("sentry-token", "sntry", r"\bsntry[su]_[A-Za-z0-9+/=_\-]{40,}"),
    ("newrelic-key", "NRAK-", r"\bNRAK-[A-Z0-9]{27}\b"),
    ("posthog-key", "phx_", r"\bphx_[A-Za-z0-9]{40,}"),
    ("atlassian-token", "ATATT3 ATCTT3 ATBB", r"\b(?:ATATT3|ATCTT3|ATBB)[A-Za-z0-9_\-=]{24,}"),
    ("square-token", "sq0atp- sq0csp- eaaa", r"\b(?:sq0(?:atp|csp)-[\w\-]{22,}|EAAA[\w\-]{56,})"),
    ("alibaba-key", "LTAI", r"\bLTAI[A-Za-z0-9]{16,24}\b"),
    ("rubygems-key", "rubygems_", r"\brubygems_[a-f0-9]{48}\b"),
    ("nuget-key", "oy2", r"\boy2[a-z0-9]{43}\b"),
    ("crates-token", "cio", r"\bcio[A-Za-z0-9]{32}\b"),
    ("buildkite-token", "bkua_", r"\bbkua_[a-f0-9]{40}\b"),
    ("circleci-token", "CCIPAT_", r"\bCCIPAT_[A-Za-z0-9]{16,}_[a-f0-9]{40}"),
    ("dynatrace-token", "dt0c01.", r"\bdt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("sourcegraph-token", "sgp_", r"\bsgp_(?:[a-f0-9]{16}_|local_)?[a-f0-9]{40}"),
    ("mailgun-key", "key-", r"\bkey-[a-f0-9]{32}\b"),
    ("google-key", "1//0", r"\b1//0[A-Za-z0-9_\-]{40,}"),
    ("fly-token", "FlyV1", r"FlyV1 fm[12]_[A-Za-z0-9+/=_\-]{40,}"),
    ("onepassword-token", "ops_eyj", r"\bops_eyJ[A-Za-z0-9_\-=]{40,}"),
)
_NEXT_WORD = r"[\"'\x60]?([^\s\"'\x60]{4,})"
_REST = r"\b[^\n|;]{0,80}?\s"
# Commands, each with the words it is known by: its password is the next word.
_PASSWORD_OPTIONS = (
    (("mysql", "mariadb"), r"\b(?:mysql\w*|mariadb(?:-\w+)?)" + _REST + "-p"),
    (("mysqladmin",), r"\bmysqladmin" + _REST + r"password\s{1,2}"),
    (("mongo",), r"\bmongo\w*" + _REST + r"-p\s{1,2}"),
    (("sshpass",), r"\bsshpass\s+-p\s{0,2}"),
    (("redis-cli",), r"\bredis-cli" + _REST + r"-a\s{1,2}"),
    (("ldap",), r"\bldap\w+" + _REST + r"-w\s{1,2}"),
    (("zip", "rar"), r"\b(?:un)?zip" + _REST + r"-P\s{0,2}|\b(?:un)?rar" + _REST + "-h?p"),
    (("7z",), r"\b7z\w?" + _REST + "-p"),
    (("plink", "pscp"), r"\b(?:plink|pscp)" + _REST + r"-pw\s{1,2}"),
    (("freerdp",), r"\b\w?freerdp" + _REST + "/p:"),
    (("openssl",), r"\bopenssl enc" + _REST + r"-k\s{1,2}"),
    (("vault login",), r"\bvault login\s{1,2}"),
    (("htpasswd",), r"\bhtpasswd\s+-\w*b\w*\s+\S{1,80}\s+\S{1,40}\s{1,2}"),
    (("net user",), r"\bnet user\s+\S{1,40}\s{1,2}"),
    (("net use",), r"\bnet use\s+(?:\w:\s+)?\\\\\S{3,80}\s{1,2}"),
    (
        ("rabbitmqctl",),
        r"\brabbitmqctl" + _REST + r"(?:add_user|change_password)\s+\S{1,40}\s{1,2}",
    ),
    (("sqlplus",), r"\bsqlplus\s+(?:-\w+\s+)?\w{1,40}/"),
    (("identified",), r"\bidentified\s+(?:with\s\S{1,40}\s)?by\s{1,2}"),
    (("--pass", "--pwd"), r"--(?:pass(?:word|wd|phrase)?|pwd)\s+"),
    (("login",), r"\b(?:docker|podman|helm|az|oc) [^\n|;]{0,60}?login" + _REST + r"-p\s{1,2}"),
    (("pass:",), r"-pass(?:in|out)?\s+pass:"),
    (("-u",), r"\bsmbclient" + _REST + r"-U\s{0,2}[^\s%]{1,40}%"),
)
# A password that a command is given by "echo".
_ECHOED = (
    r"\becho\s{1,2}(?:-n\s)?[\"']?(?:[\w.\-]{1,40}:)?([^\s\"'|:]{6,})[\"']?\s{0,2}\|"
    r"[^\n|]{0,80}?(?:sudo -\w*S|--password-stdin|chpasswd|passwd)"
)
_CHANGED_FROM, _CHANGED_TO = r"[^\n.:=]{0,40}?\s(?:from|von|de|da|van)\s", r"(?:to|auf|zu|à|a|naar)"
# Sentences that state a password, and how much its looks must show then.
_PHRASES = (
    (_LOGIN_WORDS + _PURPOSE_PHRASE + _CHANGE_WORDS + _VERB, is_stated_password),
    (_LOGIN_WORDS + _PURPOSE_PHRASE + r"\s?[:：]\s{0,2}", is_stated_password),
    (r"\b(?:with|and|mit|und|avec|et|con|y|com|e|user(?:name)?\s\S{1,40})\s(?:the\s|le\s|la\s)?"
     + _LOGIN_WORDS + r"\s", is_stated_password),
    (_LOGIN_WORDS + _PURPOSE_PHRASE + r"\s", is_told_password),
    (_LOGIN_WORDS + _CHANGED_FROM + rf"\S{{6,40}}\s{_CHANGED_TO}\s", is_stated_password),
    (_LOGIN_WORDS + r"[^\n]{0,80}?\b(?:new|neue|nuova?|nueva?|nouveau|nova)\b"
     r"(?:\sone)?" + _VERB, is_stated_password),
)  # fmt: skip
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
        (),  # found by its shape
        r"\b[MNO][A-Za-z0-9_\-]{22,27}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9_\-]{27,40}",
        is_random,
    ),
    SecretKind("card-number", (), r"\b[3-6][0-9]{3}(?:[ \-]?[0-9]){9,15}\b", is_card_number),
    SecretKind(
        "pin",
        ("pin", "cvv", "cvc"),
        r"(?:\bPIN(?:[ \-]?(?i:code|number|nummer))?|(?i:\bpin[ \-]?(?:code|number|nummer)"
        r"|\b(?:my|card|door|alarm|bank|sim|phone|account|safe|gate|locker)\s+pin|\bcv[vc]2?))\b"
        r"[^\n.:=0-9]{0,40}?"
        r"(?:\s(?:is|was|to|ist|war|lautet|est|es|era|è|é|now)|\s?[:=])[\s\"'\x60]{0,3}"
        r"(?:now\s)?([0-9]{3,8})\b",
        lambda value: len(value) >= 3,
    ),
    SecretKind(
        "pin",
        ("code", "combination"),
        r"(?i)\b(?:door|alarm|gate|safe|lock|locker|garage|vault)\s(?:code|combination)\b"
        r"[^\n.:=0-9]{0,30}?(?:\s(?:is|was|to|now)|\s?[:=])\s{0,3}(?:now\s)?([0-9]{4,8})\b",
        lambda value: len(value) >= 4,
    ),
    SecretKind(
        "one-time-code-seed",
        ("totp", "otp", "2fa", "mfa", "authenticator"),
        r"(?:(?i:\b(?:totp|2fa|mfa|otp|authenticator|otpauth)\b))[^\n]{0,60}?[\s=:\"'\x60]"
        r"([A-Z2-7]{16,64})\b",
        is_code_seed,
    ),
    SecretKind(
        "seed-phrase",
        ("phrase", "mnemonic", "frase", "semilla"),
        r"(?i)(?:phrase|mnemonic|mnémonique|frase|semilla)[^\n.!?]{0,40}?[:\s\"'\x60«]"
        r"((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b",
        is_seed_phrase,
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
    *(
        SecretKind("password", words, rf"(?i:{option}){_NEXT_WORD}", is_option_value)
        for words, option in _PASSWORD_OPTIONS
    ),
    SecretKind("password", ("echo",), _ECHOED, is_option_value),
    SecretKind(
        "password",
        ("from-literal",),
        r"--from-literal[= ][\"']?[\w.\-]{1,60}=[\"']?([^\s\"']{6,})",
        is_stated_password,
    ),
    SecretKind(
        "cookie",
        ("cookie",),
        r"(?i)\bcookie[\"']?\s{0,2}[:=][^\n]{0,200}?[\w.\-]{0,30}(?:sess|sid|auth|token|jwt)"
        r"[\w.\-]{0,30}=([^\s;\"']{16,})",
        is_random_or_hex,
    ),
    SecretKind(
        "private-key",
        ("private-lines",),
        r"Private-Lines: [0-9]{1,3}\s{1,2}([A-Za-z0-9+/=\n]{24,})",
        is_key_block,
    ),
    SecretKind(
        "secret", ("_auth",), r"(?i)\b_auth\s{0,2}=\s{0,2}\"?([a-z0-9+/]{12,}=*)", is_secret
    ),
    SecretKind(
        "password",
        ("<", "value="),
        r"(?i)(?:<[\w:.]{0,40}(?:password|passwd|pwd|secret|token)>|[\"'][\w.]{0,40}(?:password|secret)"
        r"[\"']\s+value=[\"'])([^<\s\"']{6,})",
        is_password,
    ),
    SecretKind(
        "password",
        ("login", "account", "user", "cred", "zugangsdaten"),
        r"(?i)\b(?:login|log in|account|user(?:name)?|creds?|credentials|zugangsdaten)\b[:\s]{1,3}"
        r"(?:(?:as|with|is|are|sind)\s)?[\w.@+\-]{2,40}\s?/\s?([^\s/\"'\x60]{8,})",
        is_stated_password,
    ),
    SecretKind(
        "password",
        ("pass phrase", "pass-phrase", "passphrase", "password", "passwort"),
        r"(?i)\b(?:pass[ \-]?phrase|password|passwort)\b[^\n.:=]{0,40}?"
        r"(?:\s(?:is|was|ist)|\s?[:=])\s{0,2}"
        r"([\"'\x60]?(?:[a-z]{3,12}[ \-.]){3,8}[a-z]{3,12}[\"'\x60]?)"
        r"(?:[.,;!?)\n]|\s(?:and|und)\s|\s?\z)",
        is_pass_phrase,
    ),
    SecretKind(
        "password",
        _LOGIN_KEYWORDS,
        r"(?i)" + _LOGIN_WORDS + _NAME_SUFFIX + _ASSIGNMENT + _VALUE,
        is_password,
    ),
    SecretKind(
        "secret",
        ("secret", "token", "key", "credential", "connection"),
        r"(?i)" + _KEY_WORDS + _NAME_SUFFIX + _ASSIGNMENT + _VALUE,
        is_secret,
    ),
    *(
        SecretKind("password", _LOGIN_KEYWORDS, rf"(?i){phrase}{_WORD}", check)
        for phrase, check in _PHRASES
    ),
    SecretKind(
        "password",
        _LOGIN_KEYWORDS,
        rf"(?i){_LOGIN_WORDS}{_CHANGED_FROM}{_WORD}[\"'\x60]?\s{_CHANGED_TO}\s",
        is_stated_password,
    ),
    SecretKind(
        "password",
        ("pass", "pw"),
        r"(?i)(?:\b|_)(?:pass|pw)[\"']?(?:\sis|\s{0,2}[:=])\s{0,2}" + _WORD,
        is_stated_password,
    ),
    SecretKind("password", ("pass", "pw"), r"(?i)\b(?:pass|pw)\s" + _WORD, is_told_password),
    SecretKind(
        "password",
        ("wifi", "wi-fi", "wlan", "wpa"),
        r"(?i)\b(?:wi-?fi|wlan|wpa[23]?)[ \-](?:key|schlüssel|code)\b"
        + _PURPOSE_PHRASE
        + rf"(?:{_VERB}|\s?[:=]\s{{0,2}})"
        + _WORD,
        is_stated_password,
    ),
    SecretKind(
        "password",
        ("as the password", "as password", "as his password", "as her password"),
        r"(?i)\s" + _WORD + r"[\"'\x60]?\sas (?:the |his |her |my )?password\b",
        is_told_password,
    ),
    SecretKind(
        "secret",
        ("api",),
        r"(?i)\bapi[_\-. ]?key\s(?:is\s)?[\"'\x60]?([0-9a-f]{32,64})\b",
        is_random_or_hex,
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
# Kinds without a keyword, and what at least one of them needs.
_SHAPED_KINDS = tuple(i for i, kind in enumerate(SECRET_KINDS) if not kind.words)
_SHAPES = lazy_pattern(r"[MNO][\w-]{22,27}\.[\w-]{6}\.|[3-6]\d{3}[ -]?\d{4,6}[ -]?\d{4}")
_QUOTES = (b'"', b"'", b"`")
_PASSWORD_NAME = lazy_pattern(r"pass(?:w(?:or)?d|phrase|code|wort)$|pwd$", re.IGNORECASE)
_SECRET_NAME = lazy_pattern(
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
    found: set[int] = set()
    for keywords, where in zip(_keyword_indexes(), (text.lower(), text), strict=True):
        if keywords.any_of.search(where):
            beginnings = set(keywords.all_of.findall(where))
            words = (entry for begin in beginnings for entry in keywords.by_beginning[begin])
            found.update(i for word, i in words if word in where)
    if _SHAPES.search(text):
        found.update(_SHAPED_KINDS)
    return sorted(found)


class _KeywordIndex(NamedTuple):
    """Keywords by their beginnings: none of these begins another."""

    any_of: re.Pattern[str]
    all_of: re.Pattern[str]
    by_beginning: Mapping[str, Sequence[tuple[str, int]]]


@cache
def _keyword_indexes() -> tuple[_KeywordIndex, _KeywordIndex]:
    """Index the keywords for a lower-cased text, and those for a text as it is."""
    return _index_keywords(_CASELESS_KEYWORDS), _index_keywords(_CASED_KEYWORDS)


def _index_keywords(keywords: Sequence[tuple[str, int]]) -> _KeywordIndex:
    words = {word for word, _ in keywords}
    beginnings = {word for word in words if not any(word[:n] in words for n in range(len(word)))}
    by_beginning = {
        begin: [entry for entry in keywords if entry[0].startswith(begin)] for begin in beginnings
    }
    tree = _any_of(beginnings)
    return _KeywordIndex(re.compile(tree), re.compile(f"(?=({tree}))"), by_beginning)


def _any_of(words: set[str]) -> str:
    """Return a pattern for any of the words that looks at each character once, as a tree does."""
    if "" in words:
        return ""
    rests: dict[str, set[str]] = {}
    for word in sorted(words):
        rests.setdefault(word[0], set()).add(word[1:])
    branches = [re.escape(first) + _any_of(rest) for first, rest in rests.items()]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"


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
            value = trim_value(value)
        if kind.check(value):
            claimed.insert(position, (start, start + len(value.encode()), kind.name))


_REDACTED_FIELDS = tuple(field for field in GIVEN_FIELDS if field.redacted)
_TEXT_FIELDS = field_names(_REDACTED_FIELDS, "text", "word")
_LIST_FIELDS = field_names(_REDACTED_FIELDS, "words")


def redact_draft(draft: Draft) -> tuple[Draft, tuple[str, ...]]:
    """Redact all text fields of a draft; return the draft and the kinds found."""
    kinds: dict[str, None] = {}

    def clean(text: str) -> str:
        cleaned = redact(text)
        if cleaned.kinds:
            kinds.update(dict.fromkeys(cleaned.kinds))
        return cleaned.text

    values = ((name, getattr(draft, name)) for name in _TEXT_FIELDS)
    changes: dict[str, Any] = {name: clean(value) for name, value in values if value}
    for name in _LIST_FIELDS:
        if listed := getattr(draft, name):
            changes[name] = tuple(map(clean, listed))
    if draft.metadata:
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
