"""Makes `python -m bough` the same as `bough`, where scripts are not on the path."""

from __future__ import annotations

import sys

from bough.cli import main

if __name__ == "__main__":
    sys.exit(main())
