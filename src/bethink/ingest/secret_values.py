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
from pathlib import Path

from bethink.core.lazy import lazy_pattern
from bethink.lang.words import is_ordinary, stop_words, word_set_of

_PLACEHOLDER = lazy_pattern(
    r"your|example|change[_-]?me(?!\W*\d)|placeholder|dummy|sample|xxxx|\btodo\b|redacted|insert|replace"
    r"|\$\{|\{\{|\$\(|%\(|process\.env|environ|getenv|env\[|secrets?\.|vault[:/]|\*\*\*|\.\.\.|…"
    r"|^\d{1,2}(?:文字|桁|位|个|個|자|字)|^\{[A-Za-z_][\w.]*\}|^<.*>$|^![a-z]+$|(?-i:^\$(?:[A-Z_][A-Z0-9_]*|[a-z_][a-z0-9_]*)$)|^%\w+%$|^\d*[.,:%/-][\d.,:%/-]*$"
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
_PATH_PREFIX = lazy_pattern(
    r"(?:~|\.{1,2})?(?:/|%2F)|[\w\-]+/[\w\-./]+\.\w{2,4}$|arn:|[A-Za-z]:\\|\w+://"
)
_HEX = lazy_pattern(r"(?:0x)?[0-9a-fA-F]+")
_PARTED = lazy_pattern(r"\w+(?:-\w+)+")
_UUID = lazy_pattern(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ULID = lazy_pattern(r"01[0-9A-HJKMNP-TV-Z]{24}")
_NUMBERED_NAME = lazy_pattern(
    r"(?:[A-Za-z]+|v?\d+)(?:[-_.](?:[A-Za-z]+|v?\d+))+|[A-Z]?[a-z]+\d{1,2}|(?:[A-Z]{2,}|issue|pr|ticket)#\d+"
)
_WORDY_NAME = lazy_pattern(r"[a-z]{2,}(?:[-_.](?:[a-z]{2,}|\d{1,2}))+")
_SPLIT = lazy_pattern(r"[-_/.+]+")
_ALGORITHM = lazy_pattern(
    r"(?:^|[-_/.+])(?:sha(?:1|256|384|512)?|md5|hmac|aes(?:128|256)?|rsa|[re]s256|hs(?:256|512)|ed25519"
    r"|base64|oauth2|jwt|uuid4?|utf|[bs]crypt|argon2(?:id)?|pbkdf2|gcm|tls|x509|pkcs12)(?:$|[-_/.+])"
)
# Measures (16-character, 128bit), versions, dates, ports, paths, programs that keep passwords.
_PUBLIC = ("AAAA", "MII", "iVBOR", "R0lGOD", "UklGR")
_NO_PASSWORD = lazy_pattern(
    r"\d+(?:\.\d+)?(?:[num]s|sec|min|hrs?|[kmg]i?b(?:ps)?|px|[cmk]?m|k?g|[kmg]?hz|k?wh?|[qr]ps|rpm)"
    r"|(?:[\d.]+:){1,2}\d+/[a-z]+|(?-i:[a-z]\w*(?:/[a-z]\w*){2,})|"
    r"\d+-(?:\d+)?[a-z]+(?:-[a-z]+)*|\d+(?:st|nd|rd|th|bits?|bytes?|chars?|characters|digits|days|zeichen)"
    r"|v?\d+(?:\.\d+)+\S*|\d{4}-\d\d-\d\d\S*|[\w.\-]+:\d{2,5}z?|(?:1password|bitwarden|keepass|lastpass)\S*",
    re.IGNORECASE,
)
# A vowel that a digit stands for (m0nster), which names (log4j, utf8mb4) hardly have.
_DISGUISED = lazy_pattern(r"(?i)[b-df-hj-np-tv-z][0134][b-df-hj-np-tv-z][a-z]*[aeiou]")
_MAX_PHRASE = 8  # words
# How often words have a letter after another, from "aa" to "zz": 9 + log2 of the share.
_PAIRS = Path(__file__).with_name("letter_pairs.txt").read_text("utf-8")
# Their mean: of letters drawn by chance 2.6, in 5 of 100 words of ten letters
# above 4; of words of ten languages 5.5, in 1 of 100 below 4.4.
_MIN_SPOKEN, _SPOKEN_PAIRS = 4.1, 9
_MAX_PASSWORD = 80  # characters
_ROUTER_DIGITS = 20
_HEX_KEY, _TOKEN_RUN, _PERSONAL_DIGITS = 30, 16, 5  # characters
# Runs of lower case (with its capital), upper case, digits; single signs.
_PIECE = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^A-Za-z0-9]")
_RUN = lazy_pattern(r"[^\W\dA-Z_]+|[A-Z]+|\d+|(.)\1*", re.DOTALL)
_MAX_SECRET_PIECE = 3.5
# Of words drawn by chance 98 in 100 are in such short pieces; of names (Draft2Digital) none.
_MIN_PIECES, _MAX_DRAWN_PIECE = 4, 2.7
_NAME_SIGNS = frozenset("-_./:@#,()")
_PASSWORD_SIGNS = frozenset("!$&*+#%?^~")
_PORTS = lazy_pattern(r"(?:[\d.]+:){1,2}\d+(?:/[a-z]+)?")  # docker run -p 27017:27017
_PLAIN_WORD = lazy_pattern(r"\(?[A-Za-z]?[a-z]+(?:[-'][a-z]+)*")
_FIELD = "pass|pwd|token|secret|key"
_OF_FIELD = lazy_pattern(_FIELD)
_FIELD_NAME = lazy_pattern(rf"(?:[a-z]+[_\-.])*(?:{_FIELD})[a-z]*(?:[_\-.]\w+(?:[\-.]\w+)*)?")
# As what is said of a password ends, where the table of words has it not: verlopen, scaduta.
_PREDICATE = lazy_pattern(r"(?:e[ndr]|t|[éè]e?s?|[aiu][dt][oaei]s?|ig|lich|bar|isch|[ai]ble|al)$")
_YEAR = lazy_pattern(r"(?:19|20)\d\d")
_DATE = lazy_pattern(r"(?:19|20)\d\d([-./])\d\d\1\d\d|\b(?:\d\d?[-./])?\d\d?[-./](?:19|20)\d\d\b")
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
    named = len(value) < 8 or _is_not_secret(value) or _WORDY_NAME.fullmatch(value)
    if named or _kind_change_rate(value) < 0.3:
        return False
    if not _has_kind(value, str.isdigit):
        return len(value) >= 20 and entropy(value) >= 3.5 and not _is_name(value)
    return _has_kind(value, str.isalpha) and entropy(value) >= 2.5


def is_drawn(value: str) -> bool:
    """Check a word for chance, whatever its signs: short pieces, unlike words and dates; or hex."""
    bare = _SIGNS.sub("", value)
    if _HEX.fullmatch(bare):
        return is_generated(value)
    if len(bare) < 18 or not is_real_token(value) or _is_not_secret(value):
        return False
    return _has_kind(bare, str.isdigit) and not _is_name(bare) and entropy(bare) >= 3.5


def is_mixed(value: str) -> bool:
    """Check a word for chance: not of hex digits alone, no public key or picture."""
    summed = value.startswith(_PUBLIC) or _HEX.fullmatch(_SIGNS.sub("", value))
    return not summed and is_drawn(value)


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
    return is_secret(value) or (value.isalpha() and not _is_spoken(value)) or is_stated_word(value)


def is_given_password(value: str) -> bool:
    """Check what a sentence says the password is: letters and digits, no measure or version."""
    mixed = _has_kind(value, str.isdigit) or _is_shuffled(value)
    if not (mixed and _has_kind(value, str.isalpha)) or _is_not_secret(value) or " " in value:
        return False
    return 6 <= len(value) <= _MAX_PASSWORD and _NO_PASSWORD.fullmatch(value) is None


def _is_shuffled(value: str) -> bool:
    """Whether a word without digits is none of a language: short pieces, or a sign inside."""
    unspoken = value.isalpha() and not _is_spoken(value)
    signed = _NAME_SIGNS.isdisjoint(value) and not {*"!$*^"}.isdisjoint(value[1:-1])
    mixed = len(value) >= 8 and _count_kinds(value) >= 2
    return unspoken or (mixed and (signed or not _is_name(value)))


def is_unnamed_password(value: str) -> bool:
    """Check a word where a name could stand: no numbered name, such as postgres-16."""
    named = _NUMBERED_NAME.fullmatch(value) is not None
    return is_given_password(value) and not named and is_password(value)


def is_signed_password(value: str) -> bool:
    """Check a word where a name often stands: with a sign that no name has."""
    signed = not _PASSWORD_SIGNS.isdisjoint(value)
    return signed and _count_kinds(value) >= 3 and is_unnamed_password(value)


def is_chance_password(value: str) -> bool:
    """Check a word that nothing states to be the password: drawn, no host or version."""
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
    parted = _PARTED.fullmatch(value) is not None and not _is_spoken(value)
    return (parted or len(longest) >= _TOKEN_RUN) and is_drawn(value if parted else longest)


def is_chosen_password(value: str) -> bool:
    """Check the value of a password's variable: also words, but none that names a field."""
    lower = value.lower()
    wordy = _WORDY_NAME.fullmatch(lower) or (value.isalpha() and len(value) >= 6)
    phrase = " " in value and len(value.split()) <= _MAX_PHRASE
    return (phrase or bool(wordy and not _OF_FIELD.search(lower))) and not _is_not_secret(value)


def is_unknown_word(value: str) -> bool:
    """Check a plain word where a password stands: none of a language, and no name of a field."""
    letters = value.replace("-", "").isalpha() and (value.islower() or value.istitle())
    plain = letters and len(value) >= 6
    known = plain and (is_ordinary(value) or _OF_FIELD.search(value.lower()))
    return plain and not known and not _is_not_secret(value)


def is_stated_word(value: str) -> bool:
    """Check the plain word that a sentence ends with: nothing that is said of passwords."""
    return is_unknown_word(value) and _PREDICATE.search(value) is None


def is_last_password(value: str) -> bool:
    """Check the word that ends a line on a login: no numbered name of a machine or product."""
    stem = value.strip("0123456789")
    strange = is_unnamed_password(value) or (stem.isalpha() and not is_ordinary(stem))
    named = value[0].isdigit() or _OF_FIELD.search(value.lower()) or {*value} & {*"/@:=("}
    return strange and not named and len(value) >= 8 and is_given_password(value)


def is_assigned(value: str) -> bool:
    """Check the only word after the name of a password or key: no other name."""
    told = _UUID.fullmatch(value) or is_given_password(value) or is_unknown_word(value)
    return bool(told) and _FIELD_NAME.fullmatch(value) is None


def is_grouped_code(value: str) -> bool:
    """Check groups of characters of one length: with digits in most, or unlike words."""
    groups = re.split(r"[ \-]", value)
    is_numbers = all(map(str.isdigit, groups[groups[0].isalpha() :]))  # maybe after a word
    few = len({*"".join(groups).lower()}) < 6
    if is_numbers or few or value not in {value.upper(), value.lower()}:
        return False
    numbered = sum(_has_kind(group, str.isdigit) for group in groups)
    return 2 * numbered >= len(groups) or not _is_spoken(" ".join(groups))


def is_named_number(value: str) -> bool:
    """Check what follows the name of a personal number: no words between, and no date."""
    parts = [part for part in _SIGNS.split(value) if not _has_kind(part, str.isdigit)]
    enough = sum(map(str.isdigit, _DATE.sub("", value))) >= _PERSONAL_DIGITS
    return enough and max(map(len, parts), default=0) < 3


def is_typed_password(value: str) -> bool:
    """Check the word after a password option: no other option, plain word or placeholder."""
    other = _PLACEHOLDER.search(value) or _PATH_PREFIX.match(value) or _PORTS.fullmatch(value)
    if value[:1] in "-<[" or len(value) < 6 or other:
        return False
    plain = _PLAIN_WORD.fullmatch(value) is not None
    return is_unknown_word(value) if plain else _count_kinds(value) >= 2 or len(value) >= 12


def is_url_password(value: str) -> bool:
    """Check the password part before the @ of a URL."""
    return len(value) >= 3 and not _PLACEHOLDER.search(value)


def is_basic_credentials(value: str) -> bool:
    """Check whether base64 text, no word, decodes to ``user:password``, or to a key alone."""
    try:
        decoded = base64.b64decode(value + "=" * (-len(value) % 4))
    except ValueError:
        return False
    return (decoded.isascii() or not value.isalpha()) and (b":" in decoded[1:] or b"_" in decoded)


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
    return entropy(value) >= 2.7 and (_has_kind(value, str.isdigit) or not _is_spoken(value))


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
    return _is_spoken(bare) and len(bare) > _MAX_SECRET_PIECE * len(_PIECE.findall(bare))


def _is_spoken(value: str) -> bool:
    """Whether the letters follow each other as in words; few letters may."""
    places = [ord(char) - ord("a") for char in value.lower()]
    pairs = [(one, two) for one, two in pairwise(places) if 0 <= one < 26 and 0 <= two < 26]
    total = sum(int(_PAIRS[26 * one + two]) for one, two in pairs)
    return len(pairs) < _SPOKEN_PAIRS or total >= _MIN_SPOKEN * len(pairs)


def _is_not_secret(value: str) -> bool:
    """Check for a placeholder, code, a path, a number or the name of an algorithm."""
    bare = value.rstrip(_TRAILING_PUNCTUATION)
    if _PLACEHOLDER.search(value) or _PLACEHOLDER.search(bare):
        return True
    if not _BRACKETS.isdisjoint(value) and not _has_kind(value, str.isdigit):
        return True  # code
    parts = (_SIGNS.sub("", part) for part in value.split("/") if len(part) >= 10)
    if _PATH_PREFIX.match(value) and not any(_kind_change_rate(part) >= 0.3 for part in parts):
        return True
    if _CODE_EXPRESSION.match(value) and _kind_change_rate(_SIGNS.sub("", value)) < 0.3:
        return True
    return len(value) < 24 and _ALGORITHM.search(value.lower()) is not None


def _has_kind(value: str, is_kind: Callable[[str], bool]) -> bool:
    return any(map(is_kind, value))


def _count_kinds(value: str) -> int:
    """Count the kinds of characters: lower case, upper case, digits, signs."""
    tests = (str.islower, str.isupper, str.isdigit, lambda char: not char.isalnum())
    return sum(_has_kind(value, is_kind) for is_kind in tests)


def _kind_change_rate(value: str) -> float:
    """Return the share of adjacent characters of different kinds (lower, upper, digit)."""
    return (len(_RUN.sub(".", value)) - 1) / max(1, len(value) - 1)
