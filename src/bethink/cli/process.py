"""Whether the process runs one command and ends: only then are its settings ours."""

from __future__ import annotations

runs_one_command = False
