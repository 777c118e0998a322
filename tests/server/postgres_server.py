"""A real PostgreSQL server for tests: in a folder of its own, reached through a socket there."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

READY = "ready to accept connections"


def binaries() -> Path | None:
    """The latest one that is installed; Debian keeps them out of PATH."""
    found = shutil.which("initdb")
    rooms = [Path(found).parent] if found else []
    known = [*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/usr").glob("pgsql-*/bin")]
    rooms += sorted(known, key=lambda path: int("0" + re.sub(r"\D", "", str(path))), reverse=True)
    return next((room for room in rooms if (room / "initdb").exists()), None)


def user() -> str | None:
    """Whom it runs as: PostgreSQL refuses root."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def memory() -> str | None:
    """In memory a server is quick, and survives what is killed; where there is room for it."""
    room = Path("/dev/shm")
    fits = os.access(room, os.W_OK) and shutil.disk_usage(room).free > 300 << 20
    return str(room) if fits else None


class Server:
    """One that can be stopped, killed and started again."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="bough-pg-", dir=memory()))
        self.data = self.folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        if (name := user()) is not None:
            shutil.chown(self.folder, name)
        self.folder.chmod(0o755)
        done = self.run("initdb", "--no-sync", "-A", "trust", "-U", "bough", "-E", "UTF8",
                        "--locale=C", "--wal-segsize=1", "-D", str(self.data))  # fmt: skip
        assert done.returncode == 0, done.stderr

    def run(self, name: str, *args: str, **more: Any) -> subprocess.CompletedProcess[str]:
        """A program of PostgreSQL's."""
        return subprocess.run(
            [self._program(name), *args], check=False, capture_output=True, text=True,
            cwd=self.folder, **self._as_user(), **more,
        )  # fmt: skip

    def _program(self, name: str) -> str:
        room = binaries()
        assert room is not None
        return str(room / name)

    def _as_user(self) -> dict[str, Any]:
        name = user()
        return {} if name is None else {"user": name, "group": pwd.getpwnam(name).pw_gid,
                                        "extra_groups": []}  # fmt: skip

    def start(self, *options: str) -> None:
        """Until it answers, as it says in its log."""
        settings = {
            "listen_addresses": "", "unix_socket_directories": str(self.folder), "fsync": "on",
            "max_connections": "40", "shared_buffers": "16MB", "max_wal_size": "16MB",
        }  # fmt: skip
        told = [arg for key, value in settings.items() for arg in ("-c", f"{key}={value}")]
        self._process = subprocess.Popen(
            [self._program("postgres"), "-D", str(self.data), *told, *options],
            stderr=subprocess.PIPE, cwd=self.folder, text=True, errors="replace", **self._as_user(),
        )  # fmt: skip
        ready = threading.Event()
        self._log = list[str]()
        self._reading = threading.Thread(target=self._read, args=(ready,))
        self._reading.start()
        ready.wait()
        assert any(READY in line for line in self._log), "".join(self._log)

    def _read(self, ready: threading.Event) -> None:
        """What the server says, until the last of its processes has gone."""
        assert self._process is not None
        assert self._process.stderr is not None
        with self._process.stderr as said:
            for line in said:
                self._log.append(line)
                if READY in line:
                    ready.set()
        ready.set()

    def _end(self) -> None:
        """Each of its processes holds the other end of the pipe."""
        assert self._process is not None
        self._reading.join()
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        """At once, and in order; sessions are ended."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._end()

    def kill(self) -> None:
        """All of it with SIGKILL, as when the machine fails."""
        assert self._process is not None
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in [pid, *map(int, children)]:
            try:
                os.kill(each, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self._end()

    def dsn(self, database: str, more: str = "") -> str:
        return f"postgresql://bough@/{database}?host={self.folder}{more}"

    def empty(self) -> str:
        """The address of a database without a store; there is one, as making them takes long."""
        with psycopg.connect(self.dsn("postgres"), autocommit=True) as db:
            if db.execute("SELECT 1 FROM pg_database WHERE datname = 'store'").fetchone() is None:
                db.execute("CREATE DATABASE store")
            db.execute("ALTER DATABASE store RESET ALL")
        with psycopg.connect(self.dsn("store")) as db:
            db.execute("DROP SCHEMA IF EXISTS bough CASCADE")
            db.execute("DROP TABLE IF EXISTS public.jobs")
        return self.dsn("store")

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder)


def started() -> Server:
    """One that runs; skips where there is none."""
    if binaries() is None:
        pytest.skip("no PostgreSQL is installed here (initdb was looked for)")
    server = Server()
    try:
        server.start()
    except BaseException:
        server.close()
        raise
    return server
