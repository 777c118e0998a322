"""The process beside each attempt that outlives the daemon: `python -I -S shim.py DIRECTORY`.

Run without site-packages it starts in a few milliseconds and stays small. All of it is in
`supervisor.py`, which, being a module, is compiled once and not for every attempt: that alone
would cost 1.4 MB.
"""

from __future__ import annotations

import os
import sys

# Nothing is installed for this interpreter, so it is told where we live; the standard library goes
# first, whatever else lies there.
sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from bough.backends.supervisor import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
