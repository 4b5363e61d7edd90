"""Loopback only: a test that would reach further fails, even when the code under test swallows the error.

An audit hook sees every socket call of the process, also those of SDKs and of other threads, and cannot be taken off.
Child processes are beyond it; the hosts that tests start are told to stay on loopback.
"""

from __future__ import annotations

import ipaddress
import socket
import sys

_NAMES = {None, "", "localhost", "localhost.localdomain", socket.gethostname()}
_attempts: list[str] = []


class NetworkBlocked(AssertionError):
    """A test tried to leave this machine."""


def install() -> None:
    """Watch every socket call from here on."""
    sys.addaudithook(_hook)


def take_attempts() -> list[str]:
    """Return what was blocked since the last call, and forget it."""
    taken, _attempts[:] = list(_attempts), []
    return taken


def _hook(event: str, args: tuple[object, ...]) -> None:
    match event, args:
        case "socket.connect" | "socket.sendto" | "socket.sendmsg" | "socket.bind", (sock, tuple(address)):
            if isinstance(sock, socket.SocketType) and sock.family in {socket.AF_INET, socket.AF_INET6}:
                _check(event, address[0])
        case "socket.getaddrinfo" | "socket.gethostbyname", (host, *_):
            _check(event, host.decode("ascii", "replace") if isinstance(host, bytes) else host)


def _check(event: str, host: object) -> None:
    if host in _NAMES and event not in {"socket.bind", "socket.connect"}:
        return
    try:
        if ipaddress.ip_address(str(host).split("%", maxsplit=1)[0]).is_loopback or host == "localhost":
            return
    except ValueError:
        pass
    message = f"{event} to {host!r}: tests talk to loopback only; start a fake on 127.0.0.1 and port 0"
    _attempts.append(message)
    raise NetworkBlocked(message)
