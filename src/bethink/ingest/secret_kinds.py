"""Kinds of secrets: patterns, the keywords they need, and how a match is checked.

Every pattern runs in RE2, in time linear in the text.
"""

from __future__ import annotations

from collections.abc import Callable

from bethink.core.named_tuple import NamedTuple
from bethink.ingest.content_checks import (
    is_basic_credentials,
    is_card_number,
    is_code_seed,
    is_key_block,
    is_made_password,
    is_option_value,
    is_pass_phrase,
    is_password,
    is_password_near,
    is_password_phrase,
    is_random,
    is_random_or_hex,
    is_real_token,
    is_secret,
    is_seed_phrase,
    is_signed_password,
    is_stated_password,
    is_told_password,
    is_url_password,
)


class SecretKind(NamedTuple):
    """A secret's pattern, the keywords it requires and a check of each match.

    The last group that took part in the match is the secret; without groups it is the whole
    match. Lower-case keywords are searched in any case. With ``check_near`` the match itself is
    no secret: every word around it that the check accepts is one; it is told whether the word
    stands in quotes.
    """

    name: str
    words: tuple[str, ...]
    pattern: str
    check: Callable[[str], bool] = is_real_token
    check_near: Callable[[str, bool], bool] | None = None


_LOGIN_WORDS = (
    r"(?:password|passwd|pass[ \-]?phrase|passcode|passwort|kennwort|pwd|mot de passe"
    r"|\bpw\b|\bmdp\b|\bclave\b"
    r"|contrase(?:ñ|n)a|senha|palavra-passe|parola(?: d'ordine)?|wachtwoord|lösenord(?:et)?|hasło"
    r"|şifre|Пароль|пароль|密码|密碼|パスワード|비밀번호)"
)
_LOGIN_KEYWORDS = (
    *("passw", "pass phrase", "pass-phrase", "passphrase", "passcode", "pwd", "kennwort"),
    *("pw", "mdp", "clave"),
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
    r"(?:['’]s|\s(?:is|was|ist|war|lautete?|heißt|heisst|est|était|c'est|es|era|è|é|är|to|este|auf"
    r"|à|a|en))[:\s]{1,3}(?:(?:now|still|again|jetzt|nun|noch|ab sofort|maintenant|désormais|ahora"
    r"|ora|agora|nu)[:\s]{1,3})?"
)
_OPENING = r"(?:[\"'\x60]|[«„“‘]\s?)?"
_WORD = _OPENING + r"([^\s\"'\x60»”]*[0-9][^\s\"'\x60»”]*)"
_CHANGE_WORDS = (
    r"(?:\s(?:is|was|has|had|been|got|now|changed|reset|set|rotated|updated|wurde|ist|geändert"
    r"|zurückgesetzt|changé|modifié|cambiada|cambiata)){0,4}?"
)
_KEY_WORDS = (
    r"(?:secret|token|api[_\-. ]?key|credentials?|connection[_\-]?string|(?:access|account|auth"
    r"|client|encryption|license|private|service|session|shared|signing|storage|subscription|webhook)"
    r"[_\-. ]?key"
    r"|(?:bot|refresh|id|access|auth)[_\-. ]?token)"
)
_NAME_SUFFIX = (
    r"(?:[_\-.]?(?:value|key|base|string|prod(?:uction)?|dev|staging|test|live|primary|secondary"
    r"|main|default|[0-9]{1,3})){0,2}"
)
_ASSIGNMENT = (
    r"\\?[\"'\x60*]{0,2}\]?[ \t]{0,4}(?::=|=>|->|={1,2}|:|：|是|は)\*{0,2}[ \t]{0,4}(?:![a-z]+ )?"
)
_VALUE = (
    r"(?:[brfuN]?(?:\\?\"([^\"\n\\]{6,})|'([^'\n]{6,}))|\x60([^\x60\n]{6,})"
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
    (("/user:",), r"\s/user:\S{1,40}\s{1,2}"),
    (("/pass", "/pwd", "/rp"), r"\s/(?:pass(?:word)?|pwd|rp)[: ]"),
    (
        ("rabbitmqctl",),
        r"\brabbitmqctl" + _REST + r"(?:add_user|change_password)\s+\S{1,40}\s{1,2}",
    ),
    (("sqlplus",), r"\bsqlplus\s+(?:-\w+\s+)?\w{1,40}/"),
    (("identified",), r"\bidentified\s+(?:with\s\S{1,40}\s)?by\s{1,2}[\"']"),
    (("pass", "-pwd"), r"\s--?(?:[\w\-]{0,30}-)?(?:key|store)?(?:pass(?:word|wd|phrase)?|pwd)\s+"),
    (("login",), r"\b(?:docker|podman|helm|az|oc) [^\n|;]{0,60}?login" + _REST + r"-p\s{1,2}"),
    (("pass:",), r"-pass(?:in|out)?\s+pass:"),
    (("-u",), r"\bsmbclient" + _REST + r"-U\s{0,2}[^\s%]{1,40}%"),
)
# Where no command is known, an option that many have, and what follows must look drawn.
_ANY_OPTION = r"\s-(?:p|P|pw|w|a|N|k)\s{1,2}"
_USER_OPTION = r"\s-(?:u|U|user\w{0,4})\s{1,2}\S{1,60}\s{1,2}-(?:p|P|w|pass\w{0,4})\s{1,2}"
_LOGIN_OPTION = r"\s(?:-u|-U|-a|--user|--auth|--creds)[ =]{1,2}[\"']?[\w.@+\\\-]{1,40}[:,%]"
# A password that a command reads from its standard input.
_STDIN = r"(?:sudo -\w*S|--password-stdin|--passphrase-fd|chpasswd|passwd)"
_ECHOED = (
    r"\b(?:echo|printf)\s{1,2}(?:-n\s|[\"']%s(?:\\n)?[\"']\s)?[\"']?(?:[\w.\-]{1,40}:)?"
    r"([^\s\"'|:]{6,})[\"']?\s{0,2}\|[^\n|]{0,80}?" + _STDIN
)
_HERE_STRING = _STDIN + r"[^\n|]{0,80}?<<<\s{0,2}[\"']?(?:[\w.\-]{1,40}:)?"
_ASKING = (
    r"\b(?:type|enter|use|try|give|say|gib|nimm|tippe|nutze|tape|entre|utilise|usa|usi|escribe"
    r"|gebruik)"
)
_BEFORE_LOGIN_WORD = (  # "... is the wifi password", "... comme mot de passe"
    r"[\"'\x60»”]?\s(?:is|was|as|ist|war|als|est|était|comme|es|era|como|è|come|é|är)\s"
    r"(?:(?:now|still|jetzt|noch|toujours|todavía)\s)?(?:(?:the|my|your|our|his|her|their|das|mein|dein|unser|le|mon|ton|notre|la|mi|tu|il|o|a|het|mijn)"
    r"\s)?(?:[\w\-]{2,15}\s)?"
)
# "The password manager" is none: what follows the word is no noun.
_AFTER_LOGIN_WORD = (
    r"(?:\s(?:for|of|to|on|at|in|from|and|now|there|here|für|von|vom|zum|zur|ein|und|pour|de|du|et|para|del|y"
    r"|per|van|voor)\b|\s?[.,;!?)\n]|\s?\z)"
)
_CHANGED_FROM, _CHANGED_TO = r"[^\n.:=]{0,40}?\s(?:from|von|de|da|van)\s", r"(?:to|auf|zu|à|a|naar)"
# Sentences that state a password, and how much its looks must show then.
_PHRASES = (
    (_LOGIN_WORDS + _PURPOSE_PHRASE + _CHANGE_WORDS + _VERB, is_stated_password),
    (_LOGIN_WORDS + _PURPOSE_PHRASE + _CHANGE_WORDS + r"\*{0,2}\s?[:：]\*{0,2}\s{0,2}",
     is_stated_password),
    (_LOGIN_WORDS + r"[^\n.:=]{0,40}?(?:" + _ASKING + r"|[\s,](?:it['’]s|it is|c'est|es ist))\s",
     is_made_password),
    (r"\b(?:with|and|mit|und|avec|et|con|y|com|e|user(?:name)?\s\S{1,40})\s(?:the\s|le\s|la\s)?"
     + _LOGIN_WORDS + r"\s", is_stated_password),
    (_LOGIN_WORDS + _PURPOSE_PHRASE + r"\s", is_told_password),
    (_LOGIN_WORDS + r"\s[\"'\x60]", is_made_password),
    (_LOGIN_WORDS + r"\s", is_signed_password),
    (_LOGIN_WORDS + _CHANGED_FROM + rf"\S{{6,40}}\s{_CHANGED_TO}\s", is_stated_password),
    (_LOGIN_WORDS + r"[^\n]{0,80}?\b(?:new|neue|nuova?|nueva?|nouveau|nova)\b"
     r"(?:\sone)?" + _VERB, is_stated_password),
)  # fmt: skip
# Several plain words that are stated to be the password.
_STATED_WORDS = (
    r"[^\n.:=]{0,40}?(?:\s(?:is|was|ist|war|lautet|est|es|era|è|é)|\s?[:=])[:\s]{0,3}"
    r"([\"'\x60]?(?:[a-z]{3,12}[ \-.]){3,8}[a-z]{3,12}[\"'\x60]?)"
    r"(?:[.,;!?)\n]|\s(?:and|und)\s|\s?\z)"
)
_NAMED_PHRASES = (
    (("pass phrase", "pass-phrase", "passphrase"), r"pass[ \-]?phrase", is_pass_phrase),
    (("password", "passwort"), r"(?:password|passwort)", is_password_phrase),
)
_STATES = (
    r"(?:['’]s|\s(?:is|was|to|ist|war|lautet|est|es|era|è|é|now)|\s?[:=])[\s\"'\x60]{0,3}(?:now\s)?"
)
_PLACES = (
    r"(?:door|gate|alarm|safe|lock|locker|lockbox|key ?box|garage|vault|entry|entrance|building"
    r"|(?:haus)?tür|tor|tresor|eingang|schließfach|porte|portail|coffre|immeuble|entrée|alarme"
    r"|puerta|portal|alarma|caja fuerte|entrada|porta|portone|cancello|cassaforte|cofre|portão"
    r"|deur|poort|kluis)"
)
_CODES = r"(?:code|combination|kombination|zahlencode|código|codigo|codice|combinaison|combinación)"
_CODES_OF = (
    _CODES + r" (?:for|of|to|fürs?|zum|zur|de|del|du|da|do|della|van|voor)(?: \w{2,5}| l){0,2}?"
)
_CODE_KEYWORDS = (
    *("puk", "passcode", "zugangscode", "code d'", "código de", "digicode", "geheimzahl", "verif"),
    *("sicherheitscode", "bestätigungscode"),
)
_CODE_NAMES = (
    r"(?:puk2?|passcode|zugangscode|code d'accès|código de acceso|digicode"
    r"|geheimzahl|sicherheitscode|bestätigungscode|verifizierungscode"
    r"|verification code|code de vérification|código de verificación|codice di verifica)"
)
_PIN_WORDS = (
    r"(?:\bPIN(?:[ \-]?(?i:code|number|nummer))?|(?i:\bpin[ \-]?(?:code|number|nummer)"
    r"|\b(?:my|his|her|our|card|door|alarm|bank|sim|phone|account|safe|gate|locker)\s+pin"
    r"|\bpin (?:for|of|to|de|del|di|da|van) (?:the|my|his|her|our|mi|tu|la|ma|mia|mijn)"
    r"|\bcv[vc]2?))\b"
)
# Numbers that open something: PINs, codes of doors, codes that confirm a login.
_PINS = (
    (("pin", "cvv", "cvc"), _PIN_WORDS + rf"[^\n.:=0-9'’]{{0,40}}?{_STATES}([0-9]{{3,8}})\b"),
    (("PIN", "passcode"), r"\b(?:PIN|(?i:passcode))\s([0-9]{4}|[0-9]{6})\b"),
    (
        (
            "puk",
            "passcode",
            "zugangscode",
            "code d'",
            "código de",
            "digicode",
            "geheimzahl",
            "verif",
            "sicherheitscode",
            "bestätigungscode",
        ),
        rf"(?i)\b{_CODE_NAMES}\b[^\n.:=0-9'’]{{0,30}}?{_STATES}([0-9]{{4,8}})\b",
    ),
    (
        ("code", "combination", "kombination"),
        rf"(?i)\b{_PLACES}[ \-]?{_CODES}\b(?:\s|[^\n.:=0-9'’]{{0,30}}?{_STATES})([0-9]{{4,8}})\b",
    ),
    (
        ("code", "combina", "kombination", "código", "codigo", "codice"),
        rf"(?i)(?:\b|\s){_CODES_OF}[ ']{_PLACES}[^\n.:=0-9'’]{{0,20}}?{_STATES}([0-9]{{4,8}})\b",
    ),
)
# Where a word that only chance draws is a password: near one of these.
_NEAR_LOGIN = (
    r"(?i)" + _LOGIN_WORDS + r"|[a-z0-9][_\-.]pass\b|(?:require|user|root|auth)pass\b|\w+pw\b"
    r"|\bpass[=:\"']|(?-i:[a-z](?:Pass|Pw|PW))\b|securestring|wifi\.begin|\bpsk\b|\bssid\b"
    r"|masterauth|enable secret|\bauth\(|(?-i:\bAUTH\b)|\bassword|\bidentified by\b"
    r"|\bwi-?fi\b|\bwlan\b|\blog[io]n\b|\blog in\b|\bsign in\b|addlogin|\bcreds?\b|\bcredentials\b"
    r"|(?-i:\b[A-Z]{2,6}PASS)\b"
)
_NEAR_KEYWORDS = (
    *_LOGIN_KEYWORDS,
    *("pass", "assword", "securestring", "wifi", "wi-fi", "wlan", "psk", "ssid", "auth"),
    *("enable secret", "identified", "login", "logon", "log in", "sign in", "cred"),
)
_WIFI = r"(?:wi-?fi|wlan|wpa[23]?|network|netzwerk|réseau)"
_WIFI_KEYS = r"(?:key|schlüssel|code|clé|clave|chiave|chave|sleutel)"
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
    SecretKind(
        "card-number",
        (),  # found by its shape; digits after a point are no card's
        r"(?:^|[^\w.,+\-*/])([3-6][0-9]{3}(?:[ \-]?[0-9]){9,15})(?:[^\w*+.]|\.\D|\.?\z)",
        is_card_number,
    ),
    *(SecretKind("pin", words, pattern, lambda _: True) for words, pattern in _PINS),
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
        "url-credentials", ("sip",), r"\bsips?:[^\s:@]{1,60}:([^\s@]{3,60})@\w", is_url_password
    ),
    SecretKind(
        "url-credentials", ("@",), r"(?:^|\s)[\w.\-]{1,40}:([^\s:/@]{8,40})@\w", is_told_password
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
    SecretKind("password", ("echo", "printf"), _ECHOED, is_option_value),
    SecretKind("password", ("<<<",), _HERE_STRING + _NEXT_WORD, is_option_value),
    SecretKind("password", ("<<<",), r"<<<\s{0,2}" + _NEXT_WORD, is_told_password),
    SecretKind("password", (" -u",), _USER_OPTION + _NEXT_WORD, is_stated_password),
    SecretKind(
        "password",
        (" -p", " -w", " -a", " -n", " -k"),
        _ANY_OPTION + _NEXT_WORD,
        is_told_password,
    ),
    SecretKind(
        "password",
        (" -u", " -a", "--user", "--auth", "--creds"),
        _LOGIN_OPTION + _NEXT_WORD,
        is_stated_password,
    ),
    SecretKind(  # a line of .pgpass
        "password",
        (":5432:", ":5433:", ":6432:", ":*:"),
        r"(?m)^[\w.*\-]{1,80}:(?:[0-9]{2,5}|\*):[\w*\-]{1,60}:[\w*\-]{1,60}:([^\s:]{6,})$",
        is_option_value,
    ),
    SecretKind(  # a line of sasl_passwd
        "password",
        ("]:",),
        r"\[[\w.\-]{3,80}\]:[0-9]{2,5}\s{1,4}[^\s:]{1,80}:([^\s:]{6,})",
        is_option_value,
    ),
    SecretKind("password", ("wifi:",), r"\bWIFI:[^\n]{0,100}?\bP:([^\s;]{6,})", is_option_value),
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
        r"(?i)(?:<[\w:.]{0,40}(?:password|passwd|pwd|secret|token)>|[\"'<][\w.]{0,40}(?:password|secret)"
        r"[\"']?\s+value=[\"'])([^<\s\"']{6,})",
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
        ("cred", "login", "zugangsdaten"),
        r"(?i)\b(?:creds?|credentials|login|zugangsdaten)\b:?\s(?:(?:are|is|sind)\s)?[\w.@+\-]{2,40}"
        r":([^\s/\"'\x60:]{8,})",
        is_made_password,
    ),
    *(
        SecretKind("password", words, rf"(?i)\b{named}\b{_STATED_WORDS}", check)
        for words, named, check in _NAMED_PHRASES
    ),
    SecretKind(
        "password",
        _LOGIN_KEYWORDS,
        r"(?i)" + _LOGIN_WORDS + _NAME_SUFFIX + _ASSIGNMENT + _VALUE,
        is_password,
    ),
    SecretKind(
        "password",
        _LOGIN_KEYWORDS,
        rf"(?i){_LOGIN_WORDS}\s?\(\s?[\"']([^\"'\s]{{6,}})[\"']",
        is_stated_password,
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
        r"(?i)(?:\b|_|(?-i:[a-z]P))(?:p?ass|pw)(?:\sis\s|" + _ASSIGNMENT + r")\s{0,2}" + _WORD,
        is_stated_password,
    ),
    SecretKind("password", ("pass", "pw"), r"(?i)\b(?:pass|pw)\s" + _WORD, is_told_password),
    SecretKind(
        "password",
        ("wifi", "wi-fi", "wlan", "wpa", "network", "netzwerk", "réseau"),
        rf"(?i)(?:\b{_WIFI}[ \-]{_WIFI_KEYS}|\b{_WIFI}\b[^\n.=]{{0,30}}?[\s:]{_WIFI_KEYS}"
        rf"|\b{_WIFI_KEYS}\s(?:\w{{2,3}}\s){{0,2}}{_WIFI})\b"
        + _PURPOSE_PHRASE
        + rf"(?:{_VERB}|\s?[:=]\s{{0,2}}|\s)"
        + _WORD,
        is_stated_password,
    ),
    SecretKind(
        "password",
        _LOGIN_KEYWORDS,
        rf"(?i)(?:^|\s){_WORD}{_BEFORE_LOGIN_WORD}{_LOGIN_WORDS}{_AFTER_LOGIN_WORD}",
        is_made_password,
    ),
    SecretKind(
        "password",
        _LOGIN_KEYWORDS,
        rf"(?i){_ASKING}\s{_WORD}[\"'\x60»”]?\s[^\n.:=]{{0,40}}?{_LOGIN_WORDS}",
        is_made_password,
    ),
    SecretKind(
        "password",
        _NEAR_KEYWORDS,
        _NEAR_LOGIN,
        check_near=is_password_near,
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
