"""Trains a small network with numpy alone, on as many workers as bough gives it at the moment.

python -m bough.examples.training --steps 400            alone
bough run -g 1..8 -- python -m bough.examples.training   by as many as there is room for

Every worker has its share of each batch, worker 0 adds up the gradients, and so the result does not
depend on how many they are. Told to leave (SIGTERM), worker 0 saves how far they are in the job's
own directory; begun again, with more workers or fewer, they go on from there.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Sequence
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Samples of a batch over all workers, values of a sample, and hidden units.
BATCH, INPUTS, HIDDEN = 512, 64, 128
RATE = 0.01
#: Workers that come later than this after the first do not come at all.
MEET_SECONDS = 30.0


class Share(NamedTuple):
    """Which of how many workers this is, and how it reaches the others."""

    rank: int
    world: int
    peers: tuple[Connection, ...]


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, or go on training."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    leaving: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: leaving.append(number))
    share = meet()
    saved = Path(os.environ.get("BOUGH_JOB_DIR", ".")) / "training.npz"
    step, weights = begin(saved, given.seed)
    devices = f"{share.world} worker{'s' if share.world > 1 else ''}"
    if share.rank == 0:
        print(f"step {step} of {given.steps} on {devices}", flush=True)
    while step < given.steps:
        gradient, loss = gradient_of(weights, given.seed, step, share)
        gradient, loss, stop = together(gradient, loss, bool(leaving), share)
        weights -= RATE * gradient
        step += 1
        if share.rank == 0 and (step % 100 == 0 or step == given.steps):
            print(f"step {step} of {given.steps} on {devices}: loss {loss:.4f}", flush=True)
        if stop:
            break
    if share.rank == 0 and step < given.steps:
        save(saved, step, weights)
        print(f"saved at step {step}", flush=True)


def meet() -> Share:
    """Worker 0 listens, the others call; alone, there is nobody to meet."""
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return Share(0, 1, ())
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    if rank == 0:
        with Listener(address, backlog=world) as listener:
            return Share(rank, world, tuple(listener.accept() for _ in range(world - 1)))
    until = time.monotonic() + MEET_SECONDS
    while True:
        try:
            return Share(rank, world, (Client(address),))
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)


def begin(saved: Path, seed: int) -> tuple[int, Floats]:
    """Where the last worker 0 left off, or at the beginning."""
    if saved.exists():
        with np.load(saved) as found:
            return int(found["step"]), found["weights"]
    return 0, np.random.default_rng(seed).normal(0.0, 0.1, (INPUTS + 1) * HIDDEN)


def save(path: Path, step: int, weights: Floats) -> None:
    """Whole or not at all."""
    fresh = path.with_suffix(".part.npz")
    np.savez(fresh, step=step, weights=weights)
    fresh.replace(path)


def gradient_of(weights: Floats, seed: int, step: int, share: Share) -> tuple[Floats, float]:
    """Of this worker's share of the batch, by its part of the whole."""
    random = np.random.default_rng((seed, step))
    inputs = random.normal(size=(BATCH, INPUTS))
    wanted = np.tanh(inputs[:, :4].sum(axis=1))
    mine = slice(share.rank * BATCH // share.world, (share.rank + 1) * BATCH // share.world)
    inputs, wanted = inputs[mine], wanted[mine]
    first, last = weights[:-HIDDEN].reshape(INPUTS, HIDDEN), weights[-HIDDEN:]
    hidden = np.tanh(inputs @ first)
    wrong = hidden @ last - wanted
    back = np.outer(wrong, last) * (1.0 - hidden**2)
    gradient = np.concatenate([(inputs.T @ back).ravel(), hidden.T @ wrong]) / BATCH
    return gradient, float(wrong @ wrong) / BATCH


def together(
    gradient: Floats, loss: float, leaving: bool, share: Share
) -> tuple[Floats, float, bool]:
    """The sum over all workers, and whether worker 0 was told to leave."""
    said = np.concatenate([gradient, [loss, float(leaving)]])
    if share.rank == 0:
        for peer in share.peers:
            said[:-1] += np.frombuffer(peer.recv_bytes())[:-1]
        for peer in share.peers:
            peer.send_bytes(said.tobytes())
    else:
        said = exchanged(share.peers[0], said)
    return said[:-2], float(said[-2]), bool(said[-1])


def exchanged(peer: Any, said: Floats) -> Floats:
    """Tell worker 0, and hear what all have said; it leaves only at the end of a step."""
    peer.send_bytes(said.tobytes())
    return np.frombuffer(peer.recv_bytes()).copy()


if __name__ == "__main__":
    main()
