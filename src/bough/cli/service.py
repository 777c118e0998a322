"""`bough up`, `down` and `status`: the daemon begins, ends, and says how it is."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from bough.cli import asking
from bough.cli.words import moment
from bough.errors import BoughError, ConflictError, DaemonError, InputError
from bough.records import StatusRecord

if TYPE_CHECKING:
    from bough.cli.asking import Look
    from bough.client import Client
    from bough.server.daemon import Notice
    from bough.server.tls import Papers

#: A daemon that does not end in that time has a problem; parking may take as long as it takes.
END_SECONDS: Final = 30.0
LOOK_SECONDS: Final = 1.0
FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("up")
@click.option("--devices", metavar="WHICH", help="cpu:8, nvidia:0-3, amd, …; else what is found.")
@click.option("--listen", metavar="HOST:PORT", help="Serve the network too: with TLS and tokens.")
@click.option("--certificate", type=FILE, help="For --listen; else one is made.")
@click.option("--key", type=FILE, help="Of the certificate.")
@click.option("--store", metavar="WHERE", help="A file, or postgresql://user@host/database.")
@click.option("--system", is_flag=True, help="Serve all users of this machine; needs root.")
@click.option("--install", is_flag=True, help="Write a service for systemd instead of starting.")
@click.option("--foreground", is_flag=True, help="Stay here, as a service does.")
@click.option("--detached", is_flag=True, hidden=True)
@asking.json_option
def up(foreground: bool, detached: bool, install: bool, as_json: bool, **given: object) -> None:
    """Start the daemon of this machine, unless it runs.

    \b
    bough up                          for yourself, with all devices found
    bough up --devices cpu:8          with eight CPU slots
    bough up --listen 0.0.0.0:8470    for other machines, too
    sudo bough up --system            for all users of this machine
    """
    options = Options(given)
    if as_json and (install or foreground):
        raise InputError("--json is for a daemon in the background")
    if install:
        write_unit(options)
    elif foreground:
        serve(options, detached)
    else:
        start(options, as_json)


class Options:
    """What was asked for."""

    def __init__(self, given: dict[str, object]) -> None:
        self.system = bool(given["system"])
        self.devices, self.listen = _text(given["devices"]), _text(given["listen"])
        self.store = _text(given["store"])
        self.certificate, self.key = given["certificate"], given["key"]
        if self.system and os.geteuid() != 0:
            raise InputError("needs root", field="--system", hint="sudo bough up --system")
        if (self.certificate is None) != (self.key is None):
            raise InputError("--certificate and --key go together")
        if self.certificate is not None and not self.listen:
            raise InputError("--certificate is for --listen")
        if self.devices:  # said at once, and not by a daemon's last words
            from bough.hardware.probe import probe

            probe(self.devices)

    @property
    def home(self) -> Path:
        from bough.home import home, system_home

        return system_home() if self.system else home()

    @property
    def papers(self) -> Papers | None:
        from bough.server.tls import Papers

        if not isinstance(self.certificate, Path) or not isinstance(self.key, Path):
            return None
        return Papers(self.certificate.absolute(), self.key.absolute())

    def words(self) -> list[str]:
        """As one types them. A store is remembered elsewhere, as there may be a password in it."""
        found = ["--system"] if self.system else []
        papers = self.papers
        for name, value in (
            ("--devices", self.devices),
            ("--listen", self.listen),
            ("--certificate", papers and str(papers.certificate)),
            ("--key", papers and str(papers.key)),
        ):
            found += [name, value] if value else []
        return found


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


# ------------------------------------------------------------------------------------------- up


def start(options: Options, as_json: bool) -> None:
    """In the background."""
    from bough.server import launch
    from bough.server.daemon import read_notice

    home = options.home
    arguments = options.words()
    known = launch.last(home)
    if not options.devices and "--devices" in known:  # the machine is as it was
        at = known.index("--devices")
        arguments += known[at : at + 2]
    if options.store:
        os.environ["BOUGH_STORE"] = options.store
    begun = launch.ensure(home, arguments)
    notice = read_notice(home)
    if notice is None:
        raise DaemonError("The daemon ended as soon as it had begun; see daemon.log in its home.")
    if not begun:
        _check_same(options, notice)
    if as_json:
        asking.print_json({"started": begun, **notice._asdict()})
    else:
        asking.print_lines(list(told(notice, begun, asking.look())))


def _check_same(options: Options, notice: Notice) -> None:
    """One that runs stays as it is."""
    for name, wanted, has in (
        ("--devices", options.devices, notice.devices),
        ("--listen", _host(options.listen), _host(notice.listen)),
    ):
        if wanted and wanted != has:
            hint = "`bough down` ends it, and jobs go on; then `bough up` as you like it"
            runs = f"with {name} {has}" if has else f"without {name}"
            raise ConflictError(f"A daemon runs already, {runs} ({hint}).")


def told(notice: Notice, begun: bool, look: Look) -> Iterator[str]:
    """Where it is, and what to type next."""
    state = "serves you" if begun else "runs already"
    yield f"bough {state}: process {notice.pid}, at {notice.socket}"
    if notice.listen:
        yield f"From elsewhere, with a token of `{look.paint('bough token create', 'type')}`:"
        yield look.paint(f"  export BOUGH_SERVER=https://{notice.listen}", "type")
        yield look.paint(f"  export BOUGH_FINGERPRINT={notice.fingerprint}", "type")
    elif begun and look.people:
        yield "Next: " + look.paint("bough run -g 2 -- python train.py", "type")


def _host(address: str) -> str:
    """Of HOST:PORT; a port may have been chosen by the system."""
    return address.rpartition(":")[0] or address


def serve(options: Options, detached: bool) -> None:
    """Here, until it ends."""
    from bough.server import daemon, launch, unit
    from bough.server.assembly import Wish

    home = options.home
    wish = Wish(home, options.devices or None, options.system, options.store or None)

    def ready(notice: Notice) -> None:
        launch.remember(home, options.words())
        unit.notify()
        if detached:
            os.write(1, launch.READY)
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (1, 2):
                os.dup2(nothing, stream)
            os.close(nothing)
        else:
            asking.print_lines(list(told(notice, True, asking.look())))
            sys.stdout.flush()

    daemon.run(wish, daemon.Ways(options.listen, options.papers), ready)


def write_unit(options: Options) -> None:
    """A service, and how to begin it."""
    from bough.server import unit

    if options.store:
        hint = "`bough up --store …` once: it is kept in the home, and no password in the unit"
        raise InputError("is not for --install", field="--store", hint=hint)
    if os.environ.get("BOUGH_HOME"):
        text = unit.text(options.words(), system=options.system, home=options.home)
    else:
        text = unit.text(options.words(), system=options.system)
    place = unit.place(system=options.system)
    there = place.exists()
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
    look = asking.look()
    ctl = "systemctl" if options.system else "systemctl --user"
    asking.print_lines([
        f"{place} is {'written anew' if there else 'written'}. It runs from the next start of "
        "the machine, or now with",
        look.paint(f"  {ctl} daemon-reload && {ctl} enable --now bough", "type"),
        *([] if options.system else [
            "and stays when you log out with",
            look.paint("  loginctl enable-linger", "type"),
        ]),
    ])  # fmt: skip


# ----------------------------------------------------------------------------------------- down


@click.command("down")
@click.option("--park", is_flag=True, help="Let jobs leave their devices before; they go on later.")
@asking.json_option
def down(park: bool, as_json: bool) -> None:
    """End the daemon. Its jobs go on, and the next daemon takes them over."""
    with asking.connect() as client:
        client.patience_seconds = 0.0
        status = client.status()
        local = bool(client.address.socket)
        pidfd = _pidfd(status.pid) if local else -1
        client.shutdown(park)
        if pidfd >= 0:
            with contextlib.closing(os.fdopen(pidfd, "rb")) as process:
                _wait(client, process.fileno(), park)
    if as_json:
        asking.print_json({"pid": status.pid, "running": status.running, "parked": park})
    else:
        asking.print_lines([farewell(status, park)])


def _pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except OSError:  # it is in another container, or gone
        return -1


def _wait(client: Client, pidfd: int, park: bool) -> None:
    """Until it is gone; parking is watched."""
    waited, shown = 0.0, False
    while not select.select([pidfd], [], [], LOOK_SECONDS)[0]:
        waited += LOOK_SECONDS
        if not park and waited >= END_SECONDS:
            raise DaemonError(f"The daemon does not end; it has had {END_SECONDS:.0f} seconds.")
        if park and sys.stderr.isatty():
            with contextlib.suppress(BoughError):
                left = client.status().running
                sys.stderr.write(f"\r{left} jobs have still to leave their devices …\x1b[K")
                sys.stderr.flush()
                shown = True
    if shown:
        sys.stderr.write("\r\x1b[K")


def farewell(status: StatusRecord, park: bool) -> str:
    many = status.running
    what = f"{many} job{'s' if many != 1 else ''}"
    if not many:
        return "bough has ended; nothing ran. `bough up` starts it again."
    if park:
        return f"bough has ended; {what} parked, to go on with `bough up`."
    goes, them = ("go on by themselves", "them") if many != 1 else ("goes on by itself", "it")
    return f"bough has ended; {what} {goes}. `bough up` looks after {them} again."


# --------------------------------------------------------------------------------------- status


@click.command("status")
@asking.json_option
@asking.watch_option
def status(as_json: bool, watch: float | None) -> None:
    """Say how the daemon is: what runs, what waits, and what you should know."""
    with asking.connect() as client:
        asking.present(client.status, render, as_json, watch)


def render(status: StatusRecord, look: Look) -> Sequence[str]:
    """A line for each thing."""
    used = status.devices - status.free - status.taken - status.unhealthy
    devices = [f"{used} of {status.devices} in use", f"{status.free} free"]
    devices += [f"{status.taken} taken by others"] if status.taken else []
    devices += [f"{status.unhealthy} not well"] if status.unhealthy else []
    jobs = f"{status.running} running, {status.waiting} waiting, {status.ended} over"
    rows = [
        ("daemon", f"bough {status.version}, process {status.pid}"),
        ("since", moment(status.since, look.now)),
        ("home", status.home + (", for all users" if status.system else "")),
        ("network", status.listen),
        ("policy", status.policy),
        ("devices", ", ".join(devices)),
        ("jobs", jobs),
    ]
    lines = [look.paint(name.ljust(9), "name") + text for name, text in rows if text]
    return [*lines, *(look.paint(f"note     {note}", "waits") for note in status.notes)]
