"""`bough up --install`: a service that systemd takes, and a daemon that is begun by it."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from tests.daemons import PATIENCE_SECONDS, Daemon
from tests.server.test_daemon import ended, sentence


@pytest.mark.parametrize("name", ["home", "a home with 100% $HOME", 'quo"tes'])
def test_install_writes_a_service_that_systemd_takes(tmp_path: Path, name: str) -> None:
    daemon = Daemon(tmp_path / name)
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "XDG_RUNTIME_DIR": str(tmp_path)}
    words = ("up", "--install", "--devices", "cpu:2", "--listen", "127.0.0.1:8470")
    done = daemon.bough(*words, env=env)
    unit = tmp_path / "config" / "systemd" / "user" / "bough.service"
    assert done.stdout.startswith(f"{unit} is written."), done.stderr
    assert "systemctl --user daemon-reload && systemctl --user enable --now bough" in done.stdout
    assert not daemon.runs
    text = unit.read_text()
    assert "up --foreground --devices cpu:2 --listen 127.0.0.1:8470\n" in text
    assert "KillMode=process" in text, "jobs outlive the daemon"
    assert "is written anew" in daemon.bough(*words, env=env).stdout
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here to verify it")
    found = subprocess.run(
        ["systemd-analyze", "--user", "--man=no", "verify", str(unit)],
        check=True, env=os.environ | env, capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    newer = "Unknown key 'DelegateSubgroup'"  # systemd 254; the ones before pass it over
    assert [line for line in found.stderr.splitlines() if newer not in line] == []


def test_the_command_of_the_service_serves(nobody_home: Daemon, tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert nobody_home.bough("up", "--install", "--devices", "cpu:1", env=env).returncode == 0
    text = (tmp_path / "systemd" / "user" / "bough.service").read_text()
    command = next(line for line in text.splitlines() if line.startswith("ExecStart="))
    with (
        contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as systemd,
        ended(
            subprocess.Popen(
                command.removeprefix("ExecStart=").split(),
                env=nobody_home.env | {"NOTIFY_SOCKET": str(tmp_path / "notify")},
                text=True,
                stdout=subprocess.DEVNULL,
            )
        ) as process,
    ):
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(PATIENCE_SECONDS)
        assert systemd.recv(100) == b"READY=1"
        assert nobody_home.pid == process.pid
        assert nobody_home.runs
    assert process.returncode == 0


def test_what_a_service_cannot_have_is_refused(nobody_home: Daemon) -> None:
    said = sentence(nobody_home.bough("up", "--install", "--store", "postgresql://u:pw@h/d"))
    assert "--store" in said
    assert "pw" not in said
