"""The screen of `bough top`: what is drawn elsewhere, on a terminal with keys (textual extra)."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.timer import Timer
from textual.widgets import Input, RichLog, Static

from bough.cli import asking, clock, top_drawing
from bough.cli.asking import Look
from bough.cli.palette import colours
from bough.cli.top_devices import measured, rooted
from bough.cli.top_drawing import Meters, Overview, Sight
from bough.cli.top_feed import KEPT, Away, Feed, Follower, Snapshot
from bough.cli.top_keys import BINDINGS, FOOT, FOOT_OF_VIEW, KEYS, STYLE
from bough.cli.top_messages import Chosen, Listing, Said, Seen
from bough.client import Client
from bough.errors import BoughError
from bough.records import ENDED, JobRecord

#: From here on all of a job stands beside the list.
WIDE: Final = 120
SAID_SECONDS: Final = 6.0
SAMPLES: Final = 60
PAGE: Final = 10


class Top(App[None]):
    """The whole of it."""

    ENABLE_COMMAND_PALETTE = False
    AUTO_FOCUS = None
    CSS = STYLE
    BINDINGS: ClassVar = [*BINDINGS, Binding("ctrl+c", "quit", priority=True)]

    def __init__(self, client: Client, user: str | None = None) -> None:
        super().__init__(ansi_color=True)
        self._client = client
        self._feed = Feed(Client(client.address), user, lambda seen: self.post_message(Seen(seen)))
        self._colour = colours()
        self.seen: Snapshot | None = None
        server = client.address.host or socket.gethostname()
        self.sight = Sight(user=user, server=server)
        self.drawn = Overview([], {})
        #: What stands beside the list or before it: job, log, devices, keys.
        self.view = ""
        self._follower: Follower | None = None
        #: What a y would do.
        self._asked: Callable[[], None] | None = None
        self._busy: deque[float] = deque(maxlen=SAMPLES)
        self._watts: deque[float] = deque(maxlen=SAMPLES)
        self._forget: Timer | None = None

    def compose(self) -> ComposeResult:
        with Horizontal(id="body"):
            yield Listing(id="listing", markup=False)
            with VerticalScroll(id="pane", can_focus=False):
                yield Static(id="page", markup=False)
            log = RichLog(id="log", max_lines=KEPT, wrap=True, min_width=20)
            log.can_focus = False
            yield log
        yield Static(id="foot", markup=False)
        with Horizontal(id="box"):
            yield Static("/", id="slash")
            yield Input(id="search", compact=True)

    def on_mount(self) -> None:
        self.theme = "ansi-dark" if "ansi-dark" in self.available_themes else "textual-ansi"
        self._feed.start()
        self.set_interval(1.0, self.redraw)
        self.set_interval(0.1, self._take_log)

    def on_unmount(self) -> None:
        self._feed.close()
        if self._follower is not None:
            self._follower.close()

    # --------------------------------------------------------------------------------- drawing

    def on_seen(self, message: Seen) -> None:
        """Something new, or nobody is there."""
        seen = message.seen
        if isinstance(seen, Away):
            self.sight = self.sight._replace(away=seen.why)
        else:
            self.seen = seen
            busy, watts = measured(seen.devices)
            self._busy += [] if busy is None else [busy]
            self._watts += [] if watts is None else [watts]
            self.sight = self.sight._replace(away="", meters=Meters([*self._busy], [*self._watts]))
        self.redraw()

    def on_resize(self) -> None:
        self.call_after_refresh(self.redraw)

    def redraw(self) -> None:
        """All that is seen."""
        beside = self.view in ("job", "log") and self.size.width >= WIDE
        body = self.query_one("#body")
        body.set_class(beside, "beside")
        self.query_one("#listing").display = not self.view or beside
        self.query_one("#pane").display = self.view in ("job", "devices", "keys")
        self.query_one("#log").display = self.view == "log"
        if self.seen is None:
            return
        self._choose()
        if not self.view or beside:
            self._draw_listing(self.seen, self.size.width // 2 if beside else self.size.width)
        if self.view in ("job", "devices", "keys"):
            width = self.size.width - (self.size.width // 2 + 2 if beside else 0) - 1
            self.query_one("#page", Static).update(self._text(self._page(self.seen, width)))
        if self._asked is None and self._forget is None:
            self.query_one("#foot", Static).update(self._foot())

    def _look(self, width: int) -> Look:
        return Look(clock.now(), width, self._colour, people=True)

    def _text(self, lines: Sequence[str]) -> Text:
        return Text.from_ansi("\n".join(lines), no_wrap=True, overflow="crop")

    def _draw_listing(self, seen: Snapshot, width: int) -> None:
        height = self.query_one("#body").size.height or self.size.height - 1
        self.drawn = top_drawing.overview(seen, self.sight, self._look(width), height)
        lines = [Text.from_ansi(line, no_wrap=True) for line in self.drawn.lines]
        for number, id in self.drawn.jobs.items():
            if id == self.sight.chosen:
                lines[number] = Text(lines[number].plain.ljust(width), style="reverse")
        self.query_one("#listing", Static).update(Text("\n", no_wrap=True).join(lines))

    def _page(self, seen: Snapshot, width: int) -> list[str]:
        look = self._look(width)
        if self.view == "keys":
            return list(top_drawing.sections(KEYS, look))
        if self.view == "devices":
            return rooted(seen.devices, seen.jobs, look, None)
        if seen.opened is None or seen.opened.detail.job.id != self.sight.chosen:
            return [look.paint(f"Job {self.sight.chosen} …", "quiet")]
        return top_drawing.opened(seen.opened, look)

    def _foot(self) -> Text:
        sought = f"/{self.sight.sought}  esc shows all   " if self.sight.sought else ""
        text = FOOT_OF_VIEW if self.view else sought + FOOT
        if self.sight.user is not None:
            text = text.replace("f mine", "f all")
        return Text(text, style="dim" if self._colour else "", no_wrap=True, overflow="crop")

    # --------------------------------------------------------------------------------- choosing

    def _found(self) -> list[JobRecord]:
        if self.seen is None:
            return []
        return top_drawing.matching(self.seen.jobs, self.sight.sought)

    def _choose(self) -> None:
        """Some job is always chosen; whichever is gone gives way to the first."""
        found = self._found()
        if not any(job.id == self.sight.chosen for job in found) and not self.view:
            self.sight = self.sight._replace(chosen=found[0].id if found else "")

    @property
    def chosen(self) -> JobRecord | None:
        return next((job for job in self._found() if job.id == self.sight.chosen), None)

    def _go(self, steps: int) -> None:
        ids = [job.id for job in self._found()]
        if not ids:
            return
        at = ids.index(self.sight.chosen) if self.sight.chosen in ids else 0
        self._goto(ids[max(0, min(at + steps, len(ids) - 1))])

    def _goto(self, id: str) -> None:
        self.sight = self.sight._replace(chosen=id)
        if self.view == "job":
            self._feed.opened = id
            self._feed.wake()
        elif self.view == "log":
            self._follow(id)
        self.redraw()

    @property
    def _scrolled(self) -> VerticalScroll | RichLog | None:
        """What the keys scroll: what lies before the list."""
        if self.view == "log":
            return self.query_one("#log", RichLog)
        return self.query_one("#pane", VerticalScroll) if self.view else None

    def action_move(self, steps: int) -> None:
        over = self._scrolled
        if over is None or self.query_one("#listing").display:
            self._go(steps)
        else:
            over.scroll_relative(y=steps, animate=False)

    def action_page(self, pages: int) -> None:
        over = self._scrolled
        if over is None:
            self._go(pages * PAGE)
        else:
            over.scroll_relative(y=pages * max(over.size.height - 1, 1), animate=False)

    def action_end(self, which: int) -> None:
        over = self._scrolled
        if over is None or self.query_one("#listing").display:
            self._go(which * 1_000_000)
        elif which < 0:
            over.scroll_home(animate=False)
        else:
            over.scroll_end(animate=False)

    def on_chosen(self, message: Chosen) -> None:
        """A click."""
        id = self.drawn.jobs.get(message.line)
        if id is not None:
            self._goto(id)
            if message.twice:
                self.action_open("job")

    # ---------------------------------------------------------------------------------- opening

    def action_open(self, view: str) -> None:
        """Show it, or close it if it is shown."""
        if view in ("job", "log") and not self.sight.chosen:
            return
        self._close_log()
        self.view = "" if self.view == view else view
        self._feed.opened = self.sight.chosen if self.view == "job" else ""
        if self.view == "log":
            self._follow(self.sight.chosen)
        self.query_one("#pane").scroll_home(animate=False)
        self._feed.wake()
        self.redraw()

    def action_close(self) -> None:
        """From what was opened last, and then from a search."""
        if self._asked is not None:
            self.action_answer(False)
        elif self.view:
            self.action_open(self.view)
        elif self.sight.sought:
            self.sight = self.sight._replace(sought="")
            self.redraw()

    def _follow(self, id: str) -> None:
        self._close_log()
        self.query_one("#log", RichLog).clear()
        self._follower = Follower(Client(self._client.address), id)
        self._follower.start()

    def _close_log(self) -> None:
        if self._follower is not None:
            self._follower.close()
        self._follower = None

    def _take_log(self) -> None:
        log = self.query_one("#log", RichLog)
        if self._follower is None or not log.size.width:
            return
        below = log.scroll_offset.y >= log.max_scroll_y  # whoever scrolled up reads there
        for line in self._follower.take():
            log.write(Text(top_drawing.plain(line)), scroll_end=below)

    # ----------------------------------------------------------------------------------- acting

    def action_stop(self) -> None:
        job = self.chosen
        if job is None or job.state in ENDED:
            self.say("Choose a job that is not over.", "waits")
            return
        self._asked = lambda: self._do(lambda: self._client.stop(job.id), "is being stopped")
        self._show(f"Stop job {job.id} ({job.name}) for good? y stops it, n does not.", "wrong")

    def action_answer(self, yes: bool) -> None:
        """What was asked is done, or not."""
        asked, self._asked = self._asked, None
        if asked is not None:
            self._forget_said()
            if yes:
                asked()

    def action_park(self) -> None:
        job = self.chosen
        if job is None or job.state in ENDED:
            self.say("Choose a job that is not over.", "waits")
        elif job.held:
            self._do(lambda: self._client.unpark(job.id), "may go on")
        else:
            self._do(lambda: self._client.park(job.id), "is parked; p lets it go on")

    def action_retry(self) -> None:
        job = self.chosen
        if job is None or job.state not in ENDED:
            self.say("Only what is over can be run once more.", "waits")
        else:
            self._do(lambda: self._client.retry(job.id), "repeats it")

    def _do(self, act: Callable[[], Sequence[JobRecord]], done: str) -> None:
        """In a thread: the screen goes on."""

        def work() -> None:
            try:
                job = act()[0]
            except BoughError as error:
                self.post_message(Said(str(error), "wrong"))
                return
            self.post_message(Said(f"Job {job.id} ({job.name}) {done}.", "works"))
            self._feed.wake()

        self.run_worker(work, thread=True, exit_on_error=False)

    def on_said(self, message: Said) -> None:
        self.say(message.text, message.meaning)

    def say(self, text: str, meaning: str = "") -> None:
        """On the last line, for a while."""
        self._show(text, meaning)
        self._forget = self.set_timer(SAID_SECONDS, self._forget_said)

    def _show(self, text: str, meaning: str) -> None:
        if self._forget is not None:
            self._forget.stop()
        painted = self._look(self.size.width).paint(top_drawing.plain(text), meaning)
        self.query_one("#foot", Static).update(Text.from_ansi(painted, no_wrap=True))

    def _forget_said(self) -> None:
        self._forget = None
        self.redraw()

    # ---------------------------------------------------------------------------------- seeking

    def action_mine(self) -> None:
        user = None if self.sight.user is not None else asking.me()
        self.sight = self.sight._replace(user=user)
        self._feed.user = user
        self._feed.wake()
        self.redraw()

    def action_look(self) -> None:
        self._feed.wake()

    def action_search(self) -> None:
        self._box(True)

    def _box(self, open: bool) -> None:
        """The line to type in, in place of the last one."""
        self.query_one("#box").display, self.query_one("#foot").display = open, not open
        if open:
            line = self.query_one("#search", Input)
            line.value = self.sight.sought
            line.focus()
        else:
            self.set_focus(None)

    def on_input_changed(self, message: Input.Changed) -> None:
        self.sight = self.sight._replace(sought=message.value)
        self.redraw()

    def on_input_submitted(self) -> None:
        self._box(False)
        self.redraw()

    def on_key(self, event: events.Key) -> None:
        """While somebody types: up and down still choose, and esc ends the search."""
        if not self.query_one("#box").display:
            return
        if event.key == "escape":
            self.sight = self.sight._replace(sought="")
            self._box(False)
            self.redraw()
            event.stop()
        elif event.key in ("up", "down"):
            self._go(1 if event.key == "down" else -1)
            event.stop()
