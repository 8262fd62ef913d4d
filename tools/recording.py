"""Record the README's terminal picture from real commands: `make recording`, or --check."""

from __future__ import annotations

import fcntl
import html
import io
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from bethink.core.ids import short_id

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "assets" / "terminal.svg"
COLUMNS = 90
NOTHING_FOUND = 1
COMMANDS = {
    'bethink remember "Releases go out on Tuesdays at ten"': 0,
    'bethink remember "We chose PostgreSQL for billing because of row-level security"': 0,
    'bethink remember "Releases now go out on Thursdays, so that support is in the office"': 0,
    'bethink recall "how do I tune a violin?"': NOTHING_FOUND,
    'bethink recall "when do we ship?"': 0,
}
# An "m" may end a colour sequence, so it counts as a border.
_ID = re.compile(r"(?<![0-9a-ln-z])[0-9a-hjkmnp-tv-z]{16}(?![0-9a-z])")
_DATE = re.compile(r"(?<!\d)20\d\d-\d\d-\d\d( \d\d:\d\d)?(?!\d)")
# Rich's picture fetches its font from another host; the reader's own will do.
_FRAME = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
_LINE = re.compile(r'<text class="[^"]*-r\d+" [^>]*clip-path="[^"]*-line-(\d+)\)">(.*?)</text>')


def run_in_terminal(command: str, home: Path) -> str:
    """Run one command in a pseudo-terminal of fixed width and return what it prints."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    kept = {key: os.environ[key] for key in ("LANG", "LC_ALL", "SYSTEMROOT") if key in os.environ}
    env = kept | {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONUTF8": "1",
        "TERM": "xterm-256color",
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_STATE_HOME": str(home / "state"),
        "BETHINK_DATA_DIR": str(home / "data"),
        "BETHINK_WORKER": "off",
    }
    process = subprocess.Popen(  # noqa: S603  # the commands above
        shlex.split(command), cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=theirs,
        stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    printed = _read_all(ours)
    if process.wait() != COMMANDS[command]:
        raise SystemExit(f"{command} failed:\n{printed}")
    return printed.replace("\r\n", "\n")


def _read_all(descriptor: int) -> str:
    pieces = []
    while True:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:  # Linux: the other end was closed
            piece = b""
        if not piece:
            os.close(descriptor)
            return b"".join(pieces).decode()
        pieces.append(piece)


def make_stable(text: str) -> str:
    """Replace what differs from run to run: ids by numbered ones, dates by a fixed one."""
    ids = dict.fromkeys(_ID.findall(text))
    for number, found in enumerate(ids, 1):
        stable = f"6gy4k2m7xq0v{number:04d}"
        text = text.replace(found, stable).replace(short_id(found), short_id(stable))
    return _DATE.sub(lambda match: "2026-11-16 09:30" if match[1] else "2026-11-16", text)


def record() -> str:
    """Run the commands in a new home and return the picture as SVG."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        printed = [(command, run_in_terminal(command, home)) for command in COMMANDS]
    shown = make_stable("\n".join(f"\x1b[1;32m$\x1b[0m {one}\n{text}" for one, text in printed))
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(shown.rstrip("\n")))
    return console.export_svg(
        title="bethink", theme=MONOKAI, code_format=_FRAME, unique_id="bethink"
    )


def text_of(svg: str) -> list[str]:
    """Return the lines of a picture, without colours and spacing."""
    lines: dict[int, str] = {}
    for number, piece in _LINE.findall(svg):
        lines[int(number)] = lines.get(int(number), "") + html.unescape(piece)
    return ["".join(lines[number].split()) for number in sorted(lines)]


def main() -> int:
    """Write the picture; with --check say whether the commands still print what it shows."""
    svg = record()
    if "--check" not in sys.argv:
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(svg, encoding="utf-8")
        return 0
    now, then = text_of(svg), text_of(PICTURE.read_text(encoding="utf-8"))
    if now == then:
        return 0
    sys.stderr.write("terminal.svg is out of date: run `make recording`\n")
    for one, other in zip(now, then, strict=False):
        if one != other:
            sys.stderr.write(f"now:  {one}\nthen: {other}\n")
            break
    return 1


if __name__ == "__main__":
    sys.exit(main())
