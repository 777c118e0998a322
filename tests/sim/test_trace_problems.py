"""Recognising traces, and what is said about files and rows that cannot be used."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.datasets import ROOT
from tests.sim import samples
from tests.sim.samples import OWN, SAMPLES, Rates, profile, read

from bough.core.model import JobSpec, Range
from bough.core.speedup import Curve
from bough.errors import InputError
from bough.sim.formats import FORMATS
from bough.sim.formats.own import encoded, write_trace
from bough.sim.trace import Reading, Trace, TraceJob, read_trace


def test_there_is_a_sample_of_every_format() -> None:
    assert set(SAMPLES) == set(FORMATS)


# ------------------------------------------------------------------ recognising


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_known_by_its_columns_whatever_the_file_is_called(
    name: str, tmp_path: Path
) -> None:
    trace = read(tmp_path, SAMPLES[name], rates=Rates(), profiles=profile(tmp_path))
    assert trace.format == name
    assert trace.problems == ()
    assert [job.submit for job in trace.jobs] == sorted(job.submit for job in trace.jobs)


@pytest.mark.parametrize("name", FORMATS)
def test_windows_line_ends_a_byte_order_mark_and_gzip_change_nothing(
    name: str, tmp_path: Path
) -> None:
    reading = Reading(rates=Rates(), profiles=profile(tmp_path))
    plain, packed = tmp_path / "t.csv", tmp_path / "t.csv.gz"
    plain.write_text(SAMPLES[name])
    text = "\ufeff" + SAMPLES[name].replace("\n", "\r\n")
    packed.write_bytes(gzip.compress(text.encode()))
    assert read_trace(packed, reading).jobs == read_trace(plain, reading).jobs


def test_an_unknown_file_says_what_it_begins_with_and_what_could_be(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"no known trace format: it begins 'a;b;c' \(.*--format: bough, elastic"
    ):
        read(tmp_path, "a;b;c\n1;2;3\n")


def test_a_forced_format_says_which_columns_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"trace:1: lacks the columns submit_time, iteration"):
        read(tmp_path, "job_id,a\n1,2\n", format="elasticflow")


def test_an_unknown_format_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no trace format 'elastic' \(did you mean 'elasticflow'"):
        read(tmp_path, OWN, format="elastic")


@pytest.mark.parametrize("text", ["", "\n\n", "   "])
def test_an_empty_file_is_empty(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="trace: is empty"):
        read(tmp_path, text)


def test_a_header_alone_holds_no_job(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no usable job"):
        read(tmp_path, samples.MURI.partition("\n")[0])


def test_files_that_are_no_text_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with pytest.raises(InputError, match="No such file"):
        read_trace(path)
    path.write_bytes(b"job_id\n\xff\xfe")
    with pytest.raises(InputError, match=r"trace:2: is no UTF-8 text"):
        read_trace(path)
    path.write_bytes(gzip.compress(b"job_id\n" * 100)[:-20])
    with pytest.raises(InputError, match="damaged gzip"):
        read_trace(path)
    with pytest.raises(InputError, match="is a folder without pai_task_table"):
        read_trace(tmp_path)


# ------------------------------------------------------------------ malformed rows

HEADER = "job_id,num_gpu,submit_time,model_name,duration\n"


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("1,2,x,m,5", "submit_time: 'x' is not a number"),
        ("1,2,-1,m,5", "submit_time: -1 is not within 0..1e+12"),
        ("1,2,nan,m,5", "submit_time: nan is not within 0..1e+12"),
        ("1,2,0,m,inf", "duration: inf is not within 0..1e+12"),
        ("1,1.5,0,m,5", "num_gpu: 1.5 is not a whole number"),
        ("1,2,0,m", "has 4 cells, not 5"),
        ("0,2,0,m,5", "job '0' appears twice"),
    ],
)
def test_a_malformed_row_is_skipped_with_its_number_or_fatal(
    row: str, problem: str, tmp_path: Path
) -> None:
    text = f"{HEADER}0,1,0,m,5\n{row}\n2,1,0,m,5\n"
    trace = read(tmp_path, text)
    assert [job.id for job in trace.jobs] == ["0", "2"]
    assert trace.problems == (f"{tmp_path / 'trace'}:3: {problem}",)
    with pytest.raises(InputError) as caught:
        read(tmp_path, text, on_bad="fail")
    assert (caught.value.line, str(caught.value)) == (3, trace.problems[0])


def test_rows_that_are_no_jobs_are_counted_and_never_fatal(tmp_path: Path) -> None:
    trace = read(tmp_path, f"{HEADER}0,1,0,m,5\n1,0,0,m,5\n2,1,0,m,0\n", on_bad="fail")
    assert trace.problems == ()
    assert trace.notes[1:] == (
        "1 row left out: asked for no device",
        "1 row left out: ran for 0 seconds",
    )


def test_only_malformed_rows_are_an_error_that_shows_the_first(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no usable job; the first problem: .*:2: num_gpu: 'x'"):
        read(tmp_path, f"{HEADER}0,x,0,m,5\n")


# ------------------------------------------------------------------ our own format


def test_own_traces_name_shared_curves(tmp_path: Path) -> None:
    trace = read(tmp_path, OWN)
    assert (trace.name, trace.kind, [job.id for job in trace.jobs]) == ("mine", "a100", ["2", "1"])
    assert trace.jobs[1].curve == Curve(sizes=(1, 2), speed=(1.0, 1.5))
    assert trace.jobs[0].fails_at == 0.5
    assert trace.jobs[0].spec.devices == Range(min=2, max=4)


def own_line(
    devices_range: object = None, asks: dict[str, object] | None = None, **changes: object
) -> str:
    spec = {"name": "x", "devices": devices_range or {}} | (asks or {})
    return json.dumps({"id": "9", "submit": 1, "seconds": 1, "devices": 1, "spec": spec} | changes)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("nonsense", "JSON is malformed"),
        ('{"id": "9"}', "missing required field `submit`"),
        ('{"id": 9, "submit": 1}', "Expected `str`, got `int`"),
        ('{"ID": "9"}', "unknown field `ID`"),
        (own_line(submit=-1), "submit: -1 is not within 0..1e+12"),
        (own_line(seconds=0), "seconds: 0 is not within 0..1e+12"),
        (own_line(devices=0), "devices: 0 is not within 1..10000000"),
        (own_line(fails_at=1), "fails_at: 1 is not within 0..1"),
        (own_line(curve="d"), "curve: 'd' is not among the curves of the first line"),
        (own_line(curve={"sizes": [1], "speed": [0]}), "curve: speed is 0 everywhere"),
        (own_line(devices_range={"min": 0}), "it needs 1 to 10000000 devices"),
        (own_line(devices_range={"max": 10**30}), "needs 0 <= min <= max <= 10000000"),
        (own_line(asks={"priority": 10**30}), "priority must be from -1000000 to 1000000"),
        (own_line(asks={"cpus": 1e308}), "cpus must be 0 or more, and at most 1e+18"),
        (own_line(asks={"memory": -1}), "memory must be 0 or more"),
        (own_line(asks={"roles": [{"name": "w", "devices": 0}]}), "it needs 1 to 10000000"),
        (own_line(asks={"roles": [{"name": "w", "devices": 10**30}]}), "at most 1e+18"),
        (own_line(asks={"roles": [{"name": "w", "devices": 10**8}]}), "it needs 1 to 10000000"),
        (own_line(asks={"roles": [{"name": "w", "cpus": -1}]}), "cpus must be 0 or more"),
        (own_line(devices_range={"min": 3, "max": 2}), "range 3..2 needs 0 <= min <= max"),
        ('{"id": "9", "curve": ' + '{"a":' * 100_000, "recursion"),
    ],
)
def test_own_lines_that_are_malformed(line: str, problem: str, tmp_path: Path) -> None:
    trace = read(tmp_path, OWN + line + "\n")
    assert len(trace.jobs) == 2
    assert f"{tmp_path / 'trace'}:4: " in trace.problems[0]
    assert problem in trace.problems[0]


def own_job(id: str, *after: str) -> str:
    """A line of a job that comes after others."""
    job = json.loads(own_line(asks={"after": [{"job": one} for one in after]}))
    return json.dumps(job | {"id": id}) + "\n"


def test_own_jobs_that_would_wait_for_ever_are_told(tmp_path: Path) -> None:
    fine = own_job("a") + own_job("b", "c", "a") + own_job("c", "a")
    assert read(tmp_path, fine).notes == ()
    trace = read(tmp_path, fine + own_job("d", "x", "b"))
    assert trace.notes == ("1 job waits for ever: 'd' comes after 'x'",)
    trace = read(tmp_path, fine + own_job("e", "e") + own_job("f", "e"))
    assert trace.notes == ("2 jobs wait for ever: 'e' comes after 'e'",)


def test_own_jobs_become_elastic_when_asked_and_gangs_stay_as_they_are(tmp_path: Path) -> None:
    gang = own_line(asks={"roles": [{"name": "w", "count": {"min": 2, "max": 2}}]})
    trace = read(tmp_path, OWN + gang + "\n", elastic_limit=8)
    sizes = {job.id: job.spec.sizes() for job in trace.jobs}
    assert sizes == {"1": (1, 2, 4, 8), "2": (1, 2, 4, 8), "9": (2,)}


def test_a_first_line_from_the_future_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"trace:1: bough_trace: is 2, and this bough reads 1"):
        read(tmp_path, '{"bough_trace": 2}\n')
    with pytest.raises(InputError, match=r"trace:1: curves: sizes is empty"):
        read(tmp_path, '{"bough_trace": 1, "curves": {"c": {"sizes": [], "speed": []}}}\n')


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz"])
@pytest.mark.parametrize("name", FORMATS)
def test_what_is_written_is_read_again(name: str, ending: str, tmp_path: Path) -> None:
    trace = read(tmp_path, SAMPLES[name], rates=Rates(), profiles=profile(tmp_path))
    path = tmp_path / f"copy.{ending}"
    write_trace(trace, path)
    again = read_trace(path)
    assert again == msgspec.structs.replace(trace, format="bough", notes=(), problems=())


names = st.text(st.characters(codec="utf-8"), max_size=6)
jobs = st.builds(
    TraceJob,
    id=names,
    submit=st.floats(0, 1e9),
    seconds=st.floats(1e-3, 1e9),
    devices=st.integers(1, 4096),
    spec=st.builds(
        JobSpec,
        name=names,
        user=names,
        devices=st.tuples(st.integers(1, 99), st.integers(0, 99)).map(
            lambda pair: Range(min=pair[0], max=pair[0] + pair[1])
        ),
        deadline=st.none() | st.floats(0, 1e9),
    ),
    curve=st.none()
    | st.sampled_from([Curve(sizes=(1, 4), speed=(1.0, 2.5)), Curve(sizes=(2,), speed=(1.0,))]),
    fails_at=st.none() | st.floats(1e-3, 1, exclude_max=True),
)


@given(found=st.lists(jobs, min_size=1, max_size=5, unique_by=lambda job: job.id), name=names)
def test_any_trace_survives_writing(
    tmp_path_factory: pytest.TempPathFactory, found: list[TraceJob], name: str
) -> None:
    ordered = tuple(sorted(found, key=lambda job: job.submit))
    trace = Trace(name=name or "x", jobs=ordered, kind="a100", epoch=5.0)
    path = tmp_path_factory.mktemp("trace") / "t"
    path.write_bytes(b"\n".join(encoded(trace)))
    assert read_trace(path, Reading(format="bough")) == trace


def test_the_example_in_the_documentation_is_a_trace(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "traces.md").read_text(encoding="utf-8")
    example = page.partition("```json\n")[2].partition("```")[0]
    trace = read(tmp_path, example, on_bad="fail")
    assert (trace.name, len(trace.jobs), trace.kind) == ("mine", 1, "a100")
    assert {f"### `{name}`:" in page for name in FORMATS if name != "bough"} == {True}
