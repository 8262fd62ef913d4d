"""Detect prompt injections and pasted machine output.

An injection is flagged, not blocked: plausible lies pass any pattern, so the origin of a
memory is what counts, and a flagged text that does not come from its user is trusted less.
Pasted output is recognised by its shape, never by a single word: sentences about logs,
builds and errors are ordinary project memories.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import cast

from bethink.core.characters import hidden_text_flags, strip_hidden
from bethink.core.lazy import lazy_pattern
from bethink.errors import LooksPasted
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


def content_flags(text: str) -> tuple[str, ...]:
    """Return what is suspicious about a text: hidden characters, instructions to a model."""
    flags = hidden_text_flags(text)
    return (*flags, "injection") if is_injection(text) else flags


@cache
def _injection_pattern() -> re.Pattern[bytes]:
    import re2  # start-up time: loaded only for texts with a hint

    paragraphs = (part.replace("\n", "") for part in _INJECTION_PATTERNS.strip().split("\n\n"))
    joined = "|".join(f"(?:{pattern})" for pattern in paragraphs)
    blank = r"[\s_*\-]"
    spaced = joined.replace(" ?", f"{blank}*").replace(" ", f"{blank}+")
    return cast("re.Pattern[bytes]", re2.compile(spaced.encode()))


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
# What compilers, linkers, make, terraform, git, ls, psql and ping print; two such lines are no
# sentence of a person.
_TOOL_LINE = lazy_pattern(
    r"\S{1,300}\(\d+,\d+\): (?:error|warning) TS\d+:|\S{1,300}:\d+:\d+ - (?:error|warning) TS\d+:"
    r"|\S{1,300}:\d+(?::\d+)?: (?:fatal error|error|warning|note): "
    r"|(?:error|warning)\[[A-Z]+\d+\]: "
    r"|--> \S{1,300}:\d+:\d+$|\d* *\| .{0,200}|error: could not compile `"
    r"|warning: `\S{1,100}` \(.{1,60}\) generated \d+ warning"
    r"|(?:Compiling|Checking) \S{1,100} v[\d.]+ \(|Finished .{0,40}\btarget\(s\) in "
    r"|make(?:\[\d+\])?: (?:Entering directory|Leaving directory|Nothing to be done|\S+ is up)"
    r"|(?:gcc|g\+\+|cc|c\+\+|clang(?:\+\+)?|ld|ar|rustc) -\S.{0,400}\.(?:o|a|so|c|cc|cpp|rs)\b"
    r"|commit [0-9a-f]{7,64}(?: \(.{1,200}\))?$|Author: .{1,100} <.{0,100}>$|Date: {3}[A-Z]"
    r"|[-dlcbps](?:[r-][w-][xsStT-]){3}[.+@]? +\d+ |total \d+$|-{2,}\+[-+]*$|\(\d+ rows?\)$"
    r"|PING \S{1,100} \(|\d+ bytes from \S{1,100}: icmp_seq=|--- \S{1,100} ping statistics ---"
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
