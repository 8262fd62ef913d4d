"""Whether a value that stands where a secret would is one.

A sentence about passwords goes on with names, versions and code; a secret is drawn by chance
or made by a person. The checks differ in how much the words around the value already say.
"""

from __future__ import annotations

import base64
import math
import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

from bethink.core.lazy import lazy_pattern
from bethink.lang.words import stop_words, word_set_of

_PLACEHOLDER = lazy_pattern(
    r"your|example|change[_-]?me(?!\W*\d)|placeholder|dummy|sample|xxxx|todo|redacted|insert|replace"
    r"|\$\{|\{\{|\$\(|%\(|process\.env|environ|getenv|env\[|secrets?\.|vault[:/]|\*\*\*|\.\.\.|…"
    r"|^\d{1,2}(?:文字|桁|位|个|個|자|字)|^\{[A-Za-z_][\w.]*\}|^<.*>$|^![a-z]+$|(?-i:^\$(?:[A-Z_][A-Z0-9_]*|[a-z_][a-z0-9_]*)$)|^%\w+%$|^[\d.,:%/-]*[.,:%/-][\d.,:%/-]*$"
    r"|^(?:none|null|true|false|undefined|1?passw(?:or)?d|pass|pw|secret|token|api_?key|string|str"
    r"|test(?:ing)?|admin|root|guest|user(?:name)?|foo|bar|required|optional|secretstr|hidden)$",
    re.IGNORECASE,
)
_EXAMPLE_MARKER = lazy_pattern(r"example|xxxxx|your|placeholder|\.\.\.|00000000", re.IGNORECASE)
_CODE_EXPRESSION = lazy_pattern(
    r"\$?[A-Za-z_][\w.]*(?:->\w+)*[\[(]|[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+(?:$|[})\],;])"
)
_SIGNS = lazy_pattern(r"[\W_]+")
_BRACKETS = frozenset("()[]{}<>;")
_PATH_PREFIX = lazy_pattern(r"(?:~|\.{1,2})?/|arn:|[A-Za-z]:\\|\w+://")
_HEX = lazy_pattern(r"(?:0x)?[0-9a-fA-F]+")
_UUID = lazy_pattern(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ULID = lazy_pattern(r"01[0-9A-HJKMNP-TV-Z]{24}")
_NUMBERED_NAME = lazy_pattern(
    r"(?:[A-Za-z]+|v?\d+)(?:[-_.](?:[A-Za-z]+|v?\d+))+|[A-Z]?[a-z]+\d{1,2}|(?:[A-Z]{2,}|issue|pr|ticket)#\d+"
)
_WORDY_NAME = lazy_pattern(r"[a-z]{2,}(?:[-_.](?:[a-z]{2,}|\d{1,2}))+")
_SPLIT = lazy_pattern(r"[-_/.+]+")
_ALGORITHMS = frozenset(
    {"sha1", "sha256", "sha384", "sha512", "sha", "md5", "hmac", "aes", "aes128", "aes256", "rsa"}
    | {"rs256", "hs256", "hs512", "es256", "ed25519", "base64", "oauth2", "jwt", "uuid", "uuid4"}
    | {"utf", "bcrypt", "argon2", "argon2id", "scrypt", "pbkdf2", "gcm", "tls", "x509", "pkcs12"}
)
# Measures (16-character, 128bit), versions, dates, ports, paths, programs that keep passwords.
_PUBLIC = ("AAAA", "MII", "iVBOR", "R0lGOD", "UklGR")
_NO_PASSWORD = lazy_pattern(
    r"\d+(?:\.\d+)?(?:[num]s|sec|min|hrs?|[kmg]i?b(?:ps)?|px|[cmk]?m|k?g|[kmg]?hz|k?wh?|[qr]ps|rpm)"
    r"|(?:[\d.]+:){1,2}\d+/[a-z]+|(?-i:[a-z]\w*(?:/[a-z]\w*){2,})|"
    r"\d+-(?:\d+)?[a-z]+(?:-[a-z]+)*|\d+(?:st|nd|rd|th|bits?|bytes?|chars?|characters|digits|days|zeichen)"
    r"|v?\d+(?:\.\d+)+\S*|\d{4}-\d\d-\d\d\S*|[\w.\-]+:\d{2,5}|(?:1password|bitwarden|keepass|lastpass)\S*",
    re.IGNORECASE,
)
# A vowel that a digit stands for (m0nster), which names (log4j, utf8mb4) hardly have.
_DISGUISED = lazy_pattern(r"(?i)[b-df-hj-np-tv-z][0134][b-df-hj-np-tv-z][a-z]*[aeiou]")
_MAX_PHRASE = 8  # words
# Lower case as a machine draws it: six consonants in a row, or twice four.
_UNSPOKEN = lazy_pattern(
    r"(?=.{10})(?=.*(?:[b-df-hj-np-tv-z]{6}|[b-df-hj-np-tv-xz]{4}.*[b-df-hj-np-tv-xz]{4}))[a-z]+"
)
_MAX_PASSWORD = 80  # characters
_ROUTER_DIGITS = 20
_HEX_KEY, _TOKEN_RUN, _PERSONAL_DIGITS = 30, 16, 6  # characters
# Runs of lower case (with its capital), upper case, digits; single signs.
_PIECE = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^A-Za-z0-9]")
_MAX_SECRET_PIECE = 3.5
_MIN_VOWELS = 0.27  # of a word's letters, which have some 0.4; of letters drawn by chance 0.23
# Of words drawn by chance 98 in 100 are in such short pieces; of names (Draft2Digital) none.
_MIN_PIECES, _MAX_DRAWN_PIECE = 4, 2.7
_NAME_SIGNS = frozenset("-_./:@#,()")
_PASSWORD_SIGNS = frozenset("!$&*+#%?^~")
_PORTS = lazy_pattern(r"(?:[\d.]+:){1,2}\d+(?:/[a-z]+)?")  # docker run -p 27017:27017
_PLAIN_WORD = lazy_pattern(r"\(?[A-Za-z]?[a-z]+(?:[-'][a-z]+)*")
_FIELD_NAME = lazy_pattern(r"(?:[a-z]+[_\-.])*(?:pass|pwd|token|secret|key)[a-z]*(?:[_\-.]\w+)*")
_YEAR = lazy_pattern(r"(?:19|20)\d\d")
_DATE = lazy_pattern(r"(?:19|20)\d\d([-./])\d\d\1\d\d|\b\d\d?([-./])\d\d?\2(?:19|20)\d\d\b")
_SPOKEN = ("en", "de", "fr", "es", "it", "pt", "nl")
_MAX_STOP_SHARE = 0.25  # of a sentence in any language it is about one half
# Visa, Mastercard, American Express, Discover, Diners, JCB.
_CARD_ISSUER = lazy_pattern(
    r"4\d{12}(?:\d{3}){0,2}|(?:5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)\d{12,14}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|35(?:2[89]|[3-8]\d)\d{12}"
)
_NEXT_FIELD = lazy_pattern(r"[,;&](?=[\w .\-]{1,40}=)|[,;]$")
_TRAILING_PUNCTUATION = ".,;:!?)]}>\\"


def trim_value(value: str) -> str:
    """Strip a following field of the same line and trailing punctuation."""
    value = _NEXT_FIELD.split(value, maxsplit=1)[0]
    return value.rstrip(_TRAILING_PUNCTUATION) if len(value) > 6 else value


def entropy(value: str) -> float:
    """Return the Shannon entropy in bits per character."""
    total = len(value)
    counts = Counter(value).values()
    return -sum(count / total * math.log2(count / total) for count in counts)


def is_real_token(value: str) -> bool:
    """Check a token that its prefix already identifies: no placeholder of a documentation."""
    return _EXAMPLE_MARKER.search(value) is None and len(set(value)) >= 6


def is_generated(value: str) -> bool:
    """Check for a word made by a machine: kinds of characters alternate, hex digits or a UUID."""
    if _UUID.fullmatch(value):
        return True
    if _HEX.fullmatch(value):
        return len(value) >= 32 and is_real_token(value)
    return _is_random(value) and _WORDY_NAME.fullmatch(value) is None


def _is_random(value: str) -> bool:
    if len(value) < 8 or _is_not_secret(value) or _kind_change_rate(value) < 0.3:
        return False
    if not _has_kind(value, str.isdigit):
        return len(value) >= 20 and entropy(value) >= 3.5 and not _is_name(value)
    return _has_kind(value, str.isalpha) and entropy(value) >= 2.5


def is_drawn(value: str) -> bool:
    """Check a word for chance, whatever its signs: short pieces, unlike words and dates; or hex."""
    bare = _SIGNS.sub("", value)
    if _HEX.fullmatch(bare):
        return is_generated(value)
    if len(bare) < 18 or not is_real_token(value) or _is_not_secret(bare):
        return False
    return _has_kind(bare, str.isdigit) and not _is_name(bare) and entropy(bare) >= 3.5


def is_mixed(value: str) -> bool:
    """Check a word for chance that is no sum of anything: not of hex digits alone."""
    return _HEX.fullmatch(_SIGNS.sub("", value)) is None and is_drawn(value)


def is_alone(value: str) -> bool:
    """Check a long word that nothing names: drawn by chance, no public key or picture."""
    return not value.startswith(_PUBLIC) and is_mixed(value)


def is_vendor_token(value: str) -> bool:
    """Check a prefix and what follows: drawn by chance, not the digest that "sha512-" names."""
    prefix, *parts = _SPLIT.split(value)
    unbroken = max(map(len, parts)) >= 14 and not prefix.lower().startswith("sha")
    return unbroken and is_drawn("".join(parts))


def is_secret(value: str) -> bool:
    """Check a value assigned to a token, key or secret: made by a machine, no name in words."""
    if len(value) < 8 or _is_not_secret(value) or _WORDY_NAME.fullmatch(value):
        return False
    if " " in value:
        return any(is_generated(part) for part in value.split())
    if _UUID.fullmatch(value) or _HEX.fullmatch(value):
        return len(value) >= 16 and not value.isdigit() and entropy(value) >= 2.5
    if not _has_kind(value, str.isdigit):
        changing = _kind_change_rate(value) >= 0.3 and entropy(value) >= 3.3
        return len(value) >= 16 and changing and not _is_name(value)
    return _kind_change_rate(value) >= 0.2 or (len(value) >= 20 and entropy(value) >= 3.3)


def is_password(value: str) -> bool:
    """Check a value assigned to a password: not a word, a placeholder or code."""
    value = value.removesuffix(":")  # of a condition, as in "if password == other:"
    if len(value) < 6 or _is_not_secret(value):
        return False
    if value.isdigit():
        return len(value) >= 8 and len(set(value)) > 2
    if " " in value:
        words = value.split()
        return len(words) <= 4 and any(len(one) > 4 and _count_kinds(one) > 2 for one in words)
    kinds = (_has_kind(value, str.isdigit), _has_kind(value, str.isalpha), not value.isalnum())
    if sum(kinds) >= 2 and "-" not in value and "_" not in value:
        return True
    return is_secret(value) or _UNSPOKEN.fullmatch(value) is not None


def is_given_password(value: str) -> bool:
    """Check what a sentence says the password is: letters and digits, no measure or version."""
    mixed = _has_kind(value, str.isdigit) or _is_shuffled(value)
    if not (mixed and _has_kind(value, str.isalpha)) or _is_not_secret(value) or " " in value:
        return False
    return 6 <= len(value) <= _MAX_PASSWORD and _NO_PASSWORD.fullmatch(value) is None


def _is_shuffled(value: str) -> bool:
    """Whether a word without digits is none of a language: short pieces, or a sign inside."""
    if _UNSPOKEN.fullmatch(value):
        return True
    signed = _NAME_SIGNS.isdisjoint(value) and not {*"!$*^"}.isdisjoint(value[1:-1])
    return len(value) >= 8 and _count_kinds(value) >= 2 and (signed or not _is_name(value))


def is_unnamed_password(value: str) -> bool:
    """Check a word where a name could stand: no numbered name, such as postgres-16."""
    named = _NUMBERED_NAME.fullmatch(value) is not None
    return is_given_password(value) and not named and is_password(value)


def is_signed_password(value: str) -> bool:
    """Check a word where a name often stands: with a sign that no name has."""
    return (
        is_unnamed_password(value)
        and _count_kinds(value) >= 3
        and not _PASSWORD_SIGNS.isdisjoint(value)
    )


def is_chance_password(value: str) -> bool:
    """Check a word that nothing states to be the password: drawn by chance.

    Names of hosts, versions and standards are letters and digits, too.
    """
    if len(value) < 8 or not _NAME_SIGNS.isdisjoint(value) or not is_unnamed_password(value):
        return False
    pieces = len(_PIECE.findall(value))
    mixed = _count_kinds(value) >= 3 and _kind_change_rate(value) >= 0.3
    return mixed and pieces >= _MIN_PIECES and len(value) / pieces <= _MAX_DRAWN_PIECE


def is_password_nearby(value: str) -> bool:
    """Check a word near one for passwords: drawn, signed, disguised, a router's 20 digits."""
    by_router = value.isdigit() and len(value) == _ROUTER_DIGITS
    disguised = len(value) >= 8 and _DISGUISED.search(value) and is_unnamed_password(value)
    return bool(is_chance_password(value) or is_signed_password(value) or by_router or disguised)


def is_token_nearby(value: str) -> bool:
    """Check a word near one for keys: a long run drawn by chance, no address, id or picture."""
    is_id = _UUID.fullmatch(value) or _ULID.fullmatch(value)
    if "://" in value or is_id or value.startswith((*_PUBLIC, "SHA256:")):
        return False
    longest = max(re.findall(r"[A-Za-z0-9]+", value), key=len, default="")
    if _HEX.fullmatch(longest):
        return len(longest) >= _HEX_KEY and is_real_token(longest)
    return len(longest) >= _TOKEN_RUN and is_drawn(longest)


def is_chosen_password(value: str) -> bool:
    """Check the value of a password's variable: also words, but none that names a field."""
    wordy = _WORDY_NAME.fullmatch(value.lower()) and _FIELD_NAME.fullmatch(value.lower()) is None
    phrase = " " in value and len(value.split()) <= _MAX_PHRASE
    return bool((wordy or phrase) and not _is_not_secret(value))


def is_grouped_code(value: str) -> bool:
    """Check groups of characters of one length: with digits in most, or unlike words."""
    groups = re.split(r"[ \-]", value)
    letters = "".join(groups).lower()
    is_numbers = all(map(str.isdigit, groups[groups[0].isalpha() :]))  # maybe after a word
    if is_numbers or len({*letters}) < 6 or value not in {value.upper(), value.lower()}:
        return False
    numbered = sum(_has_kind(group, str.isdigit) for group in groups)
    silent = any({*group.lower()}.isdisjoint("aeiouy0123456789") for group in groups)
    return 2 * numbered >= len(groups) or silent


def is_named_number(value: str) -> bool:
    """Check what follows the name of a personal number: no words between, and no date."""
    parts = [part for part in _SIGNS.split(value) if not _has_kind(part, str.isdigit)]
    enough = sum(map(str.isdigit, _DATE.sub("", value))) >= _PERSONAL_DIGITS
    return enough and max(map(len, parts), default=0) < 3


def is_typed_password(value: str) -> bool:
    """Check the word after a password option: no other option, plain word or placeholder."""
    if value[:1] in "-<[" or _PLACEHOLDER.search(value) or _PATH_PREFIX.match(value):
        return False
    if len(value) < 6 or _PORTS.fullmatch(value) or _PLAIN_WORD.fullmatch(value):
        return False
    return _count_kinds(value) >= 2 or len(value) >= 12


def is_url_password(value: str) -> bool:
    """Check the password part before the @ of a URL."""
    return len(value) >= 3 and not _PLACEHOLDER.search(value)


def is_argument(value: str) -> bool:
    """Check the argument after a password's name: no other name, such as password_2."""
    return is_password(value) and _FIELD_NAME.fullmatch(value) is None


def is_basic_credentials(value: str) -> bool:
    """Check whether base64 text, no word, decodes to ``user:password``, or to a key alone."""
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4))
    except ValueError:
        return False
    return (decoded.isascii() or not value.isalpha()) and (b":" in decoded[1:] or b"_" in decoded)


def is_key_block(value: str) -> bool:
    """Check whether a private key block holds a key, not just its first and last line."""
    return re.search(r"[A-Za-z0-9+/]{24}", value) is not None


def is_pass_phrase(value: str) -> bool:
    """Check several plain words: hardly inflected, and no stop word, which every sentence has."""
    words = [word for word in re.split(r"[ \-.]", value.strip("\"'\x60").lower()) if word]
    common = stop_words("en", "de") | word_set_of("en", "stop_words", "sketch")
    inflected = words[0].endswith("ing") and any(word.endswith("ed") for word in words)
    stated = len(words) >= 4 and not words[0].endswith("ed") and not inflected
    return stated and common.isdisjoint(words)


def is_seed_phrase(value: str) -> bool:
    """Check the words of a wallet's seed (BIP-39): hardly any is a stop word, few come twice."""
    words = re.sub(r"[\d.):,]", " ", value).lower().split()
    stops = len([word for word in words if word in stop_words(*_SPOKEN)])
    distinct = len(set(words)) >= 0.9 * len(words)
    return 12 <= len(words) <= 24 and distinct and stops <= _MAX_STOP_SHARE * len(words)


def is_code_seed(value: str) -> bool:
    """Check the seed of one-time codes (base32): with digits, or fewer vowels than words have."""
    vowels = sum(char in "AEIOU" for char in value) / len(value)
    return entropy(value) >= 2.7 and (_has_kind(value, str.isdigit) or vowels < 0.35)


def is_spare_code(value: str) -> bool:
    """Check one or several codes: no date, and digits in most of their groups."""
    groups = re.split(r"[\s,;\-]+", value)
    numbered = sum(_has_kind(group, str.isdigit) for group in groups)
    shown = value.isupper() or 2 * numbered > len(groups)
    return len(value) > 3 and _DATE.search(value) is None and shown


def is_card_number(value: str) -> bool:
    """Check the length, issuer and check digit (Luhn) of a payment card's number."""
    digits = [int(char) for char in value if char.isdigit()]
    if not _CARD_ISSUER.fullmatch("".join(map(str, digits))):
        return False
    doubled = [digit * 2 - 9 * (digit > 4) for digit in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


_IBAN = lazy_pattern(r"[A-Z]{2}\d\d[A-Z0-9]{11,30}")
# No letters that the office does not use, and no prefix that it has withdrawn.
_INSURANCE = lazy_pattern(r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]\d{6}[A-D]")
_SOCIAL = lazy_pattern(r"(?!000|666|9)\d{3}(?!00)\d\d(?!0000)\d{4}")


def is_personal_number(value: str) -> bool:
    """Check the number of a person or an account: by its check digits, or the parts it has."""
    bare = re.sub(r"[\s\-]", "", value).upper()
    if _IBAN.fullmatch(bare):
        return int("".join(str(int(char, 36)) for char in bare[4:] + bare[:4])) % 97 == 1
    if not bare.isdigit():
        return _INSURANCE.fullmatch(bare) is not None
    if len(bare) == 11:
        return _is_tax_number(bare)
    return _SOCIAL.fullmatch(bare) is not None


def _is_tax_number(digits: str) -> bool:
    """Check a German tax number: one digit comes two or three times, then ISO 7064 (11, 10)."""
    repeated = [count for count in Counter(digits[:10]).values() if count > 1]
    product = 10
    for digit in digits[:10]:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    right = (11 - product) % 10 == int(digits[10])
    return right and digits[0] != "0" and repeated in ([2], [3])


def is_any(_: str) -> bool:
    """Accept what the pattern alone makes sure of."""
    return True


def is_code(value: str) -> bool:
    """Check a code in digits: not a year."""
    return _YEAR.fullmatch(value) is None


def _is_name(value: str) -> bool:
    """Whether a word is made of words, as ConvertTo-SecureString is."""
    bare = _SIGNS.sub("", value)
    letters = [char in "aeiouy" for char in bare.lower() if char.isalpha()]
    voiced = sum(letters) >= _MIN_VOWELS * len(letters)
    return voiced and len(bare) > _MAX_SECRET_PIECE * len(_PIECE.findall(bare))


def _is_not_secret(value: str) -> bool:
    """Check for a placeholder, code, a path, a number or the name of an algorithm."""
    bare = value.rstrip(_TRAILING_PUNCTUATION)
    if _PLACEHOLDER.search(value) or _PLACEHOLDER.search(bare):
        return True
    if not _BRACKETS.isdisjoint(value) and not _has_kind(value, str.isdigit):
        return True  # code
    if _PATH_PREFIX.match(value) and not any(map(_is_random_segment, value.split("/"))):
        return True
    if _CODE_EXPRESSION.match(value) and _kind_change_rate(_SIGNS.sub("", value)) < 0.3:
        return True
    return len(value) < 24 and not _ALGORITHMS.isdisjoint(_SPLIT.split(value.lower()))


def _is_random_segment(part: str) -> bool:
    return len(part) >= 10 and _kind_change_rate(_SIGNS.sub("", part)) >= 0.3


def _has_kind(value: str, is_kind: Callable[[str], bool]) -> bool:
    return any(map(is_kind, value))


def _count_kinds(value: str) -> int:
    """Count the kinds of characters: lower case, upper case, digits, signs."""
    tests = (str.islower, str.isupper, str.isdigit, lambda char: not char.isalnum())
    return sum(_has_kind(value, is_kind) for is_kind in tests)


def _kind_change_rate(value: str) -> float:
    """Return the share of adjacent characters of different kinds (lower, upper, digit)."""
    kinds = [
        "a" if c.islower() else "A" if c.isupper() else "0" if c.isdigit() else c for c in value
    ]
    changed = sum(one != other for one, other in pairwise(kinds))
    return changed / max(1, len(value) - 1)
