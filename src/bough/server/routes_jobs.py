"""Operations of the API about jobs: submit, look up, change, explain, and read what they print."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Annotated, Final

import msgspec

from bough.core.prospects import Outlook, Quote
from bough.core.reason import Reason
from bough.errors import ConflictError
from bough.records import (
    MIB,
    Amendment,
    Decision,
    JobDetail,
    JobPage,
    JobRecord,
    Receipt,
    State,
    Submission,
)
from bough.server import log_ranges, logs
from bough.server.operations import Answer, Ask, Count, Operations, Query, Ref, Stream
from bough.server.problems import HttpError

api = Operations()
Jobs = tuple[JobRecord, ...]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Batch = Annotated[tuple[Submission, ...], msgspec.Meta(max_length=10_000)]
_KEYS: Final = {"Idempotency-Key": "Sent again with the same key, it is the same job."}


class Which(Query, frozen=True):
    """Jobs that are wanted."""

    state: tuple[State, ...] = ()
    user: Ref | None = None
    queue: Ref | None = None
    name: Ref | None = None
    #: Older than this job.
    before: Ref | None = None
    limit: Limit = 50


class Ahead(Query, frozen=True):
    """How far, and in how many versions, to look ahead."""

    versions: Annotated[int, msgspec.Meta(ge=1, le=100)] = 20
    #: Nobody is followed further than this.
    horizon_seconds: Annotated[float, msgspec.Meta(gt=0, le=31_536_000)] = 2_592_000.0


class Wait(Query, frozen=True):
    """How long an answer may be waited for."""

    seconds: Annotated[float, msgspec.Meta(ge=0, le=60)] = 30.0


class Page(Query, frozen=True):
    """Some of the journal."""

    #: The last entry of the page before.
    after: Count = 0
    limit: Limit = 100


class PageOf(Page, frozen=True):
    """The same, of one job."""

    job: Ref | None = None


class Lines(Query, frozen=True):
    """Lines that are wanted of a job's logs."""

    attempt: Count | None = None
    rank: Count | None = None
    role: Ref | None = None
    #: Only the last so many of each worker, of its last attempt.
    tail: Count | None = None
    #: Until the job is over.
    follow: bool = False


@api.route("GET /v1/jobs")
def list_jobs(ask: Ask, query: Which) -> JobPage:
    """Some jobs, the latest submitted first."""
    return ask.service.jobs(
        ask.caller,
        states=query.state or None,
        user=query.user,
        queue=query.queue,
        name=query.name,
        before=query.before,
        limit=query.limit,
    )


@api.route(
    "POST /v1/jobs",
    scope="submit",
    status=201,
    headers=_KEYS,
    also={200: "It had been submitted before, with the same key."},
)
async def submit_job(ask: Ask, body: Submission) -> Answer[JobRecord]:
    """Have a job run. It is on disk when this is answered."""
    key = ask.headers.get("idempotency-key", "")
    if key and body.key not in ("", key):
        raise HttpError(400, "the header Idempotency-Key and the key of the submission differ")
    body = msgspec.structs.replace(body, key=key or body.key)
    at = ask.service.now()
    (job,) = await asyncio.wrap_future(ask.service.submit(ask.caller, (body,)))
    again = bool(body.key) and job.submitted < at
    return Answer(job, 200 if again else 201, {"location": f"/v1/jobs/{job.id}"})


@api.route("POST /v1/jobs/batch", scope="submit", status=201, bytes_max=64 * MIB)
def submit_jobs(ask: Ask, body: Batch) -> Future[Jobs]:
    """Have several jobs run, all or none; those with the same `array_of` become one array."""
    return ask.service.submit(ask.caller, body)


@api.route("POST /v1/quote", scope="submit", patient=True)
def quote_job(ask: Ask, query: Ahead, body: Submission) -> Future[Quote]:
    """What would become of a job if it were submitted now: nothing is submitted."""
    return ask.service.quote(ask.caller, body, query.versions, query.horizon_seconds)


@api.route("GET /v1/jobs/{ref}")
def get_job(ask: Ask, ref: Ref) -> JobDetail:
    """All there is to see of a job, by its number or the name of the caller's latest one."""
    return ask.service.detail(ask.caller, ref)


@api.route("PATCH /v1/jobs/{ref}", scope="manage")
def amend_job(ask: Ask, ref: Ref, body: Amendment) -> Future[Jobs]:
    """Change its sizes, queue, priority, deadline or longest run time."""
    return ask.service.amend(ask.caller, ref, body)


@api.route("GET /v1/jobs/{ref}/why")
def explain_job(ask: Ask, ref: Ref) -> Reason:
    """Why it waits or runs, and what would help."""
    return ask.service.why(ask.caller, ref)


@api.route("GET /v1/jobs/{ref}/forecast")
async def forecast_job(ask: Ask, ref: Ref) -> Outlook:
    """When a job that is not over is likely to begin and end."""
    id = await ask.around.in_thread(lambda: ask.service.live(ask.caller, ref))
    for _ in range(2):  # it may have come after the last look
        seen = await asyncio.wrap_future(ask.service.foresight.fresh(id))
        if id in seen.outlooks:
            return seen.outlooks[id]
    raise ConflictError(f"Job {id} is over by now, or has just come; ask again.")


@api.route("GET /v1/jobs/{ref}/receipt")
def get_receipt(ask: Ask, ref: Ref) -> Receipt:
    """What became of it, and what it took."""
    return ask.service.receipt(ask.caller, ref)


@api.route("GET /v1/jobs/{ref}/wait", patient=True)
def wait_for_job(ask: Ask, ref: Ref, query: Wait) -> Future[JobRecord]:
    """The job when it is over, or as it is when that time has passed."""
    return ask.service.wait(ask.caller, ref, query.seconds)


@api.route("GET /v1/jobs/{ref}/decisions")
def list_decisions_of_job(ask: Ask, ref: Ref, query: Page) -> tuple[Decision, ...]:
    """What was commanded about it, and why, oldest first."""
    return ask.service.decisions(ask.caller, job=ref, after=query.after, limit=query.limit)


@api.route("GET /v1/decisions")
def list_decisions(ask: Ask, query: PageOf) -> tuple[Decision, ...]:
    """What was commanded, and why, oldest first."""
    return ask.service.decisions(ask.caller, job=query.job, after=query.after, limit=query.limit)


@api.route("POST /v1/jobs/{ref}/stop", scope="manage")
def stop_job(ask: Ask, ref: Ref) -> Future[Jobs]:
    """End it for good."""
    return ask.service.stop(ask.caller, ref)


@api.route("POST /v1/jobs/{ref}/park", scope="manage")
def park_job(ask: Ask, ref: Ref) -> Future[Jobs]:
    """Let it leave its devices until it is unparked."""
    return ask.service.hold(ask.caller, ref, True)


@api.route("POST /v1/jobs/{ref}/unpark", scope="manage")
def unpark_job(ask: Ask, ref: Ref) -> Future[Jobs]:
    """Let it go on."""
    return ask.service.hold(ask.caller, ref, False)


@api.route("POST /v1/jobs/{ref}/retry", scope="manage")
def retry_job(ask: Ask, ref: Ref) -> Future[Jobs]:
    """Have it run once more, as a new job."""
    return ask.service.retry(ask.caller, ref)


@api.route("GET /v1/jobs/{ref}/logs", media=logs.MEDIA)
async def read_logs(ask: Ask, ref: Ref, query: Lines) -> Stream:
    """What its workers print: chunks of whole lines, one JSON object each; last a LogEnd."""
    wanted = logs.Wanted(query.attempt, query.rank, query.role, query.tail, query.follow)
    return await logs.stream(ask, ref, wanted)


@api.route(
    "GET /v1/jobs/{ref}/logs/{attempt}/{rank}",
    media="text/plain",
    headers={"Range": "The bytes that are wanted: `bytes=0-999`, `bytes=1000-` or `bytes=-1000`."},
    also={206: "Some bytes of it.", 416: "It has no such bytes."},
)
async def read_log(ask: Ask, ref: Ref, attempt: Count, rank: Count) -> Stream:
    """One worker's log as it is."""
    return await log_ranges.read(ask, ref, attempt, rank)
