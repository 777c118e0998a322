"""How usual models scale when nobody has measured them: one formula, with numbers chosen by us.

A training step with a fixed global batch on n devices takes

    fixed + per_sample * batch / (n * kind) + exposed * 2 (n - 1) / n * gradient / bandwidth

that is: launching, computing, and a ring all-reduce of which only a part is not hidden behind the
backward pass. Gradient sizes follow from the models' published numbers of parameters (4 bytes
each); the times, the share exposed, the kinds and the bandwidths are round numbers of ours, meant
to be of the right order and no more. Measured tables always go before them (docs/speedups.md).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Model(NamedTuple):
    """What the formula needs to know of a model."""

    #: Seconds for one sample on one device of kind v100.
    per_sample: float
    #: Parameters in millions.
    parameters: float
    #: Global batch when the job does not say.
    batch: int
    #: Seconds of every step that no device more makes shorter.
    fixed: float = 0.004
    #: Part of the all-reduce that is not hidden behind computing.
    exposed: float = 0.5


class Kind(NamedTuple):
    """What the formula needs to know of a kind of device; speeds are relative to v100."""

    speed: float
    #: Bytes per second of an all-reduce inside a node and between nodes, for each device.
    inside: float
    between: float
    #: Devices of a usual node.
    node: int = 8


GIGA: Final = 1e9

MODELS: Final[dict[str, Model]] = {
    "resnet18": Model(0.0010, 11.7, 128),
    "resnet50": Model(0.0027, 25.6, 256),
    "vgg16": Model(0.0044, 138.4, 256),
    "inception3": Model(0.0042, 23.8, 128),
    "alexnet": Model(0.0005, 61.1, 512),
    "mobilenet": Model(0.0012, 3.5, 256),
    "bert": Model(0.0200, 110.0, 128),
    "gpt2": Model(0.0300, 124.0, 128),
    "transformer": Model(0.0060, 65.0, 128),
    "deepspeech2": Model(0.0400, 38.0, 64),
    "lstm": Model(0.0016, 50.0, 80),
    "recommendation": Model(0.00004, 20.0, 2048),
    "ncf": Model(0.000002, 32.0, 32768, exposed=1.0),
    "yolov3": Model(0.0250, 61.9, 64),
    "cyclegan": Model(0.2500, 28.3, 4),
    "dqn": Model(0.0020, 1.7, 64, fixed=0.02),
}

#: Other names under which traces know the same models.
ALIASES: Final[dict[str, str]] = {
    "a3c": "dqn",
    "bertbase": "bert",
    "cifar10": "resnet18",
    "deepspeech": "deepspeech2",
    "gpt": "gpt2",
    "imagenet": "resnet50",
    "inception": "inception3",
    "inceptionv3": "inception3",
    "languagemodel": "lstm",
    "lm": "lstm",
    "mobilenetv2": "mobilenet",
    "neumf": "ncf",
    "resnet": "resnet50",
    "resnet50cifar10": "resnet18",
    "vgg": "vgg16",
    "vgg19": "vgg16",
    "yolo": "yolov3",
}

KINDS: Final[dict[str, Kind]] = {
    "k80": Kind(0.15, 5 * GIGA, 2 * GIGA),
    "p100": Kind(0.5, 15 * GIGA, 4 * GIGA),
    "t4": Kind(0.35, 6 * GIGA, 2 * GIGA, node=4),
    "v100": Kind(1.0, 60 * GIGA, 8 * GIGA),
    "rtx3090": Kind(1.2, 10 * GIGA, 4 * GIGA),
    "a10": Kind(0.9, 10 * GIGA, 4 * GIGA),
    "l4": Kind(0.7, 10 * GIGA, 4 * GIGA),
    "l40": Kind(1.6, 15 * GIGA, 8 * GIGA),
    "a100": Kind(2.2, 120 * GIGA, 16 * GIGA),
    "h100": Kind(4.5, 200 * GIGA, 32 * GIGA),
    "h200": Kind(5.0, 200 * GIGA, 32 * GIGA),
    "b200": Kind(9.0, 400 * GIGA, 40 * GIGA),
    "mi300x": Kind(4.5, 150 * GIGA, 32 * GIGA),
    "ascend910": Kind(1.5, 60 * GIGA, 12 * GIGA),
    "ascend910b": Kind(2.2, 90 * GIGA, 16 * GIGA),
    "cpu": Kind(0.02, 5 * GIGA, 1 * GIGA),
}

#: Sizes for which curves are computed.
SIZES: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


def plain(model: str) -> str:
    """The name without case and punctuation: "ResNet-50" and "resnet50" are one model."""
    return re.sub(r"[^a-z0-9]", "", model.lower())


def known_model(model: str) -> Model | None:
    """The model of that name or of one of its other names."""
    name = plain(model)
    return MODELS.get(ALIASES.get(name, name))


def known_kind(kind: str) -> Kind | None:
    """The kind of that name; "a100-80gb" is an a100."""
    name = plain(kind)
    while name and name not in KINDS:
        name = name[:-1]
    return KINDS.get(name)


def step_seconds(model: Model, batch: int, kind: Kind, devices: int, bandwidth: float = 0) -> float:
    """One training step; bandwidth 0 means that of the most compact place."""
    if not bandwidth:
        bandwidth = kind.inside if devices <= kind.node else kind.between
    compute = model.per_sample * batch / (devices * kind.speed)
    gradient = 4e6 * model.parameters
    reduce = 2 * (devices - 1) / devices * gradient / bandwidth
    return model.fixed + compute + model.exposed * reduce


def rates(model: Model, batch: int, kind: Kind) -> dict[int, float]:
    """Steps per second by number of devices, up to one sample for each device."""
    batch = batch or model.batch
    return {n: 1 / step_seconds(model, batch, kind, n) for n in SIZES if n <= max(batch, 1)}


def spread_factor(model: Model, batch: int, kind: Kind) -> float:
    """What is left of the speed of half a node's devices when they are on two nodes."""
    batch, devices = batch or model.batch, max(kind.node // 2, 2)
    compact = step_seconds(model, batch, kind, devices)
    return compact / step_seconds(model, batch, kind, devices, kind.between)
