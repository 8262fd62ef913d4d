"""Tells a pasted log, trace or assistant answer from a sentence somebody meant to keep.

A sign is the shape of machine output, never a word alone: sentences about logs,
builds and errors are what a project's memory is made of.
"""

from __future__ import annotations

import re

from recollect.errors import LooksPasted
from recollect.model import Draft

_SEARCHED = 20_000  # characters; a paste shows itself early
_STAMP = (
    r"\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d|\d\d:\d\d:\d\d[.,]\d{3}|"
    r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d)"
)
_LEVELS = r"(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|FATAL|CRITICAL|SEVERE)\b"
_LOG_LINE = re.compile(
    rf"{_STAMP}\S{{0,12}} ?.{{0,60}}?\b{_LEVELS}"  # a stamp, then soon a level
    rf"|{_STAMP} \[(?:emerg|alert|crit|error|warn|notice|info|debug)\] "  # nginx
    rf"|\[?{_LEVELS}\]?:? {{0,8}}.{{0,40}}?{_STAMP}"  # a level, then soon a stamp
    rf"|{_STAMP}\S{{0,12}} \S+ [\w./-]+\[\d+\]:"  # syslog
    r"|[\d.:a-fA-F]{3,45} \S+ \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}:"  # access log
    rf"|level={_LEVELS.lower()}.{{0,200}}msg=|ts=\S+ level=|\{{\"(?:level|severity)\":"
    r"|[EWIF]\d{4} \d\d:\d\d:\d\d\.\d+ "  # glog
)
_STAMPED_LINE = re.compile(rf"{_STAMP}(?:[.,]\d+)?Z?\]?\s")
_LEVEL_LINE = re.compile(r"\[?(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL)\]? ?[:\]|-] ?\S")
_FRAME = re.compile(
    r'\s*File "[^"\n]{1,300}", line \d+'  # Python
    r"|\s+at \S.{0,300}[:(]\d+(?::\d+)?\)?$"  # JavaScript
    r"|\s+at [\w.$<>/]{3,300}\((?:[\w$ .]{1,100}\.\w{2,6}:\d+|Native Method)\)"  # Java
    r"|\s+at [\w.`<>+]{3,300}\(.{0,300}\)(?: in .{1,300}:line \d+)?$"  # .NET
    r"|\s*from \S{1,300}\.rb:\d+:in "  # Ruby
    r"|\s*\d+: +0x[0-9a-f]+ - |\t?\S{1,300}\.go:\d+ \+0x[0-9a-f]+"  # Rust, Go
    r"|#\d+ +(?:0x[0-9a-f]+ in |\S{1,300}\.php\(\d+\))"  # gdb, PHP
)
_TRACE_HEAD = re.compile(
    r"Traceback \(most recent call last\):|goroutine \d+ \[\w+\]:|thread '[^'\n]{1,80}' panicked at"
    r"|Exception in thread \"|Caused by: [\w.]{3,200}(?:Exception|Error)"
)
_CI_LINE = re.compile(
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
_BOILERPLATE = re.compile(
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
_CLOSING = re.compile(
    r"(?:let me know if you(?:'d like| need| have any| want)|is there anything else (?:i|you)"
    r"|i hope this helps|feel free to (?:ask|reach out))[^\n]{0,120}$",
    re.IGNORECASE,
)
_TRANSCRIPT = re.compile(r"⏺|⎿|● \w+\(")
_BOX = re.compile(r"[\u2500-\u259f]")
_ANSI = re.compile("\x1b\\[[0-9;]*[A-Za-z]")


def refuse_pasted(draft: Draft) -> None:
    """Raises LooksPasted for a distilled memory that is machine output.

    Raw episodes and turns of a conversation are kept word for word, whatever they are.
    """
    if draft.force or draft.level != "item" or draft.session is not None:
        return
    sign = sign_of_paste(draft.text)
    if sign:
        raise LooksPasted(
            f"this looks like {sign}, not like a memory",
            remedy="say in a sentence what is worth keeping, store it as raw, or use --force",
        )


def sign_of_paste(text: str) -> str | None:
    """The sign of machine output in a text, in words."""
    text = text[:_SEARCHED]
    if _BOILERPLATE.match(text.lstrip("\"'*#> \n")) or (len(text) > 200 and _CLOSING.search(text)):
        return "an assistant's answer or prompt"
    if _ANSI.search(text):
        return "terminal output with colour codes"
    if not text.isascii() and (sign := _drawn(text)):
        return sign
    lines = [line for line in text.splitlines() if line.strip()]
    if lines and _LOG_LINE.match(lines[0].lstrip()):
        return "a log line"
    return _many(lines) if len(lines) > 1 else None


def _drawn(text: str) -> str | None:
    if _TRANSCRIPT.match(text) or "\n⏺" in text or "\n  ⎿" in text:
        return "an agent's transcript"
    boxed = sum(_BOX.search(line) is not None for line in text.splitlines())
    if boxed >= 3 or (boxed and len(_BOX.findall(text)) >= 20):
        return "a drawn box or table"
    return None


def _many(lines: list[str]) -> str | None:
    frames = sum(_FRAME.match(line) is not None for line in lines)
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
    return None
