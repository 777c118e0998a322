"""Clusters in the short form that people type, and as data."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core.cluster import Cluster, parse_short, read_cluster
from bough.core.model import Node


@pytest.mark.parametrize(
    ("text", "levels", "nodes", "devices"),
    [
        ("8xh100", ("node",), 1, 8),
        ("4x8xh100", ("node",), 4, 32),
        ("4 x 8 x H100", ("node",), 4, 32),
        ("2 racks of 16x8xa100", ("rack", "node"), 32, 256),
        ("1 rack of 16x8xa100", ("rack", "node"), 16, 128),
        ("2 zones of 3 racks of 4x8xh100", ("zone", "rack", "node"), 24, 192),
        ("2 racks of 4 nodes of 8xh100", ("rack", "node"), 8, 64),
        ("8x8xv100 + 16x4xt4", ("node",), 24, 128),
        ("2 racks of 2x8xa100 + 4xt4", ("rack", "node"), 5, 36),
        ("cpu:8", ("node",), 1, 8),
        ("8xh100 + cpu:64", ("node",), 2, 72),
    ],
)
def test_short_forms(text: str, levels: tuple[str, ...], nodes: int, devices: int) -> None:
    cluster = parse_short(text)
    assert cluster.levels == levels
    assert len(cluster.nodes) == nodes
    assert cluster.devices == devices
    topology = cluster.topology()
    assert sum(topology.usable(pool) for pool in range(len(topology.kinds))) == devices
    topology.check()


def test_names_are_numbered_through_the_cluster() -> None:
    cluster = parse_short("2 zones of 2 racks of 2x4xt4 + 1 rack of 8xh100")
    assert [node.name for node in cluster.nodes[:3]] == ["node-1", "node-2", "node-3"]
    assert cluster.nodes[0].path == ("zone-1", "rack-1")
    assert cluster.nodes[7].path == ("zone-2", "rack-4")
    assert cluster.nodes[8] == Node(
        name="node-9", kind="h100", devices=8, path=("zone-3", "rack-5")
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read cluster ''; write it like 8xh100"),
        ("h100", "cannot read cluster"),
        ("8x", "cannot read cluster"),
        ("2 racks of", "cannot read cluster"),
        ("8xh100 +", "cannot read cluster"),
        ("-1x8xh100", "cannot read cluster"),
        ("0xh100", "every number must be 1 or more"),
        ("2 racks of 0x8xh100", "every number must be 1 or more"),
        ("9999x9999x8xh100", "cannot read cluster"),
        ("9999 rows of 9999x8xh100", "at most 1000000 are possible"),
        ("9999xh100", "at most 4096 devices"),
        ("2 racks of 2 racks of 8xt4", "named twice"),
        ("2 clusters of 8xt4", "named twice"),
        ("2 racks of 8xt4 + 2 rows of 8xt4", r"levels \['row'\] do not fit among \['rack'\]"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_short(text)


@settings(deadline=None)
@given(st.text(alphabet="012x×*+ :abcofrks-_\n", max_size=11))
def test_any_text_is_a_cluster_or_one_line_of_error(text: str) -> None:
    try:
        message, devices = "", parse_short(text).devices
    except ValueError as error:
        message, devices = str(error), 0
    assert "\n" not in message
    assert bool(message) == (devices == 0)


def test_clusters_as_data() -> None:
    cluster = read_cluster(
        {
            "levels": ["rack", "node"],
            "nodes": [{"name": "a", "kind": "h100", "devices": 8, "path": ["r1"], "cpus": 64}],
            "bandwidth": {"rack": 50.0},
            "inner": {"island": 4},
        }
    )
    assert cluster.topology().spans == ("island", "node", "rack", "cluster")
    assert cluster.nodes[0].cpus == 64
    short = read_cluster({"short": "2 racks of 4x8xh100", "inner": {"island": 4}})
    assert (short.devices, short.inner) == (64, {"island": 4})
    assert read_cluster("8xt4") == parse_short("8xt4")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "at least one node"),
        ({"nodes": [{"name": "a", "kind": "t4"}]}, r"missing required field `devices`"),
        ({"nodes": [], "racks": 2}, "unknown field `racks`"),
        ({"short": "8xt4", "nodes": []}, "either short or nodes"),
        ({"short": 8}, "short must be a text"),
        (8, "Expected `object`"),
        ({"levels": ["rack"], "nodes": []}, "must end in 'node'"),
    ],
)
def test_data_that_is_no_cluster(data: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_cluster(data)


def test_two_nodes_may_not_have_one_name() -> None:
    node = Node(name="a", kind="t4", devices=1)
    with pytest.raises(ValueError, match="two nodes are named 'a'"):
        Cluster(nodes=(node, node))
