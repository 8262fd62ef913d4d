"""Kinds of secrets: patterns, the keywords they need, and how a match is checked.

Every pattern runs in RE2, in time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.ingest.content_checks import (
    is_assigned_secret,
    is_basic_credentials,
    is_clear_password,
    is_code_seed,
    is_drawn_or_hex,
    is_drawn_token,
    is_given_password,
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
    is_stated_secret,
    is_told_password,
    is_typed_password,
    is_url_password,
    is_vendor_token,
)


class SecretKind(NamedTuple):
    """A secret's pattern, the keywords it requires and a check of each match.

    The last group that took part in the match is the secret; without groups it is the whole
    match. Keywords are lower case and searched in any case. With ``check_near`` the match itself is
    no secret: every word around it that the check accepts is one; it is told whether the word
    stands in quotes. The keywords of a ``long`` kind are searched as they are, in words of 20
    characters. With ``unless`` the words before the secret must not match that.
    """

    name: str
    words: tuple[str, ...]
    pattern: str
    check: Callable[[str], bool] = is_real_token
    long: bool = False
    unless: re.Pattern[str] | None = None
    check_near: Callable[[str, bool], bool] | None = None


_LOGIN_WORDS = (
    r"(?:password|passwd|pas+wo?r?d|pswd|pass[ \-]?phrase|passcode|passwort|kennwort|pwd"
    r"|mot de passe|\bpw\b|\bmdp\b|\bclave\b"
    r"|contrase(?:ñ|n)a|senha|palavra-passe|parola(?: d'ordine)?|wachtwoord|lösenord(?:et)?|hasło"
    r"|(?:ş|Ş)ifre(?:si|m|miz)?|parolası|heslo|adgangskoden?|kodeord(?:et)?|passord(?:et)?|salasana|jelszó|lozinka|Пароль|пароль"
    r"|mật\skhẩu|kata\ssandi|(?:κ|Κ)ωδικός|पासवर्ड|كلمة\s(?:ال)?(?:مرور|سر)|סיסמ(?:ה|א)|รหัสผ่าน|密码|密碼|パスワード|비밀번호)"
)
_LOGIN_KEYWORDS = (
    *("passw", "pasw", "pswd", "pass phrase", "pass-phrase", "passphrase", "passcode", "pwd"),
    *("mot de passe", "contrase", "senha", "palavra-passe", "parola", "wachtwoord", "lösenord"),
    *("hasło", "şifre", "пароль", "heslo", "adgangskode", "passord", "salasana", "jelszó", "pw"),
    *("密码", "密碼", "パスワード", "비밀번호", "mật khẩu", "kata sandi", "κωδικός", "पासवर्ड"),
    *("كلمة ", "kodeord", "סיסמ", "รหัสผ่าน", "lozinka", "kennwort", "mdp", "clave"),
)
# "The password manager is ..." states no password.
_PURPOSE_PHRASE = (
    r"(?:(?:\s?[(,]|\s(?:for|of|to|on|at|in|from|we|i|you|they|that|which|now|there|here|again|currently"
    r"|für|von|vom|zu|zum|zur|auf|am|an|im|bei|beim|der|des|jetzt|de|du|del|do|da|della|dell|pour"
    r"|para|per|van|voor|till|för)\b|\s(?:от|для)\s)[^\n.:=]{0,40}?)?"
)
# The verb between "the password" and the password, and what may stand before the latter.
_SOON = (
    r"[:\s]{1,3}(?:(?:now|still|again|currently|immer noch|toujours|todavía|ancora|ainda|nog|jetzt"
    r"|nun|noch|ab sofort|maintenant|désormais|ahora|ora|agora|nu)[:\s]{1,3})?"
)
_IS = (
    r"(?:['’]s|\s(?:is|was|ist|war|lautete?|heißt|heisst|est|était|c'est|es|era|è|é|är|er|este|je|jest|brzmi|là|adalah|هي|היא|είναι|คือ"
    r"|(?:should|will|must|would|has to) be|sera|será|sarà))" + _SOON
)
_TO = r"\s(?:to|auf|à|a|en)" + _SOON
_VERB = rf"(?:{_IS}|{_TO})"
_OPENING = r"(?:[\"'\x60]|[«„“‘]\s?)?"
_WORD = _OPENING + r"([^\s\"'\x60»”]*[0-9][^\s\"'\x60»”]*)"
_CHANGE_WORDS = (
    r"(?:\s(?:is|was|has|had|been|got|now|changed|reset|set|rotated|updated|wurde|ist|geändert"
    r"|zurückgesetzt|changé|modifié|cambiada|cambiata)){0,4}?"
)
_KEY_WORDS = (
    r"(?:secret|token|api[_\-. ]?key|credentials?|connection[_\-]?string"
    r"|(?:access|account|admin|aes|app|auth|client|deploy|encryption|hmac|license|logged_in|master|nonce|private|secure|server|service"
    r"|session|shared|signing|storage|subscription|unseal|wallet|webhook)"
    r"[_\-. ]?key"
    r"|(?:bot|refresh|id|access|auth)[_\-. ]?token)"
)
_NAME_SUFFIX = (
    r"(?:[_\-.]?(?:value|key|base|string|prod(?:uction)?|dev|staging|test|live|primary|secondary"
    r"|main|default|[0-9]{1,3})){0,2}"
)
_ASSIGNMENT = (
    r"\\?[\"'\x60*]{0,2}\]?[ \t]{0,4}(?::=|[=\-]>|→|={1,2}|:|：|是|は)\**[ \t]{0,4}(?:![a-z]+ )?"
)
_VALUE = (
    r"(?:[brfuN]?(?:\\?\"([^\"\n\\]{6,})|'([^'\n]{6,}))|\x60([^\x60\n]{6,})"
    r"|([^\s\"'\x60]{6,}))"
)


def _read_table(name: str) -> Iterator[list[str]]:
    """Read the columns of each line of a file beside this one."""
    text = Path(__file__).with_name(name).read_text("utf-8")
    return (line.split("\t") for line in text.splitlines() if not line.startswith("#"))


_NEXT_WORD = r"[\"'\x60]?([^\s\"'\x60]{4,})"
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
    r"(?:\s(?:for|of|to|on|at|in|from|and|now|there|here|für|von|vom|zum|zur|ein|und|auf|bei|pour|de|du|et|sur|para|del|y|en|em|su|på"
    r"|per|van|voor|lol|pls|please|ok|btw|haha|thx)\b|\s?[.,;:!?()\n]|\s?\z)"
)
_CHANGED_FROM, _CHANGED_TO = r"[^\n.:=]{0,40}?\s(?:from|von|de|da|van)\s", r"(?:to|auf|zu|à|a|naar)"
_GIVES = rf"(?:{_IS}|\*{{0,2}}\s?[:：=]\*{{0,2}}\s{{0,2}})"
# "The password manager is ...", "the password expires and the host is ...": none is stated.
_OTHER_NOUNS = lazy_pattern(
    r"^\S+\s(?:managers?|polic(?:y|ies)|resets?|hash\w*|stor(?:e|age)|vault|length|fields?|algorithm|page"
    r"|prompt|expir\w*|rotation|generator|strength|columns?|table|file|form|screen|dialog|valid\w*"
    r"|rules?|requirements?|complexity|format|encod\w*|encrypt\w*|hint|history|database|entry|login"
    r"|flow|grant|auth\w*|protect\w*|cracking|attacks?|leaks?|breach|change|ticket|link|param\w*"
    r"|arguments?|options?|flag|variable|settings?|service|server|app|tool|plugin|library|module|class"
    r"|function|method|endpoint|api|type|input|box|check\w*|must|should|needs?|ha[sd]|works?|lies"
    r"|fail\w*|version|step|section|chapter|button|label|icon|tests?|primaria|foránea|pública)"
    r"\b|\s(?:and|or|but|if|und|oder|et|ou|y)\b",
    re.IGNORECASE,
)
_IT_IS = r"[\s,](?:it['’]s|it is|c'est|es ist)(?:\s(?:now|jetzt))?"
# Sentences that state a password, and how much its looks must show then.
_PHRASES = (
    (_LOGIN_WORDS + _PURPOSE_PHRASE + _CHANGE_WORDS + _TO, is_stated_password),
    (rf"{_LOGIN_WORDS}[^\n.:=]{{0,40}}?(?:{_ASKING}|{_IT_IS})\s", is_made_password),
    (r"\b(?:with|and|mit|und|avec|et|con|y|com|e|user(?:name)?\s\S{1,40})\s(?:the\s|le\s|la\s)?"
     + _LOGIN_WORDS + r"\s", is_stated_password),
    (_LOGIN_WORDS + _PURPOSE_PHRASE + r"\s", is_told_password),
    (_LOGIN_WORDS + r"\s", is_signed_password),
    (_LOGIN_WORDS + _CHANGED_FROM + rf"\S{{6,40}}\s{_CHANGED_TO}\s", is_stated_password),
    (_LOGIN_WORDS + r"[^\n]{0,80}?\b(?:new|neue|nuova?|nueva?|nouveau|nova)\b"
     r"(?:\sone)?" + _VERB, is_stated_password),
)  # fmt: skip
# Several plain words that are stated to be the password.
_STATED = r"[^\n.:=]{0,40}?(?:\s(?:is|was|ist|war|lautet|est|es|era|è|é)|\s?[:=])"
_PLAIN_WORDS = (
    r"[:\s]{0,3}([\"'\x60]?(?:[a-z]{3,12}[ \-.]){3,8}[a-z]{3,12}[\"'\x60]?)"
    r"(?:[.,;!?)\n]|\s(?:and|und)\s|\s?\z)"
)
_NAMED_PHRASES = (
    (("pass phrase", "pass-phrase", "passphrase"),
     rf"pass[ \-]?phrase\b(?:{_STATED}|[^\n.:=]{{0,40}}?\s(?:to|auf))", is_pass_phrase),
    (("password", "passwort"), rf"(?:password|passwort)\b{_STATED}", is_password_phrase),
)  # fmt: skip
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


def is_number(_: str) -> bool:
    """Accept the number behind a word that leaves no doubt."""
    return True


def is_code(value: str) -> bool:
    """Check the number near a word that may mean something else: no year."""
    return _YEAR.fullmatch(value) is None


def is_spare_code(value: str) -> bool:
    """Check the first of several codes: no date, and digits in most of its groups."""
    groups = re.split(r"[\s,;]", value)[0].split("-")
    numbered = sum(any(char.isdigit() for char in group) for group in groups)
    shown = value.isupper() or 2 * numbered > len(groups)
    return len(value) > 3 and _DATE.search(value) is None and shown


def is_argument(value: str) -> bool:
    """Check the argument after a password's name: no other name, such as password_2."""
    return is_password(value) and _FIELD_NAME.fullmatch(value) is None


def has_few_vowels(value: str) -> bool:
    """Check letters in groups: drawn by chance, with fewer vowels than words have."""
    letters = [char for char in value if char.isalpha()]
    return sum(char in "aeiou" for char in letters) < 0.3 * len(letters)


def is_card_number(value: str) -> bool:
    """Check the length, issuer and check digit (Luhn) of a payment card's number."""
    digits = [int(char) for char in value if char.isdigit()]
    written = "".join(map(str, digits))
    if not _CARD_ISSUER.fullmatch(written):
        return False
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


# Visa, Mastercard, American Express, Discover, Diners, JCB.
_CARD_ISSUER = lazy_pattern(
    r"4\d{12}(?:\d{3}){0,2}|(?:5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)\d{12,14}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}"
)
_FINGERPRINT = lazy_pattern(r"\bSHA256:$")  # of a key: public
_YEAR = lazy_pattern(r"(?:19|20)\d\d")
_DATE = lazy_pattern(r"(?:19|20)\d\d-\d\d-\d\d")
_FIELD_NAME = lazy_pattern(r"(?:[a-z]+[_\-.])*(?:pass|pwd|token|secret|key)[a-z]*(?:[_\-.]\w+)*")
_FORM_CHECKS = {
    check.__name__: check
    for check in (
        *(is_number, is_code, is_spare_code, is_argument, has_few_vowels, is_option_value),
        *(is_given_password, is_stated_password, is_password, is_url_password, is_made_password),
        *(is_clear_password, is_random, is_random_or_hex, is_real_token, is_told_password),
        *(is_typed_password, is_signed_password),
    )
}


_FRAGMENTS = {"<WORD>": _WORD, "<LOGIN>": _LOGIN_WORDS}
_CODE_KEYWORDS = (
    *("code", "combin", "combo", "kombin", "código", "codigo", "codice", "puk", "geheimzahl"),
    *("otp", "one-time", "tan ", "tan:"),
)
# The zip code of the office opens no door.
_OTHER_CODES = lazy_pattern(
    r"\b(?:zip|post(?:al)?|area|country|error|status|exit|return|source|dress|qr|bar|promo|discount"
    r"|voucher|product|item|airport|tax|currency|language|booking|order|tracking|colou?r|sort|swift"
    r"|response|reason|dial(?:ling)?|project|site|station|course|customer|cost|vendor|model|part|review|path)[\s\-]code|\bcode\spostal|código\spostal|codice\s(?:postale|fiscale)"
    r"|postleitzahl|\bcode\s(?:review|path|owner|base)|\b(?:shows?|showed|displays?|reports?|returns?|throws?|zeigte?|meldete?|affiche|muestra|mostra)\s(?:\S+\s){0,2}?(?:code|código|codice)"
    r"|\b(?:version|nixpkgs|chip|board|header|gpio)\spin\b|\bpin\s(?:count|layout|pitch|spacing|map\w*|mode|diode)|\b(?:otp|tan|codes?)\s(?:window|life|length|format|field|time|interval|digit|limit|expiry|page)",
    re.IGNORECASE,
)


# The name of a network, the host of a login.
_NAMES = lazy_pattern(
    r"^\s(?:--no-|-U (?:install|verify)\b)"
    r"|\b(?:wi-?fi|wlan)\s(?:name|network|netz(?:werk)?|ssid|model|router)\s?[:=]"
    r"|\blog-?in\s(?:host|server|node|page|url|version)\s?[:=]",
    re.IGNORECASE,
)


def _read_forms() -> Iterator[SecretKind]:
    """Read the forms; the fragments are for the patterns below, too."""
    for name, *columns in _read_table("secret_forms.txt"):
        pattern = columns[-1]
        for mark, fragment in _FRAGMENTS.items():
            pattern = pattern.replace(mark, fragment)
        if len(columns) == 1:
            _FRAGMENTS[f"<{name}>"] = pattern
        else:
            check, words, _ = columns
            keywords = _LOGIN_KEYWORDS if words == "<LOGIN>" else tuple(words.split(","))
            unless = _OTHER_CODES if name == "pin" else _NAMES
            yield SecretKind(name, keywords, pattern, _FORM_CHECKS[check], unless=unless)


_FORMS = tuple(_read_forms())
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
    *(
        SecretKind(name, tuple(words.split()), pattern, long=True)
        for name, words, pattern in _read_table("secret_tokens.txt")
    ),
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
        long=True,
    ),
    SecretKind(
        "wallet-key",
        (),  # found by its shape
        r"\b(?:[KL][1-9A-HJ-NP-Za-km-z]{51}|5[HJK][1-9A-HJ-NP-Za-km-z]{49})\b",
        is_drawn_token,
        long=True,
    ),
    SecretKind(  # of any vendor
        "api-key",
        (),  # found by its shape
        r"(?:^|[\s\"'\x60(:,])([A-Za-z][A-Za-z0-9]{1,9}(?:[_\-.][A-Za-z0-9]{1,8}){0,2}[_\-.]"
        r"[A-Za-z0-9_\-]{36,}(?:\.[A-Za-z0-9_\-]{6,})?)(?:[^\w/.@\-]|[.]?(?:\s|\z))",
        is_vendor_token,
        long=True,
    ),
    SecretKind(
        "kubernetes-token", ("--token",), r"--token[ =]([a-z0-9]{6}\.[a-z0-9]{16})\b", is_random
    ),
    SecretKind(
        "card-number",
        (),  # found by its shape; digits after a point are no card's
        r"(?:^|[^\w.,+\-*/])([3-6][0-9]{3}(?:[ \-]?[0-9]){9,15})(?:[^\w*+.]|\.\D|\.?\z)",
        is_card_number,
    ),
    SecretKind(
        "pin",
        (*_CODE_KEYWORDS, *_LOGIN_KEYWORDS),
        rf"(?i)(?:[\w\-]{{1,15}}[ \-])?{_FRAGMENTS['<PLACED_CODE>']}|{_FRAGMENTS['<NAMED_CODE>']}",
        is_number,
        unless=_OTHER_CODES,
    ),
    *(kind for kind in _FORMS if kind.name != "password"),
    SecretKind(
        "one-time-code-seed",
        ("totp", "otp", "2fa", "mfa", "authenticator", "two-fac", "two fac", "2-fac", "second fac"),
        r"(?:(?i:\b(?:totp|2fa|mfa|otp|authenticator|otpauth|(?:two|2|second)[\s\-]factor)\b))[^\n]{0,60}?[\s=:\"'\x60]"
        r"([A-Z2-7]{16,64})\b",
        is_code_seed,
    ),
    SecretKind(
        "seed-phrase",
        ("phrase", "mnemonic", "frase", "semilla", "seed", "12 w", "24 w", "twelve", "recovery w"),
        r"(?i)(?:phrase|mnemonic|mnémonique|frase|semilla|(?:recovery|seed) words?"
        r"|(?:wallet|ledger) seed|seed is|(?:12|24|twelve) (?:words|wörter|woorden))"
        r"[^\n.!?]{0,40}?[:\s\"'\x60«]((?:[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b",
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
        "url-credentials", ("@",), r"(?:^|\s)[\w.\-]{1,40}:([^\s:/@]{8,40})@\w", is_made_password
    ),
    SecretKind(
        "url-credentials",
        ("://",),
        r"\b[a-z][a-z0-9+.\-]{1,30}://([A-Za-z0-9_\-]{20,})(?::[^\s/@]{0,40})?@[A-Za-z0-9]",
        is_random_or_hex,
    ),
    SecretKind(
        "password",
        ("curl",),
        r"\bcurl\b[^\n]{0,}?\s(?:-u|--user)[ =]{0,2}[\"']?[^\s:\"']{1,}:([^\s\"']{3,})",
        is_url_password,
    ),
    *(kind for kind in _FORMS if kind.name == "password"),
    SecretKind("password", ("echo", "printf"), _ECHOED, is_option_value),
    SecretKind("password", ("<<<",), _HERE_STRING + _NEXT_WORD, is_option_value),
    SecretKind("password", ("<<<",), r"<<<\s{0,2}" + _NEXT_WORD, is_told_password),
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
        r"(?i)(?:<[\w:.]{0,40}(?:password|passwd|pwd|secret|token)(?:\s[^<>\n]{0,80})?>|[\"'<][\w.]{0,40}(?:password|secret)"
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
        SecretKind("password", words, rf"(?i)\b{named}{_PLAIN_WORDS}", check)
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
        is_assigned_secret,
    ),
    SecretKind(
        "password",
        _LOGIN_KEYWORDS,
        rf"(?i){_LOGIN_WORDS}{_PURPOSE_PHRASE}{_CHANGE_WORDS}{_GIVES}{_WORD}",
        is_given_password,
    ),
    SecretKind(
        "password",
        _LOGIN_KEYWORDS,
        rf"(?i){_LOGIN_WORDS}(?:\s[^\s.:=,;]{{1,20}}){{1,5}}?{_GIVES}{_WORD}",
        is_given_password,
        unless=_OTHER_NOUNS,
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
        r"(?i)(?:(?:(?:^|[,;:.(!?\n]\s?|\b(?:the|my|your|ur|his|her|our|their|its|and|with|new|old|this)\s)p?ass|\bpw)\sis\s"
        r"|(?:\b|_|(?-i:[a-z]P)|db|smtp|ftp|mail|admin|root|user|sql|my)(?:p?ass|pw)"
        rf"{_ASSIGNMENT})\s{{0,2}}{_WORD}",
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
        rf"(?i)(?:^|\s){_WORD}[\"'\x60»”,]?\s(?:(?:as|als|comme|como|come)\s|(?:is|was|that['’]?s|ist|war"
        rf"|est|es|è|é)\s(?:the|my|your|ur|our|his|her|their|das|mein|unser|le|mon|notre|la|mi|mijn|het)\s)"
        rf"(?:[\w\-]{{1,12}}\s){{0,2}}{_LOGIN_WORDS}{_AFTER_LOGIN_WORD}",
        is_given_password,
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
        rf"(?i)(?:\b|_){_KEY_WORDS}\b(?:[^\n.:=]{{0,40}}?(?:\s(?:is|was|to)|\s?[:=]))?"
        r"[\s:=(,\"'\x60]{1,4}([a-z0-9_\-+/=.~]{16,})",
        is_stated_secret,
        unless=_FINGERPRINT,
    ),
    SecretKind(  # any key that is not public, and names such as BEARER_TOKEN_BILLING
        "secret",
        ("key", "secret", "token", " pat "),
        r"(?i)(?:public|host|primary|foreign|cache|sort|object|partition|idempotency|lookup|row|hash|gpg"
        r"|pgp|ssh)[_\- ]?key|(?:(?:\bkey|\bpat|(?-i:[a-z]Key))\b[^\n.:=]{0,40}?"
        r"(?:\s(?:is|was|ist|est|es|è|é)\s|\s?[:=]\s?|\s)|(?-i:(?:KEY|SECRET|TOKEN)(?:_[A-Z0-9]{2,20}){1,2})"
        r"\s?[:=]\s?)[\"'\x60]?([a-z0-9_\-+/=.~]{20,})",
        is_drawn_or_hex,
        unless=_FINGERPRINT,
    ),
    SecretKind(  # "... is the access token"
        "secret",
        ("secret", "token", "api"),
        r"(?i)(?:^|[\s\"'\x60])([a-z0-9_\-+/=.~]{18,})[\"'\x60]?\s(?:is|was|ist|est|es|è|é)\s"
        rf"(?:\w{{2,5}}\s)?(?:\w+\s)?{_KEY_WORDS}\b",
        is_random_or_hex,
    ),
    SecretKind(
        "secret", ("login",), r"(?i)\blogin\s+([0-9a-z_\-]{30,})(?:\s|\z)", is_random_or_hex
    ),
)
