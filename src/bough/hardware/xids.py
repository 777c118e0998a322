"""What an NVIDIA driver's reports mean for who wants to use the device, in a sentence each."""

from __future__ import annotations

from typing import Final

GONE: Final = "fell off the bus; restart the machine"
RESET: Final = "needs a reset (nvidia-smi --gpu-reset)"
PENDING: Final = "has replaced a bad part of its memory and needs a reset for it (nvidia-smi -r)"
REMAP_FAILED: Final = "has no spare memory left for what failed; have it replaced"
ECC: Final = "had {count} memory errors that could not be corrected, and needs a reset"
MIG: Final = "is divided into MIG instances, which bough cannot hand out yet"

#: Reports after which the device itself cannot be trusted. All others are the doing of a program
#: that ran on it (13, 31, 43, 45, 94 …), or are told by the counters that are read anyway.
#: Source: NVIDIA's catalog of Xid errors.
_FATAL: Final = {
    48: "a memory error that could not be corrected",
    62: "its internal controller halted",
    64: "a failing part of its memory could not be replaced",
    74: "a fatal NVLink error",
    79: "it fell off the bus",
    95: "a memory error that reached other programs",
    109: "it could not switch between programs in time",
    119: "its system processor does not answer",
    120: "its system processor failed",
    140: "a memory error that could not be corrected",
    143: "it could not be started up",
}


def xid_sentence(xid: int) -> str:
    """What ails the device; empty: nothing, it was the program."""
    told = _FATAL.get(xid)
    return f"reported Xid {xid}: {told}; reset it, then `bough devices check`" if told else ""
