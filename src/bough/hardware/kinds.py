"""The short names of devices that people write in job files, from what the makers call them."""

from __future__ import annotations

import re

#: Brand, form factor, memory and edition: the same kind has several of each.
_NOISE = re.compile(
    r"nvidia|geforce|tesla|quadro|grid|graphics|amd|advanced|micro|devices|inc\.?|instinct|radeon|"
    r"pro(?=-w)|laptop|gpu|device|generation|workstation|server|edition|max-q|design|accelerator|"
    r"sxm\d*|pcie|pci|oam|ac|lc|o|c\d|mba|hpe?|hbm\w*|nvl\d*|mcm|mig|vf|cu|\d+gb?|\d+[cqb]"
)
#: Told apart from an older device with the same number.
_LINES = ("ada", "blackwell")


def nvidia_kind(model: str) -> str:
    """`NVIDIA A100-SXM4-40GB` is an a100, `NVIDIA GeForce RTX 4090` an rtx4090."""
    words = _words(model)
    if words[:1] == ["rtx"] and words[1:] and re.fullmatch(r"a\d+", words[1]):
        words = words[1:]  # RTX A6000: everybody says a6000
    return _joined(words, model)


def amd_kind(model: str) -> str:
    """`AMD Instinct MI300X` is an mi300x, `AMD Radeon RX 7900 XTX` an rx7900xtx."""
    return _joined([w for w in _words(model) if w != "pro"], model)


def ascend_kind(model: str) -> str:
    """`910B3` is an ascend910b: the last number tells bins of the same chip."""
    found = re.search(r"(\d{3,4})([a-z]?)", model.lower())
    return f"ascend{found[1]}{found[2]}" if found else "ascend"


def _words(model: str) -> list[str]:
    plain = re.sub(r"\([^)]*\)|\[[^\]]*\]", " ", model.lower())
    return [w for w in re.split(r"[^a-z0-9.]+", plain) if w and not _NOISE.fullmatch(w)]


def _joined(words: list[str], model: str) -> str:
    name = ""
    for word in words:
        name += f"-{word}" if name and word in _LINES else word
    if re.match(r"[a-z]", name):
        return name
    fallback = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")
    return fallback if re.match(r"[a-z]", fallback) else f"gpu-{fallback}".rstrip("-")
