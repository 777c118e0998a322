"""Ports that nobody else has."""

from __future__ import annotations

import socket

import pytest

from bough.backends.ports import HIGHEST, LOWEST, Ports, is_free


def test_two_jobs_never_have_the_same() -> None:
    ports = Ports()
    given = [port for job in range(20) for port in ports.take(str(job), 3)]
    assert len(set(given)) == 60
    assert all(LOWEST <= port < HIGHEST for port in given)


def test_what_somebody_listens_on_is_passed_over() -> None:
    first = Ports().take("1", 1)[0]
    with socket.socket() as server:
        server.bind(("127.0.0.1", first))
        server.listen()
        assert not is_free(first)
        assert Ports().take("1", 1)[0] != first


def test_what_was_given_before_a_restart_is_passed_over() -> None:
    first = Ports().take("1", 2)
    ports = Ports()
    ports.remember("1", first)
    assert not set(first) & set(ports.take("2", 2))


def test_what_was_forgotten_is_used_again_but_not_at_once() -> None:
    ports = Ports(begin=HIGHEST - LOWEST - 1)
    first = ports.take("1", 1)
    ports.forget("1")
    assert ports.take("1", 1) != first  # who just left may still hold on to it
    assert ports.take("2", 1)[0] >= LOWEST


def test_more_than_there_are_cannot_be_had() -> None:
    with pytest.raises(OSError, match="free ports"):
        Ports().take("1", HIGHEST - LOWEST + 1)
