"""The guards themselves: each must be able to fail a test."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from tests.guards import leaks, network


@pytest.mark.parametrize("host", ["192.0.2.1", "0.0.0.0", "2001:db8::1"])  # noqa: S104 - addresses to be refused
def test_leaving_the_machine_is_refused_and_remembered(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as sock, pytest.raises(network.NetworkBlocked, match="loopback only"):
        sock.connect((host, 80))
    assert len(network.take_attempts()) == 1


def test_foreign_names_are_not_looked_up() -> None:
    with pytest.raises(network.NetworkBlocked):
        socket.getaddrinfo("harness.example", 80)
    assert len(network.take_attempts()) == 1


def test_listening_to_the_whole_network_is_refused() -> None:
    with socket.socket() as sock, pytest.raises(network.NetworkBlocked):
        sock.bind(("", 0))
    network.take_attempts()


def test_loopback_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        assert client.getpeername() == server.getsockname()
    assert socket.getaddrinfo("localhost", 80)


def test_a_child_left_behind_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaks, "_GRACE", 0.0)
    before = leaks.running()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        if sys.platform == "linux":
            (left,) = leaks.remaining(before)
            assert str(child.pid) in left


def test_nothing_of_the_machine_reaches_a_test() -> None:
    names = {name.upper() for name in os.environ}
    assert not {name for name in names if name.startswith(("DEEPSEEK_", "HARNESS_", "XDG_")) or "PROXY" in name} - {
        "NO_PROXY"
    }
    assert "harness-im-tests-" in os.environ["HOME"]
