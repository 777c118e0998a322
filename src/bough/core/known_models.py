"""How usual models scale when nobody has measured them: one formula, with numbers chosen by us.

A training step with a fixed global batch on n devices takes

    fixed + per_sample * batch / (n * kind) + sync * log2(n)
          + exposed * 2 (n - 1) / n * gradient / bandwidth

that is: launching, computing, waiting for one another (latency, stragglers, smaller local batches)
at each doubling, and the part of a ring all-reduce that is not hidden behind the backward pass.
Gradient sizes follow from the models' published numbers of parameters, 4 bytes each. The times,
kinds and bandwidths are round numbers of ours, of the order of public measurements and no more:
measured tables always go before them (docs/speedups.md).
"""

from __future__ import annotations

import math
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
    #: Seconds that every doubling of the devices adds to a step.
    sync: float = 0.008
    #: Seconds of every step that no further device makes shorter.
    fixed: float = 0.002


class Kind(NamedTuple):
    """What the formula needs to know of a kind of device; speeds are relative to v100."""

    speed: float
    #: Bytes per second of an all-reduce inside a node and between nodes, for each device.
    inside: float
    between: float
    #: Devices of a usual node.
    node: int = 8


GIGA: Final = 1e9

#: Part of an all-reduce that is not hidden behind computing.
EXPOSED: Final = 0.3

MODELS: Final[dict[str, Model]] = {
    "resnet18": Model(0.0012, 11.7, 512),
    "resnet50": Model(0.0045, 25.6, 512, sync=0.007),
    "vgg16": Model(0.0065, 138.4, 512, sync=0.007),
    "inception3": Model(0.0065, 23.8, 256, sync=0.012),
    "alexnet": Model(0.0010, 61.1, 512, sync=0.007),
    "mobilenet": Model(0.0015, 3.5, 256, sync=0.007),
    "bert": Model(0.0050, 110.0, 256, sync=0.018),
    "gpt2": Model(0.0020, 124.0, 512, sync=0.009),
    "transformer": Model(0.0030, 65.0, 512, sync=0.010),
    "deepspeech2": Model(0.0200, 38.0, 64, sync=0.012),
    "lstm": Model(0.0004, 50.0, 320, sync=0.004),
    "recommendation": Model(0.00006, 20.0, 2048),
    "ncf": Model(0.0000003, 32.0, 32768, sync=0.004),
    "yolov3": Model(0.0150, 61.9, 128, sync=0.03),
    "cyclegan": Model(0.2000, 28.3, 4),
    "dqn": Model(0.0010, 1.7, 64),
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
    "k80": Kind(0.15, 4 * GIGA, 1 * GIGA),
    "p100": Kind(0.5, 15 * GIGA, 4 * GIGA),
    "t4": Kind(0.35, 4 * GIGA, 0.5 * GIGA, node=4),
    "v100": Kind(1.0, 60 * GIGA, 8 * GIGA),
    "rtx3090": Kind(1.2, 10 * GIGA, 4 * GIGA),
    "a10": Kind(0.9, 10 * GIGA, 4 * GIGA),
    "l4": Kind(0.7, 10 * GIGA, 4 * GIGA),
    "l40": Kind(1.6, 15 * GIGA, 8 * GIGA),
    "a100": Kind(2.2, 120 * GIGA, 40 * GIGA),
    "h100": Kind(4.5, 200 * GIGA, 60 * GIGA),
    "h200": Kind(5.0, 200 * GIGA, 60 * GIGA),
    "b200": Kind(9.0, 400 * GIGA, 80 * GIGA),
    "mi300x": Kind(4.5, 150 * GIGA, 60 * GIGA),
    "ascend910": Kind(1.5, 60 * GIGA, 12 * GIGA),
    "ascend910b": Kind(2.2, 90 * GIGA, 16 * GIGA),
    "cpu": Kind(0.02, 5 * GIGA, 1 * GIGA),
}

#: Of models nobody knows, in millions.
USUAL_PARAMETERS: Final = 100.0
BYTES_OF_A_PARAMETER: Final = 12.0

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


def state_bytes(name: str) -> float:
    """What a job of that model takes along when it moves: weights and two moments, 4 bytes each."""
    model = known_model(name)
    return BYTES_OF_A_PARAMETER * 1e6 * (model.parameters if model else USUAL_PARAMETERS)


def step_seconds(model: Model, batch: int, kind: Kind, devices: int, bandwidth: float = 0) -> float:
    """One training step; bandwidth 0 means that of the most compact place."""
    if not bandwidth:
        bandwidth = kind.inside if devices <= kind.node else kind.between
    compute = model.per_sample * batch / (devices * kind.speed)
    gradient = 4e6 * model.parameters
    reduce = EXPOSED * 2 * (devices - 1) / devices * gradient / bandwidth
    return model.fixed + compute + model.sync * math.log2(devices) + reduce


def rates(model: Model, batch: int, kind: Kind) -> dict[int, float]:
    """Steps per second by number of devices, up to one sample for each device."""
    batch = batch or model.batch
    return {n: 1 / step_seconds(model, batch, kind, n) for n in SIZES if n <= max(batch, 1)}


def spread_factor(model: Model, batch: int, kind: Kind) -> float:
    """What is left of the speed of half a node's devices when they are on two nodes."""
    batch, devices = batch or model.batch, max(kind.node // 2, 2)
    compact = step_seconds(model, batch, kind, devices)
    return compact / step_seconds(model, batch, kind, devices, kind.between)
