"""Show memories on PostgreSQL: start a server, prepare it, remember, recall, isolate, check."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))


def main() -> int:
    """Run the commands of docs/postgres.md against a server of our own."""
    from postgres_server import running_server  # the tests start their server with it

    url = running_server().url
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "BETHINK_STORE": url, "BETHINK_DATA_DIR": folder, "PGAPPNAME": "demo"}

        def bethink(*arguments: str) -> None:
            sys.stdout.write(f"\n$ bethink {' '.join(arguments)}\n")
            sys.stdout.flush()
            command = [sys.executable, "-m", "bethink", *arguments]
            subprocess.run(command, env=env, cwd=folder, check=False)  # noqa: S603 - ours

        bethink("store", "init")
        bethink("--space", "work", "remember", "The deploy key for production lives in vault B")
        bethink("--space", "work", "remember", "Maria prefers short pull requests")
        bethink("--space", "home", "remember", "The key to the cellar hangs behind the door")
        bethink("--space", "work", "recall", "where is the deploy key?")
        bethink("--space", "home", "recall", "where is the key?")
        bethink("spaces")
        bethink("--space", "work", "doctor")
    return 0


if __name__ == "__main__":
    sys.exit(main())
