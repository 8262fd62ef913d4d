"""Lets ``python -m recollect`` stand for the ``recollect`` script."""

import sys

from recollect.cli import main

sys.exit(main())
