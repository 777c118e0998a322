"""Throughput tables: every format ends in the same curves, and nonsense in one clear line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.datasets import data

from bough.core.speedup import Curve, SpeedBook
from bough.errors import InputError
from bough.sim.tables import read_rows, read_speedups

SIZES = (1, 2, 4, 8, 16, 32, 64)


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def book(path: Path, reference: str = "") -> SpeedBook:
    return read_speedups(path, SpeedBook(reference))


# -------------------------------------------------------------------------------- our own


OWN = """model,kind,batch,devices,rate,span,error
net,h100,64,1,10,0,0.05
net,h100,64,2,18,0,0.05
net,h100,64,2,9,1,0.05
net,t4,64,1,infeasible,,
net,t4,64,2,3,,
"""


def test_our_own_table(tmp_path: Path) -> None:
    found = book(written(tmp_path / "own.csv", OWN), "h100")
    assert found.curve("net", 64, "h100") == Curve((1, 2), (1.0, 1.8), "profiled", 0.05, (0.5,))
    assert found.curve("net", 64, "t4").speed == (0.0, 0.3)
    assert found.rate("net", 64, "t4", 1) is None


def test_only_three_columns_are_needed(tmp_path: Path) -> None:
    found = book(written(tmp_path / "own.csv", "devices,model,rate\n1,net,2\n4,net,6\n"))
    assert found.curve("net", 512, "h100").speed == (1.0, 3.0)


def test_a_gzipped_table_reads_the_same_whatever_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_bytes(gzip.compress(OWN.encode()))
    assert book(path, "h100").curve("net", 64, "h100").at(2) == 1.8


def test_tables_join_the_book_that_is_given(tmp_path: Path) -> None:
    first = book(written(tmp_path / "a.csv", "model,devices,rate\na,1,1\n"))
    second = read_speedups(written(tmp_path / "b.csv", "model,devices,rate\nb,1,1\n"), first)
    assert second.models() == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model,devices,rate\nnet,1,-2\n", "x.csv:2: rate: '-2' is no positive number"),
        ("model,devices,rate\nnet,1,nan\n", "x.csv:2: rate: 'nan' is no positive number"),
        ("model,devices,rate\nnet,1,fast\n", "x.csv:2: rate: 'fast' is no positive number"),
        ("model,devices,rate\nnet,1,0\n", "rate: is 0 (write 'infeasible' where"),
        ("model,devices,rate\nnet,0,2\n", "devices: '0' is no whole number from 1"),
        ("model,devices,rate\nnet,1.5,2\n", "devices: '1.5' is no whole number from 1"),
        ("model,devices,rate\nnet,1\n", "x.csv:2: has 2 cells under 3 columns"),
        ("model,devices,rate,bach\nn,1,1,8\n", "no column 'bach' (did you mean 'batch'?)"),
        ("model,devices,rate\nnet,1,infeasible\n", "speed is 0 everywhere"),
        ("model,devices,rate\n", "holds no measurement"),
        ("", "is no throughput table (our own has the columns model, devices, rate, kind"),
        ("{}", "is no throughput table"),
        ('{"v100": {"(\'A\', 1)": {"null": "fast"}}}', "v100.('A', 1): 'fast' is no rate"),
        ("placement,local_bsz,step_time,sync_time\n4x,8,1,0\n", "'4x' is no placement"),
        (
            "placement,local_bsz,step_time,sync_time\n4,8,0,0\n",
            "step_time: '0' is no positive number",
        ),
        ("global_batch_size,1,two\n64,1,2\n", "two: 'two' is no whole number from 1"),
    ],
)
def test_nonsense_is_told_by_file_line_and_field(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_speedups(written(tmp_path / "x.csv", text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_path_that_leads_nowhere(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file or directory"):
        read_speedups(tmp_path / "nowhere")
    with pytest.raises(InputError, match="holds no throughput table"):
        read_speedups(tmp_path)


def test_in_a_folder_other_files_are_left_alone_but_broken_tables_are_not(tmp_path: Path) -> None:
    written(tmp_path / "LICENSE.txt", "all yours")
    written(tmp_path / "jobs.csv", "job,submit\n1,2\n")
    written(tmp_path / "deep" / "own.csv", OWN)
    assert book(tmp_path).models() == ["net"]
    written(tmp_path / "bad.csv", "model,devices,rate\nnet,1,-2\n")
    with pytest.raises(InputError, match="bad"):
        book(tmp_path)


# ---------------------------------------------------------------------------- ElasticFlow


def test_elasticflow_has_a_row_for_each_batch_and_no_number_where_nothing_was_measured(
    tmp_path: Path,
) -> None:
    text = "global_batch_size,1,2,4,8\n64,5,9,,nan\n128,3,5.5,9,0\n"
    written(tmp_path / "throughputs_A100" / "net.csv", text)
    found = book(tmp_path)
    assert found.curve("net", 64, "a100").speed == (1.0, 1.8)
    assert found.curve("net", 128, "a100").sizes == (1, 2, 4)
    assert found.rate("net", 128, "A100", 4) == 9
    assert found.rate("net", 128, "a100", 8) is None
    assert {row.kind for row in read_rows(tmp_path)} == {"a100"}


def test_the_kind_is_only_taken_from_a_folder_that_names_one(tmp_path: Path) -> None:
    path = written(tmp_path / "tables" / "net.csv", "global_batch_size,1,2\n64,5,9\n")
    assert {row.kind for row in read_rows(path)} == {""}
    assert book(path).curve("net", 64, "whatever").at(2) == 1.8


# --------------------------------------------------------------------------------- Gavel


def test_gavel_has_kinds_partners_and_scattered_places(tmp_path: Path) -> None:
    one, two = "('ResNet-18 (batch size 64)', 1)", "('ResNet-18 (batch size 64)', 2)"
    tables = {
        "v100": {one: {"null": 8.0, one: [5.0, 5.0]}, two: {"null": 12.0}},
        "v100_unconsolidated": {one: {"null": 8.0}, two: {"null": 6.0}},
        "k80": {one: {"null": 2.0}, two: {"null": 0.0}, "('A3C', 1)": {"null": 3}},
    }
    found = book(written(tmp_path / "t.json", json.dumps(tables)), "v100")
    curve = found.curve("ResNet-18", 64, "v100")
    assert curve.speed == (1.0, 1.5)
    assert curve.span_factor == pytest.approx((0.5,))
    assert found.curve("resnet18", 64, "k80").speed == (0.25,)
    assert found.curve("A3C", 0, "k80").sizes == (1,)


# -------------------------------------------------------------------------------- Pollux


PLACEMENTS = """placement,local_bsz,step_time,sync_time
1,8,1.0,0.0
1,16,2.0,0.0
2,8,1.5,0.5
2,16,2.5,0.5
11,8,2.0,1.0
11,16,3.0,1.0
"""


def test_pollux_steps_become_speeds_at_a_fixed_batch(tmp_path: Path) -> None:
    written(tmp_path / "net" / "placements.csv", PLACEMENTS)
    written(tmp_path / "net" / "validation-32.csv", "epoch,metric\n1,2\n")
    found = book(tmp_path)
    # One device gathers two passes of 16; two devices do 16 each at once.
    assert found.rate("net", 32, "t4", 1) == pytest.approx(1 / 4.0)
    assert found.rate("net", 32, "t4", 2) == pytest.approx(1 / 2.5)
    assert found.curve("net", 32, "t4").span_factor == pytest.approx((2.5 / 3,))


def test_between_measured_local_batches_steps_are_interpolated(tmp_path: Path) -> None:
    written(tmp_path / "net" / "placements.csv", PLACEMENTS)
    written(tmp_path / "net" / "validation-12.csv", "")
    found = book(tmp_path)
    assert found.rate("net", 12, "", 1) == pytest.approx(1 / 1.5)
    assert found.rate("net", 12, "", 2) is None  # 6 on each device were never measured


def test_without_known_batches_doublings_are_taken(tmp_path: Path) -> None:
    path = written(tmp_path / "net" / "placements.csv", PLACEMENTS)
    assert {row.batch for row in read_rows(path)} == {16, 32}


def test_wider_spreads_of_gangs_larger_than_a_node_are_no_level(tmp_path: Path) -> None:
    text = "num_nodes,num_replicas,local_bsz,step_time,sync_time\n2,8,8,1,0\n4,8,8,3,0\n"
    written(tmp_path / "net" / "placements.csv", PLACEMENTS)
    written(tmp_path / "net" / "scalability.csv", text)
    rows = [row for row in read_rows(tmp_path) if row.size == 8]
    assert {row.span for row in rows} == {0}
    assert {row.rate for row in rows} == {1.0}


# -------------------------------------------------------------------------- CarbonScaler


def test_carbonscaler_counts_nodes(tmp_path: Path) -> None:
    path = written(tmp_path / "nbody.csv", "nodes,throughput,power\n0,0,0\n1,10,50\n2,19,110\n")
    assert book(path).curve("nbody", 0, "cpu").speed == (1.0, 1.9)


# ---------------------------------------------------------------------------- public data


@pytest.mark.data
def test_published_tables_of_elasticflow_are_met_to_the_digit() -> None:
    found = book(data("elasticflow"))
    assert found.rate("bert", 128, "a100", 16) == 10.767556247473081
    assert found.rate("vgg16", 64, "A100", 32) == 30.555726268627115
    assert found.rate("yolov3", 64, "t4", 32) is None
    speed = found.curve("resnet50", 256, "a100").over(SIZES)
    assert speed.round(2).tolist() == [1.0, 1.87, 3.36, 5.63, 8.22, 9.67, 10.22]


@pytest.mark.data
def test_our_reading_of_pollux_profiles_is_that_of_elasticflow() -> None:
    """ElasticFlow's T4 tables were made from Pollux' profiles; where one node or whole nodes of
    the largest clusters were used both must agree, in between they chose other placements."""
    theirs, ours = book(data("elasticflow/throughputs_T4")), book(data("pollux-osdi21/traces"))
    for model, batch in [("bert", 384), ("cifar10", 2048), ("imagenet", 6400)]:
        for size in (1, 2, 4, 32, 64):
            expected = theirs.rate(model, batch, "t4", size)
            assert ours.rate(model, batch, "t4", size) == pytest.approx(expected, rel=1e-3)
        for size in (8, 16):
            expected = theirs.rate(model, batch, "t4", size)
            assert ours.rate(model, batch, "t4", size) == pytest.approx(expected, rel=0.1)


@pytest.mark.data
@pytest.mark.parametrize(
    "file", ["gavel/simulation_throughputs.json.gz", "shockwave/tacc_throughputs.json.gz"]
)
def test_gavel_and_shockwave_tables_are_read_whole(file: str) -> None:
    found = book(data(file), "k80")
    assert len(found.models()) == 7
    for kind in ("k80", "p100", "v100"):
        assert found.rate("ResNet-50", 64, kind, 1)
        assert found.curve("LM", 80, kind).span_factor
    assert found.curve("LM", 80, "v100").span_factor[0] < 0.5


@pytest.mark.data
def test_built_in_curves_are_of_the_order_of_public_measurements() -> None:
    """Within their stated error (0.3) at least three times out of four on A100 tables."""
    measured, formed = book(data("elasticflow/throughputs_A100")), SpeedBook("a100")
    off = []
    for model in ("bert", "gpt2", "vgg16", "resnet50", "inception3", "deepspeech2"):
        for batch in {row.batch for row in read_rows(data("elasticflow/throughputs_A100"))}:
            if measured.rate(model, batch, "a100", 1):
                curve = measured.curve(model, batch, "a100")
                ours = formed.curve(model, batch, "a100")
                off += [abs(ours.at(n) / curve.at(n) - 1) for n in curve.sizes]
    assert len(off) > 80
    assert sum(error <= 0.3 for error in off) >= 0.75 * len(off)


# ----------------------------------------------------------------------------------- fuzz


cells = st.sampled_from(
    ["", "0", "1", "2", "64", "-1", "nan", "inf", "1e400", "x", '"', "1.5", "é"]
)
headers = st.sampled_from(
    [
        "model,devices,rate",
        "model,kind,batch,devices,rate,span,error",
        "global_batch_size,1,2,4",
        "placement,local_bsz,step_time,sync_time",
        "num_nodes,num_replicas,local_bsz,step_time,sync_time",
        "nodes,throughput,power",
        "{",
    ]
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(headers, st.lists(st.lists(cells, max_size=7), max_size=4))
def test_whatever_a_table_holds_it_is_read_or_refused_in_one_line(
    tmp_path: Path, header: str, lines: list[list[str]]
) -> None:
    text = "\n".join([header, *(",".join(line) for line in lines)])
    path = written(tmp_path / "fuzz.csv", text)
    try:
        found, told = read_speedups(path), ""
    except InputError as error:
        found, told = SpeedBook(), str(error)
    assert "\n" not in told
    for model in found.models():
        assert found.curve(model, 64, "v100").at(4) >= 0


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.binary(max_size=60))
def test_bytes_that_are_no_table_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "fuzz.csv"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read_speedups(path)
