"""Entry point of ``python -m bethink``."""

from __future__ import annotations

import sys

from bethink.cli import main

sys.exit(main())
