"""An address of this machine to listen on, as a configuration has it."""

from __future__ import annotations

import ipaddress
import re


class Listen:
    """A ``host:port`` to listen on; ``[::1]:9464`` for IPv6. Port 0 lets the system choose."""

    __slots__ = ("host", "port")

    def __init__(self, text: str) -> None:
        match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+):([0-9]{1,5})", text)
        if match is None or int(match[2]) > 65535:
            raise ValueError("listen")
        self.host = match[1].strip("[]")
        self.port = int(match[2])

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Listen) and (other.host, other.port) == (self.host, self.port)

    def __hash__(self) -> int:
        return hash((self.host, self.port))

    def __repr__(self) -> str:
        return f"Listen({self.host!r}, {self.port})"
