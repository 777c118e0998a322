"""Cluster files: trees of any named levels, and the one line each mistake is answered with."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.writings import ROOT, damaged, one_line_or_fine, texts, trees, why, yaml_blocks

from bough.clusterfile import NODES_MAX, TOP_FIELDS, find_cluster, parse_cluster, read_cluster
from bough.core.cluster import Cluster, parse_short
from bough.core.model import DeviceHealth, Node, NodeDrained, NodeUp

EXAMPLE = ROOT / "examples" / "cluster.yaml"
NODE = "kind: a100\ndevices: 8\n"


def cluster(text: str) -> Cluster:
    return parse_cluster(text, "c.yaml")


def paths(site: Cluster) -> list[tuple[str, ...]]:
    return [(*node.path, node.name) for node in site.nodes]


# ------------------------------------------------------------------------------- good forms


@pytest.mark.parametrize("text", ["4x8xh100", "2 racks of 16x8xa100", "8x8xv100 + 16x4xt4"])
def test_a_short_form_is_a_file_too(text: str) -> None:
    short = parse_short(text)
    for site in (cluster(text), cluster(f"short: {text}"), find_cluster(text)):
        assert (site.levels, site.nodes) == (short.levels, short.nodes)


def test_a_short_form_with_more_said() -> None:
    site = cluster("short: 2x8xH100\ncpus: 96\nmemory: 1TiB\nlabels: {a: b}\ndrained: node-2\n")
    assert {(n.cpus, n.memory, n.labels["a"]) for n in site.nodes} == {(96, 2**40, "b")}
    assert site.drained == ("node-2",)


def test_nodes_alone() -> None:
    site = cluster(f"{NODE}nodes: 2")
    assert site.nodes == (
        Node(name="node-1", kind="a100", devices=8),
        Node(name="node-2", kind="a100", devices=8),
    )
    assert cluster("nodes: {count: 2, kind: A100, devices: 8}") == site


def test_levels_of_any_name() -> None:
    site = cluster(f"""
levels: [galaxy, city, node]
{NODE}
galaxies:
  - name: g
    cities: [{{name: x, nodes: 1}}, {{name: y, node: 2}}]
  - city: [{{name: z, nodes: [{{name: last}}]}}]
""")
    assert site.levels == ("galaxy", "city", "node")
    assert paths(site) == [
        ("g", "x", "node-1"),
        ("g", "y", "node-2"),
        ("g", "y", "node-3"),
        ("galaxy-1", "z", "last"),
    ]


def test_the_nearest_word_counts() -> None:
    site = cluster("""
levels: [rack, node]
kind: a100
devices: 8
cpus: 64
labels: {site: b, row: "1"}
racks:
  - name: r
    kind: H100
    nodes: [{name: x}, {name: y, devices: 4, labels: {row: "2"}}]
  - name: s
    nodes: 1
""")
    assert [(n.name, n.kind, n.devices, n.labels["row"]) for n in site.nodes] == [
        ("x", "h100", 8, "1"),
        ("y", "h100", 4, "2"),
        ("node-1", "a100", 8, "1"),
    ]
    assert {n.labels["site"] for n in site.nodes} == {"b"}


def test_names_are_numbered_through_the_cluster() -> None:
    site = cluster(f"""
levels: [zone, rack, node]
{NODE}
zones:
  - count: 2
    racks:
      - {{name: r, nodes: [{{name: gpu}}, {{count: 1}}]}}
      - nodes: 1
""")
    assert paths(site) == [
        ("zone-1", "r", "gpu-1"),
        ("zone-1", "r", "node-1"),
        ("zone-1", "rack-1", "node-2"),
        ("zone-2", "r", "gpu-2"),
        ("zone-2", "r", "node-3"),
        ("zone-2", "rack-2", "node-4"),
    ]


def test_a_list_may_skip_levels() -> None:
    site = cluster(f"""
levels: [zone, rack, node]
{NODE}
nodes:
  - {{name: a, zone: z, rack: r}}
  - {{name: b, zone: z, rack: s}}
zones:
  - {{name: y, nodes: {{name: c, rack: t}}}}
""")
    assert paths(site) == [("y", "t", "c"), ("z", "r", "a"), ("z", "s", "b")]


def test_what_is_broken_or_being_emptied() -> None:
    site = cluster(f"""
{NODE}
nodes:
  - count: 2
  - {{name: old, unhealthy: "0,6-7", drained: true}}
drained: [node-1, old]
unhealthy: {{node-2: [3]}}
""")
    assert site.drained == ("old", "node-1")
    assert site.unhealthy == {"old": (0, 6, 7), "node-2": (3,)}
    events = site.events(at=5.0)
    assert [e.node.name for e in events if isinstance(e, NodeUp)] == ["node-1", "node-2", "old"]
    assert NodeDrained(at=5.0, name="old") in events
    assert DeviceHealth(at=5.0, name="node-2", device=3, healthy=False) in events
    assert len(events) == 3 + 2 + 4


def test_the_example() -> None:
    site = read_cluster(EXAMPLE)
    assert site.levels == ("zone", "rack", "node")
    assert site.devices == 2 * 16 * 8 + 8 * 8
    assert site.inner == {"island": 4}
    assert site.bandwidth["rack"] == 12.5e9
    topology = site.topology()
    assert topology.kinds == ["a100", "h100"]
    assert topology.spans == ("island", "node", "rack", "zone", "cluster")
    topology.check()


def test_a_large_cluster_is_read_soon() -> None:
    text = f"levels: [row, rack, node]\n{NODE}rows: {{count: 20, racks: {{count: 25, nodes: 20}}}}"
    started = time.process_time()
    assert cluster(text).devices == 80_000
    assert time.process_time() - started < 1


def test_a_file_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").write_text("3x8xt4")
    monkeypatch.chdir(tmp_path)
    assert find_cluster("mine").devices == find_cluster("./mine").devices == 24


# --------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "c.yaml: has no cluster (write one cluster, like 4x8xh100)"),
        ("4x8xt4\n---\n4x8xt4",
         "c.yaml: has more than one document (write one cluster, like 4x8xh100)"),
        ("4 by 8", "c.yaml:1: cannot read cluster '4 by 8'; write it like 8xh100, 4x8xh100, "
         "2 racks of 16x8xa100, 8x8xv100 + 16x4xt4, cpu:8"),
        ("[a]", "c.yaml:1: must be a single value, not a list"),
        (NODE, "c.yaml:1: has no nodes (like nodes: 4)"),
        (f"{NODE}nodes: 0", f"c.yaml:3: nodes: '0' must be a whole number from 1 to {NODES_MAX}"),
        (f"{NODE}nodes: []", "c.yaml:1: has no nodes (like nodes: 4)"),
        (f"{NODE}nodse: 3", "c.yaml:3: no field is called 'nodse' (did you mean 'node'?)"),
        (f"{NODE}racks: [{{nodes: 3}}]",
         "c.yaml:3: racks: is no level yet (write levels: [rack, node])"),
        (f"{NODE}nodes: [{{cout: 3}}]",
         "c.yaml:3: nodes[0]: no field is called 'cout' (did you mean 'count'?)"),
        ("devices: 8\nnodes: 2", "c.yaml:2: nodes: kind is missing (give it here or further up)"),
        ("kind: t4\nnodes: [{count: 2}]",
         "c.yaml:2: nodes[0]: devices is missing (give it here or further up)"),
        ("kind: t4\ndevices: 0\nnodes: 2",
         "c.yaml:2: devices: '0' must be a whole number from 1 to 4096"),
        (f"{NODE}nodes: [{{name: a}}, {{name: a}}]",
         "c.yaml:3: nodes[1]: a node called 'a' stands above"),
        (f"{NODE}nodes: [{{name: node-1}}, {{count: 1}}]",
         "c.yaml:3: nodes[1]: a node called 'node-1' stands above"),
        (f"levels: [rack, node]\n{NODE}racks: [{{name: r, nodes: 1}}, {{name: r, nodes: 1}}]",
         "c.yaml:4: racks[1]: a rack called 'r' stands above"),
        (f"levels: [rack, node]\n{NODE}racks:\n- nodes: 1\n- name: r",
         "c.yaml:6: racks[1]: has no nodes (like nodes: 4)"),
        (f"levels: [rack, node]\n{NODE}racks: 3",
         "c.yaml:4: racks: has no nodes (like nodes: 4)"),
        (f"levels: [rack, node]\n{NODE}nodes: [{{name: a}}]",
         "c.yaml:4: nodes[0]: rack is missing: in which rack is this node?"),
        (f"levels: [node, rack]\n{NODE}nodes: 2",
         "c.yaml:1: levels: must end with node (levels inside a node belong into inner)"),
        (f"levels: [Rack, node]\n{NODE}nodes: 2",
         "c.yaml:1: levels: 'Rack' is no level (small letters, like rack)"),
        (f"levels: [kind, node]\n{NODE}nodes: 2",
         "c.yaml:1: levels: 'kind' cannot be a level: it means something else here"),
        (f"levels: [node, node]\n{NODE}nodes: 2", "c.yaml:1: levels: names 'node' twice"),
        (f"levels: [racks, rack, node]\n{NODE}nodes: 2",
         "c.yaml:1: levels: has two levels whose plurals are the same"),
        (f"{NODE}nodes: 2\ninner: {{island: 3}}",
         "c.yaml:4: inner.island: 3 does not divide the 8 devices of node-2"),
        (f"{NODE}nodes: 2\ninner: {{node: 4}}",
         "c.yaml:4: inner.node: is no name for a level inside a node (like island or socket)"),
        (f"{NODE}nodes: 2\ninner: {{a: 4, b: 4}}",
         "c.yaml:4: inner: has two levels of the same size"),
        (f"{NODE}nodes: 2\nbandwidth: {{nide: 5GB/s}}",
         "c.yaml:4: bandwidth: no field is called 'nide' (did you mean 'node'?)"),
        (f"{NODE}nodes: 2\nbandwidth: {{node: 5}}", "c.yaml:4: bandwidth.node: '5' is not a "
         "bandwidth; write it like 300GB/s or 100Gbit/s"),
        (f"{NODE}nodes: 12\ndrained: nde-7",
         "c.yaml:4: drained: no node is called 'nde-7' (did you mean 'node-7'?)"),
        (f"{NODE}nodes: 2\nunhealthy: {{node-2: 8}}",
         "c.yaml:4: unhealthy.node-2: device 8 does not exist: the node has 0 to 7"),
        (f"{NODE}nodes: 2\nunhealthy: {{node-2: some}}", "c.yaml:4: unhealthy.node-2: 'some' are "
         "not indices; write them like 0-31, 0-9:2 or 1,3,5-7"),
        ("short: 2x8xt4\nnodes: 2",
         "c.yaml:2: nodes: cannot stand beside short, which says it already"),
        (f"{NODE}cpus: few\nnodes: 2", "c.yaml:3: cpus: 'few' must be a number of at least 0"),
        (f"{NODE}nodes: [{{count: 99999}}, {{count: 9}}]",
         f"c.yaml:3: nodes[1]: brings the cluster over {NODES_MAX} nodes"),
    ],
)  # fmt: skip
def test_mistakes(text: str, message: str) -> None:
    assert why(cluster, text) == message


def test_neither_a_file_nor_a_short_form() -> None:
    assert why(find_cluster, "racks.yaml") == (
        "racks.yaml: cannot be read: No such file or directory"
    )
    assert why(find_cluster, "many") == (
        "cannot read cluster 'many'; write it like 8xh100, 4x8xh100, 2 racks of 16x8xa100, "
        "8x8xv100 + 16x4xt4, cpu:8 (or the name of a YAML file)"
    )


# ---------------------------------------------------------------------- documentation and fuzz


@pytest.mark.parametrize("block", yaml_blocks("cluster-file.md"))
def test_examples_of_the_documentation(block: str) -> None:
    cluster(block).topology().check()


def test_every_field_has_an_example() -> None:
    text = "\n".join(yaml_blocks("cluster-file.md"))
    assert [name for name in (*TOP_FIELDS, "name", "count") if f"{name}:" not in text] == []


@given(st.one_of(texts(), trees((*TOP_FIELDS, "nodes", "name", "count", "racks"))))
def test_whatever_is_written_is_read_or_refused_in_one_line(text: str) -> None:
    one_line_or_fine(cluster, text)


@given(damaged([*yaml_blocks("cluster-file.md"), EXAMPLE.read_text("utf-8")]))
def test_damaged_files_are_read_or_refused_in_one_line(text: str) -> None:
    one_line_or_fine(lambda written: cluster(written).topology(), text)
