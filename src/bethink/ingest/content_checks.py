"""Detect prompt injections, pasted machine output, and values that are secrets.

An injection is flagged, not blocked: plausible lies pass any pattern, so the origin of a
memory is what counts, and a flagged text that does not come from its user is trusted less.
Pasted output is recognised by its shape, never by a single word: sentences about logs,
builds and errors are ordinary project memories.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

from bethink.core.characters import strip_hidden
from bethink.core.lazy import lazy_pattern
from bethink.errors import LooksPasted
from bethink.lang.words import word_set_of
from bethink.model import Draft

# Without one of these none of the patterns can match.
_INJECTION_HINTS = (
    *("ignor", "disregard", "forget", "overrid", "bypass", "prompt", "jailbr", "reveal", "leak"),
    *("you are now", "you are no longer", "from now on", "henceforth", "unrestricted"),
    *("unfiltered", "developer mode", "dan mode", "god mode", "do anything now", "<|"),
    *("inst]", "sys>>", "system"),
    *("instruction", "exfiltrat", "secretly", "silently", "quietly", "the user", "the human"),
    *("assistant", "send", "forward", "upload", "this", "as if you"),
)
# One pattern per paragraph. A space matches any run of blanks, dashes, stars or underscores.
_INJECTION_PATTERNS = r"""
\b(?:ignore|disregard|forget|override|bypass) (?:[a-z']+ ){0,4}?
(?:previous|prior|above|earlier|preceding|existing|all|any|your|the system|safety|these|those)
(?: [a-z']+){0,3}? (?:instructions?|prompts?|rules|guidelines|directions|context|messages?
|restrictions|guardrails|policies|commands)\b

\b(?:reveal|print|repeat|show|output|leak|disclose) (?:me )?(?:(?:your|its) (?:[a-z]+ ){0,2}?
(?:prompt|instructions|secret key|credentials)
|the (?:[a-z]+ ){0,2}?(?:system|hidden|initial) prompt)

\byou are (?:now|no longer) (?:an? |the |in )?(?:[a-z]+ ){0,3}?
(?:unrestricted|jailbroken|dan\b|developer mode|admin|root|evil|free from|bound by
|without (?:any )?(?:rules|restrictions))

\b(?:from now on|henceforth),? (?:you|the (?:assistant|agent|model|ai))
 (?:must|will|should|shall|are to|only|always|never)

\b(?:act|behave|respond) as (?:if you (?:were|had)|an? (?:unrestricted|unfiltered|evil|jailbroken))

\b(?:developer|dan|god|jailbreak) mode (?:enabled|on|activated|now)|\bdo anything now\b

<\|(?:im_start|im_end|system|user|assistant|endoftext)\|?>|\[/?inst\]|<</?sys>>
|</?system(?:>| prompt)

(?:^|\n)\W{0,4}(?:system|assistant|developer) ?(?:message|prompt|override|note)? ?: ?
(?:you (?:must|are|will|should)|ignore|new instructions?|important|override|do not|always|never)

### ?(?:new |system |updated )?instructions?\b

\b(?:new|updated|hidden|secret|important) instructions?
(?: for (?:the )?(?:ai|assistant|agent|model)s?)? ?:

\b(?:do not|don'?t|never|without) (?:tell|inform|mention|alert|notify|reveal)(?:ing)?
(?: this)?(?: to)? the (?:user|human|owner|operator)(?: (?:about|that|this|anything)\b|[.!,;]|$)

\b(?:secretly|silently|quietly) (?:send|forward|upload|post|email|copy|exfiltrate|transfer)

\b(?:send|forward|upload|post|email|exfiltrate) (?:all |every |the user'?s? |their |your )
(?:[a-z]+ ){0,3}?(?:data|files?|memor(?:y|ies)|passwords?|keys?|credentials|conversations?
|contents?|emails?)(?: [a-z]+){0,2}? to (?:https?:|[a-z0-9.]+@|an? |the attacker)

\b(?:assistant|ai|agent|model)s? (?:reading|processing|seeing|that reads?) this
(?: [a-z]+){0,4}? (?:must|should|shall|will|are to|has to|have to)\b
"""
_BLANK_LINE = lazy_pattern(r"\n\n")
# Letters of other alphabets that pass for Latin ones.
_HOMOGLYPHS = str.maketrans("аеорсухіјѕԁһɡӏοανερικτυχ", "aeopcyxijsdhgloavepiktux")


def is_injection(text: str) -> bool:
    """Check whether the text openly gives instructions to a model."""
    lower = text.lower()
    if not lower.isascii():
        lower = unicodedata.normalize("NFKC", strip_hidden(lower)).lower().translate(_HOMOGLYPHS)
    if not any(word in lower for word in _INJECTION_HINTS):
        return False
    return _injection_pattern().search(lower.encode(errors="replace")) is not None


@cache
def _injection_pattern() -> Any:
    import re2  # start-up time: loaded only for texts with a hint

    paragraphs = (part.replace("\n", "") for part in _BLANK_LINE.split(_INJECTION_PATTERNS.strip()))
    joined = "|".join(f"(?:{pattern})" for pattern in paragraphs)
    blank = r"[\s_*\-]"
    return re2.compile(joined.replace(" ?", f"{blank}*").replace(" ", f"{blank}+").encode())


_SEARCHED_CHARACTERS = 20_000  # characters; a paste is recognisable at its start
_TIMESTAMP = (
    r"\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d|\d\d:\d\d:\d\d[.,]\d{3}|"
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d)"
)
_LOG_LEVELS = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|FATAL|CRITICAL|SEVERE)\b"
_LOG_LINE = lazy_pattern(
    rf"{_TIMESTAMP}\S{{0,12}} ?.{{0,60}}?\b{_LOG_LEVELS}"  # a stamp, then soon a level
    rf"|{_TIMESTAMP} \[(?:emerg|alert|crit|error|warn|notice|info|debug)\] "  # nginx
    rf"|\[?{_LOG_LEVELS}\]?:? {{0,8}}.{{0,40}}?{_TIMESTAMP}"  # a level, then soon a stamp
    rf"|{_TIMESTAMP}\S{{0,12}} \S+ [\w./-]+\[\d+\]:"  # syslog
    r"|[\d.:a-fA-F]{3,45} \S+ \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}:"  # access log
    rf"|level={_LOG_LEVELS.lower()}.{{0,200}}msg=|ts=\S+ level=|\{{\"(?:level|severity)\":"
    r"|[EWIF]\d{4} \d\d:\d\d:\d\d\.\d+ "  # glog
)
_STAMPED_LINE = lazy_pattern(rf"{_TIMESTAMP}(?:[.,]\d+)?Z?\]?\s")
_LEVEL_LINE = lazy_pattern(r"\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\]? ?[:\]|-] ?\S")
_STACK_FRAME = lazy_pattern(
    r'\s*File "[^"\n]{1,300}", line \d+'  # Python
    r"|\s+at \S.{0,300}[:(]\d+(?::\d+)?\)?$"  # JavaScript
    r"|\s+at [\w.$<>/]{3,300}\((?:[\w$ .]{1,100}\.\w{2,6}:\d+|Native Method)\)"  # Java
    r"|\s+at [\w.`<>+]{3,300}\(.{0,300}\)(?: in .{1,300}:line \d+)?$"  # .NET
    r"|\s*from \S{1,300}\.rb:\d+:in "  # Ruby
    r"|\s*\d+: +0x[0-9a-f]+ - |\t?\S{1,300}\.go:\d+ \+0x[0-9a-f]+"  # Rust, Go
    r"|#\d+ +(?:0x[0-9a-f]+ in |\S{1,300}\.php\(\d+\))"  # gdb, PHP
)
_TRACE_HEAD = lazy_pattern(
    r"Traceback \(most recent call last\):|goroutine \d+ \[\w+\]:|thread '[^'\n]{1,80}' panicked at"
    r"|Exception in thread \"|Caused by: [\w.]{3,200}(?:Exception|Error)"
)
_CI_LINE = lazy_pattern(
    r"##\[(?:group|endgroup|error|warning|section)\]|::(?:error|warning|group|set-output) ?\S*::"
    r"|npm (?:ERR!|WARN|error|warn) |yarn error |> Task :|FAILED tests?/|PASSED? tests?/|ok \d+ - "
    r"|=+ .{0,80}\b(?:passed|failed|errors?)\b.{0,80}in [\d.:]+ ?s.{0,20}=+$|collected \d+ items"
    r"|Step \d+/\d+ ?:|-{3}> (?:Running in )?[0-9a-f]{12}|#\d+ \[[^\]\n]{1,60}\] |#\d+ DONE "
    r"|(?:Compiling|Downloading|Downloaded|Installing|Fetching|Unpacking|Pulling|Collecting|Checking)"
    r" \S{1,100}(?: v?[\d.]+\S{0,60}| \.{3}|\.{3})?$|BUILD (?:FAILED|SUCCESSFUL) in "
    r"|Test Suites?: |Tests?: +\d+|--- (?:FAIL|PASS): |=== RUN |Error: Process completed with exit"
    r"|make(?:\[\d+\])?: \*\*\* |.{0,60}\d{1,3}%\|[█▏▎▍▌▋▊▉ #]|\[[=#>. -]{8,}\] +\d{1,3}%"
    r"|Run actions/|remote: (?:Enumerating|Counting|Compressing)|Attempt #?\d+ (?:failed|succeeded)"
)
# What compilers, linkers, make and terraform print; two such lines are no sentence of a person.
_TOOL_LINE = lazy_pattern(
    r"\S{1,300}\(\d+,\d+\): (?:error|warning) TS\d+:|\S{1,300}:\d+:\d+ - (?:error|warning) TS\d+:"
    r"|\S{1,300}:\d+(?::\d+)?: (?:fatal error|error|warning|note): "
    r"|(?:error|warning)\[[A-Z]+\d+\]: "
    r"|--> \S{1,300}:\d+:\d+$|\d* *\| .{0,200}|error: could not compile `"
    r"|warning: `\S{1,100}` \(.{1,60}\) generated \d+ warning"
    r"|(?:Compiling|Checking) \S{1,100} v[\d.]+ \(|Finished .{0,40}\btarget\(s\) in "
    r"|make(?:\[\d+\])?: (?:Entering directory|Leaving directory|Nothing to be done|\S+ is up)"
    r"|(?:gcc|g\+\+|cc|c\+\+|clang(?:\+\+)?|ld|ar|rustc) -\S.{0,400}\.(?:o|a|so|c|cc|cpp|rs)\b"
    r"|Found \d+ errors? in \d+ files?|collect2: error"
    r"|# \S{1,200} (?:will|must) be (?:created|destroyed|updated in-place|replaced|read)"
    r'|[-+~]/?[-+]? (?:resource|data) "\w+" "|Plan: \d+ to add, \d+ to change'
    r"|Apply complete! Resources:|Terraform (?:will perform|used the selected)"
    r"|\S{1,200}: (?:(?:Refreshing state|Creating|Still creating|Destroying)\.\.\."
    r"|(?:Creation|Destruction) complete after)"
)
_GUTTER = lazy_pattern(r"\d* *\| ")  # the margin of a compiler's excerpt; tables have it, too
_DIFF_LINE = lazy_pattern(
    r"diff --git a/|@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|index [0-9a-f]{7,}\.\."
)
_COLUMN_GAP = lazy_pattern(r" {2,}|\t+")
_COLUMN_TITLE = lazy_pattern(r"[A-Z%][A-Z0-9%()/_. -]*")
_ASSISTANT_BOILERPLATE = lazy_pattern(
    r"as an? (?:ai|large) (?:language )?(?:model|assistant)\b"
    r"|i(?:'m| am) sorry,? but (?:i (?:can'?t|cannot|am unable)|as an ai)"
    r"|(?:certainly|absolutely|sure(?: thing)?|of course|great question|you're absolutely right)"
    r"[!,.] .{0,60}?\b(?:here(?:'s| is| are)|let me|i(?:'ll| will|'d| can| have|'ve))\b"
    r"|i(?:'d| would) be (?:happy|glad) to (?:help|assist)"
    r"|i(?:'ve| have) (?:successfully |now )?(?:updated|implemented|created|added|fixed|completed)"
    r" (?:the|all|your) .{0,200}?(?:let me know|here'?s (?:a|what)|summary)"
    r"|here(?:'s| is) (?:a|the) (?:summary|breakdown|overview|list|revised|updated|complete|full)\b"
    r".{0,80}?:\n"
    r"|let me know if you(?:'d like| need| have| want)"
    r"|you are an? (?:[\w-]+ ){0,4}(?:assistant|chatbot|language model|ai agent|coding agent)\b",
    re.IGNORECASE | re.DOTALL,
)
_ASSISTANT_CLOSING = lazy_pattern(
    r"(?:let me know if you(?:'d like| need| have any| want)|is there anything else (?:i|you)"
    r"|i hope this helps|feel free to (?:ask|reach out))[^\n]{0,120}$",
    re.IGNORECASE,
)
_TRANSCRIPT = lazy_pattern(r"⏺|⎿|● \w+\(")
_BOX_DRAWING = lazy_pattern(r"[\u2500-\u259f]")
_ANSI = lazy_pattern("\x1b\\[[0-9;]*[A-Za-z]")


def refuse_pasted(draft: Draft) -> None:
    """Raise LooksPasted for a distilled memory that is machine output.

    Raw episodes and turns of a conversation are kept verbatim.
    """
    if draft.force or draft.level != "item" or draft.session is not None:
        return
    sign = detect_paste(draft.text)
    if sign:
        raise LooksPasted(
            f"this looks like {sign}, not like a memory",
            remedy="state in a sentence what to keep, store it as raw, or use --force",
        )


def detect_paste(text: str) -> str | None:
    """Describe the machine output that a text looks like; None if it does not."""
    text = text[:_SEARCHED_CHARACTERS]
    if _ASSISTANT_BOILERPLATE.match(text.lstrip("\"'*#> \n")) or (
        len(text) > 200 and _ASSISTANT_CLOSING.search(text)
    ):
        return "an assistant's answer or prompt"
    if _ANSI.search(text):
        return "terminal output with colour codes"
    if not text.isascii() and (sign := _detect_drawing(text)):
        return sign
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and _LOG_LINE.match(lines[0].lstrip()):
        return "a log line"
    return _detect_output_lines(lines) if len(lines) > 1 else None


def _detect_drawing(text: str) -> str | None:
    if _TRANSCRIPT.match(text) or "\n⏺" in text or "\n  ⎿" in text:
        return "an agent's transcript"
    boxed = sum(_BOX_DRAWING.search(line) is not None for line in text.splitlines())
    if boxed >= 3 or (boxed and len(_BOX_DRAWING.findall(text)) >= 20):
        return "a drawn box or table"
    return None


def _detect_output_lines(lines: list[str]) -> str | None:
    frames = sum(_STACK_FRAME.match(line) is not None for line in lines)
    if frames >= 2 or (frames and any(_TRACE_HEAD.search(line) for line in lines)):
        return "a stack trace"
    stripped = [line.lstrip() for line in lines]
    logged = sum(_LOG_LINE.match(line) is not None for line in stripped)
    stamped = sum(_STAMPED_LINE.match(line) is not None for line in stripped)
    levelled = sum(_LEVEL_LINE.match(line) is not None for line in stripped)
    if logged >= 2 or stamped >= 3 or (levelled >= 3 and 2 * levelled >= len(lines)):
        return "a log"
    built = sum(_CI_LINE.match(line) is not None for line in stripped)
    if built >= 2:
        return "the output of a build or test run"
    if sum(_DIFF_LINE.match(line) is not None for line in stripped) >= 2:
        return "a diff"
    printed = [line for line in stripped if _TOOL_LINE.match(line)]
    if len(printed) >= 2 and not all(_GUTTER.match(line) for line in printed):
        return "the output of a compiler or another tool"
    return "the table that a command printed" if _is_column_table(lines) else None


def _is_column_table(lines: list[str]) -> bool:
    """Whether upper-case column titles stand above rows of as many columns."""
    titles = _COLUMN_GAP.split(lines[0].strip())
    if len(titles) < 3 or not all(_COLUMN_TITLE.fullmatch(title) for title in titles):
        return False
    rows = [_COLUMN_GAP.split(line.strip()) for line in lines[1:]]
    return all(len(row) >= len(titles) - 1 for row in rows)


# Whether a value that stands where a secret would is one.
_PLACEHOLDER = lazy_pattern(
    r"your|example|change[_-]?me(?!\W*\d)|placeholder|dummy|sample|xxxx|todo|redacted|insert|replace"
    r"|\$\{|\{\{|\$\(|%\(|process\.env|environ|getenv|env\[|secrets?\.|vault[:/]|\*\*\*|\.\.\.|…"
    r"|^\d{1,2}(?:文字|桁|位|个|個|자|字)|^\{[A-Za-z_][\w.]*\}|^<.*>$|^![a-z]+$|(?-i:^\$(?:[A-Z_][A-Z0-9_]*|[a-z_][a-z0-9_]*)$)|^%\w+%$"
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
_NUMBER = lazy_pattern(r"[\d.,:%/-]+")
_NUMBERED_NAME = lazy_pattern(
    r"(?:[A-Za-z]+|v?\d+)(?:[-_.](?:[A-Za-z]+|v?\d+))+|[A-Z]?[a-z]+\d{1,2}"
)
_SPLIT = lazy_pattern(r"[-_/.+]+")
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
        changing = _kind_change_rate(value) >= 0.3 and entropy(value) >= 3.5
        return len(value) >= 20 and changing and not _is_name(value)
    letters = any(char.isalpha() for char in value)
    return letters and _kind_change_rate(value) >= 0.3 and entropy(value) >= 2.5


def is_random_or_hex(value: str) -> bool:
    """Like ``is_random``, but also accept hex strings, where the context is explicit."""
    return is_random(value) or (
        len(value) >= 32 and _HEX.fullmatch(value) is not None and not is_example(value)
    )


def is_password(value: str) -> bool:
    """Check a value assigned to a password: not a word, a placeholder or code."""
    value = value.removesuffix(":")  # of a condition, as in "if password == other:"
    if len(value) < 6 or _is_not_secret(value):
        return False
    if value.isdigit():
        return len(value) >= 8 and len(set(value)) > 2
    if " " in value:
        words = value.split()
        mixed = [len(word) > 4 and _count_character_kinds(word) > 2 for word in words]
        return len(words) <= 4 and any(mixed)
    kinds = (_has_kind(value, str.isdigit), _has_kind(value, str.isalpha), not value.isalnum())
    if sum(kinds) >= 2 and "-" not in value and "_" not in value:
        return True
    return is_secret(value)


def is_stated_password(value: str) -> bool:
    """Check a password stated in a sentence: letters and digits, not a numbered name.

    Numbered names are, for example, postgres-16 and Bitwarden2.
    """
    mixed = _has_kind(value, str.isdigit) and _has_kind(value, str.isalpha)
    named = _NUMBERED_NAME.fullmatch(value) or _NO_PASSWORD.fullmatch(value)
    return mixed and not named and is_password(value)


def is_given_password(value: str) -> bool:
    """Check what a sentence says the password is: letters and digits, even as a numbered name."""
    mixed = _has_kind(value, str.isdigit) and _has_kind(value, str.isalpha)
    if not mixed or not 6 <= len(value) <= _MAX_PASSWORD or " " in value or _is_not_secret(value):
        return False
    return _NO_PASSWORD.fullmatch(value) is None


def is_clear_password(value: str) -> bool:
    """Check a password given in passing: three kinds of characters, even as a numbered name."""
    return is_given_password(value) and _count_character_kinds(value) >= 3


# Measures (16-character, 128bit), versions, dates, ports, paths, programs that keep passwords.
_NO_PASSWORD = lazy_pattern(
    r"\d+(?:\.\d+)?(?:[num]s|sec|min|hrs?|[kmg]i?b(?:ps)?|px|[cmk]?m|k?g|[kmg]?hz|k?wh?|[qr]ps|rpm)"
    r"|(?:[\d.]+:){1,2}\d+/[a-z]+|(?-i:[a-z]\w*(?:/[a-z]\w*){2,})|"
    r"\d+-(?:\d+)?[a-z]+(?:-[a-z]+)*|\d+(?:st|nd|rd|th|bits?|bytes?|chars?|characters|digits|days|zeichen)"
    r"|v?\d+(?:\.\d+)+\S*|\d{4}-\d\d-\d\d\S*|[\w.\-]+:\d{2,5}|(?:1password|bitwarden|keepass|lastpass)\S*",
    re.IGNORECASE,
)
_MAX_PASSWORD = 80  # characters


def is_told_password(value: str) -> bool:
    """Check a word that no verb states to be the password: drawn by chance.

    Names of hosts, versions and standards are letters and digits, too.
    """
    if not 8 <= len(value) <= _MAX_PASSWORD or not _NAME_SIGNS.isdisjoint(value):
        return False
    if not is_stated_password(value):
        return False
    mixed = _count_character_kinds(value) >= 3 and _kind_change_rate(value) >= 0.3
    pieces = len(_PIECE.findall(value))
    return mixed and pieces >= _MIN_PIECES and len(value) / pieces <= _MAX_DRAWN_PIECE


def is_made_password(value: str) -> bool:
    """Check a word in a sentence about a password: three kinds of characters, as no name has."""
    return is_stated_password(value) and _count_character_kinds(value) >= 3


def is_signed_password(value: str) -> bool:
    """Check a word right after "password": made, with a sign that no name has."""
    return is_made_password(value) and not _PASSWORD_SIGNS.isdisjoint(value)


def is_password_near(value: str, quoted: bool) -> bool:
    """Check a word near one that speaks of passwords: drawn by chance, or quoted and no name."""
    if quoted and not _PASSWORD_SIGNS.isdisjoint(value) and _PATH_SIGNS.isdisjoint(value):
        return is_made_password(value)
    return is_told_password(value)


def _is_name(value: str) -> bool:
    """Whether a word is made of words, as ConvertTo-SecureString is."""
    letters = _SIGNS.sub("", value)
    return len(letters) > _MAX_SECRET_PIECE * len(_PIECE.findall(letters))


# Runs of lower case (with its capital), upper case, digits; single signs.
_PIECE = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|[^A-Za-z0-9]")
_MAX_SECRET_PIECE = 3.5
# Of words drawn by chance 98 in 100 are in such short pieces; of names (Draft2Digital) none.
_MIN_PIECES, _MAX_DRAWN_PIECE = 4, 2.7
_NAME_SIGNS = frozenset("-_./:@#,()")
_PATH_SIGNS = frozenset("/:@.")
_PASSWORD_SIGNS = frozenset("!$&*+#%?^~")


def is_drawn_token(value: str) -> bool:
    """Check a word for chance, whatever its signs: short pieces, as no words and dates are."""
    bare = _SIGNS.sub("", value)
    if len(bare) < 20 or _HEX.fullmatch(bare) or is_example(value) or _is_not_secret(bare):
        return False
    pieces = _MAX_SECRET_PIECE * len(_PIECE.findall(bare))
    return _has_kind(bare, str.isdigit) and len(bare) <= pieces and entropy(bare) >= 3.5


def is_drawn_or_hex(value: str) -> bool:
    """Like ``is_drawn_token``, but also accept hex strings."""
    return is_drawn_token(value) or (_HEX.fullmatch(value) is not None and is_random_or_hex(value))


def is_vendor_token(value: str) -> bool:
    """Check a prefix and what follows: drawn by chance, not the digest that "sha512-" names."""
    prefix, *parts = _SPLIT.split(value)
    unbroken = max(map(len, parts)) >= 14 and not prefix.lower().startswith("sha")
    return unbroken and is_drawn_token("".join(parts))


def is_code_seed(value: str) -> bool:
    """Check the seed of one-time codes (base32): with digits, or fewer vowels than words have."""
    vowels = sum(char in "AEIOU" for char in value) / len(value)
    return entropy(value) >= 2.7 and (_has_kind(value, str.isdigit) or vowels < 0.35)


def is_assigned_secret(value: str) -> bool:
    """Check a value assigned to a key or token: no name in words, such as billing-db-prod-2."""
    return is_secret(value) and _WORDY_NAME.fullmatch(value) is None


def is_stated_secret(value: str) -> bool:
    """Check a value stated to be a key or token: drawn by chance, or a UUID."""
    drawn = is_random_or_hex(value) and is_assigned_secret(value)
    return drawn or _UUID.fullmatch(value) is not None


_WORDY_NAME = lazy_pattern(r"[a-z]{2,}(?:[-_.](?:[a-z]{2,}|\d{1,2}))+")


def is_secret(value: str) -> bool:
    """Check a value assigned to a token, key or secret: machine-generated."""
    if len(value) < 8 or _is_not_secret(value):
        return False
    if " " in value:
        return any(is_random(part) for part in value.split())
    if _UUID.fullmatch(value) or _HEX.fullmatch(value):
        return len(value) >= 16 and not value.isdigit() and entropy(value) >= 2.5
    if not _has_kind(value, str.isdigit):
        changing = _kind_change_rate(value) >= 0.3 and entropy(value) >= 3.3
        return len(value) >= 16 and changing and not _is_name(value)
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


def is_option_value(value: str) -> bool:
    """Check the word after a command's password option: no other option, name or placeholder."""
    if value[:1] in "-<[" or _PLACEHOLDER.search(value) or _PATH_PREFIX.match(value):
        return False
    mixed = _count_character_kinds(value) >= 2 or len(value) >= 12
    return len(value) >= 6 and mixed and _PORTS.fullmatch(value) is None


_PORTS = lazy_pattern(r"(?:[\d.]+:){1,2}\d+(?:/[a-z]+)?")  # docker run -p 27017:27017
_PLAIN_WORD = lazy_pattern(r"\(?[A-Za-z]?[a-z]+(?:[-'][a-z]+)*")


def is_typed_password(value: str) -> bool:
    """Check the word after words that sentences have, too: no plain word, as they go on with."""
    return is_option_value(value) and _PLAIN_WORD.fullmatch(value) is None


_STOP_LISTS = (("en", "search"), ("en", "sketch"), ("de", "search"))


def is_pass_phrase(value: str) -> bool:
    """Check several plain words: hardly inflected, and no stop word, which every sentence has."""
    words = [word for word in re.split(r"[ \-.]", value.strip("\"'\x60").lower()) if word]
    common = {word for code, use in _STOP_LISTS for word in word_set_of(code, "stop_words", use)}
    inflected = words[0].endswith("ing") and any(word.endswith("ed") for word in words)
    stated = len(words) >= 4 and not words[0].endswith("ed") and not inflected
    return stated and common.isdisjoint(words) and not any(map(_LOGIN_NOUN.match, words))


_LOGIN_NOUN = lazy_pattern(r"pass(?:w|phrase)|kennw|login")


def is_password_phrase(value: str) -> bool:
    """Check several plain words after "password": not "using password managers" either."""
    return is_pass_phrase(value) and not value.split(maxsplit=1)[0].endswith("ing")


_MAX_STOP_SHARE = 0.25  # of a sentence in any language it is about one half


def is_seed_phrase(value: str) -> bool:
    """Check the words of a wallet's seed (BIP-39): hardly any is a stop word, few come twice."""
    words = value.replace(",", " ").lower().split()
    common = {word for code in _SPOKEN for word in word_set_of(code, "stop_words", "search")}
    stops = sum(word in common for word in words)
    distinct = len(set(words)) >= 0.9 * len(words)
    return 12 <= len(words) <= 24 and distinct and stops <= _MAX_STOP_SHARE * len(words)


_SPOKEN = ("en", "de", "fr", "es", "it", "pt", "nl")


def is_key_block(value: str) -> bool:
    """Check whether a private key block holds a key, not just its first and last line."""
    return re.search(r"[A-Za-z0-9+/]{24}", value) is not None


def _is_not_secret(value: str) -> bool:
    """Check for a placeholder, code, a path, a number or the name of an algorithm."""
    bare = value.rstrip(_TRAILING_PUNCTUATION)
    if _PLACEHOLDER.search(value) or _PLACEHOLDER.search(bare):
        return True
    if _NUMBER.fullmatch(value) and not value.isdigit():
        return True
    if not _BRACKETS.isdisjoint(value) and not _has_kind(value, str.isdigit):
        return True  # code
    if _PATH_PREFIX.match(value) and not any(_is_random_segment(part) for part in value.split("/")):
        return True
    if _CODE_EXPRESSION.match(value) and _kind_change_rate(_SIGNS.sub("", value)) < 0.3:
        return True
    return len(value) < 24 and not _ALGORITHMS.isdisjoint(_SPLIT.split(value.lower()))


def _is_random_segment(part: str) -> bool:
    return len(part) >= 10 and _kind_change_rate(_SIGNS.sub("", part)) >= 0.3


def _has_kind(value: str, is_kind: Callable[[str], bool]) -> bool:
    return any(map(is_kind, value))


def _count_character_kinds(value: str) -> int:
    tests = (str.islower, str.isupper, str.isdigit, lambda char: not char.isalnum())
    return sum(_has_kind(value, is_kind) for is_kind in tests)


def _kind_change_rate(value: str) -> float:
    """Return the share of adjacent characters of different kinds (lower, upper, digit)."""
    kinds = [
        "a" if c.islower() else "A" if c.isupper() else "0" if c.isdigit() else c for c in value
    ]
    changed = sum(one != other for one, other in pairwise(kinds))
    return changed / max(1, len(value) - 1)


_NEXT_FIELD = lazy_pattern(r"[,;&](?=[\w .\-]{1,40}=)|[,;]$")
_TRAILING_PUNCTUATION = ".,;:!?)]}>\\"


def trim_value(value: str) -> str:
    """Strip a following field of the same line and trailing punctuation."""
    value = _NEXT_FIELD.split(value, maxsplit=1)[0]
    return value.rstrip(_TRAILING_PUNCTUATION) if len(value) > 6 else value
