"""A service for systemd, and word to it that the daemon listens."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

#: Where systemd looks for services that an administrator, or a user, has made.
SYSTEM_UNIT: Final = Path("/etc/systemd/system/bough.service")
USER_UNIT: Final = Path("systemd/user/bough.service")

_FORM: Final = """\
[Unit]
Description=bough: runs jobs on the accelerators of this machine
After=local-fs.target network-online.target nss-user-lookup.target

[Service]
Type=notify
ExecStart={command}
# Jobs outlive the daemon: it alone is stopped, and the next one takes them over.
KillMode=process
Restart=on-failure
RestartSec=2
# A part of the tree of cgroups is ours, in which the kernel holds jobs to their memory.
Delegate=yes
DelegateSubgroup=daemon
LimitNOFILE=65536:524288
{more}
[Install]
WantedBy={target}
"""
_FOR_ALL: Final = """\
# No job gets more than this, nor more than whoever submits it has.
LimitMEMLOCK=8M:infinity
OOMScoreAdjust=-500
"""
_PLACES: Final = """\
StateDirectory=bough
StateDirectoryMode=0711
RuntimeDirectory=bough
RuntimeDirectoryMode=0755
RuntimeDirectoryPreserve=restart
"""


def text(arguments: Sequence[str], *, system: bool, home: Path | None = None) -> str:
    """The unit; `home` where it is not the usual one."""
    words = [sys.executable, "-P", "-m", "bough", "up", "--foreground", *arguments]
    command = shlex.join(word.replace("%", "%%").replace("$", "$$") for word in words)
    more = _FOR_ALL if system else ""
    if home is not None:
        named = str(home).replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"')
        more += f'Environment="BOUGH_HOME={named}"\n'
    elif system:
        more += _PLACES
    target = "multi-user.target" if system else "default.target"
    return _FORM.format(command=command, more=more, target=target)


def place(*, system: bool) -> Path:
    """Where it belongs."""
    if system:
        return SYSTEM_UNIT
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / USER_UNIT


def notify(word: str = "READY=1") -> None:
    """Tell systemd, where it has started us."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
        out.connect(address.replace("@", "\0", 1) if address.startswith("@") else address)
        out.sendall(word.encode())
