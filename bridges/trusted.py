"""Which addresses a platform may send us to: its own over TLS, or those an operator set in their place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit


class UntrustedHost(Exception):
    """The platform pointed to an address that is not its own; nothing was sent there."""


@dataclass(frozen=True, slots=True)
class TrustedHosts:
    """``domains`` are the platform's own. With ``override``, what is on that machine is trusted and nothing else."""

    domains: tuple[str, ...]
    override: str | None = None

    def check(self, url: str) -> str:
        """Return ``url`` without a slash at its end. Raises UntrustedHost, whose text is empty."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:  # a port that is no number, a bracket that is not closed
            raise UntrustedHost from None
        if self.override:
            fine = parts.scheme in {"http", "https", "ws", "wss"} and host == urlsplit(self.override).hostname
        else:
            ours = any(host.endswith(f".{domain}") for domain in self.domains)
            # Readers of addresses disagree on what a host with other characters means.
            plain = re.fullmatch(r"[a-z0-9.-]+", host) is not None
            fine = parts.scheme in {"https", "wss"} and ours and plain and port in {None, 443}
        if not fine or parts.username is not None:
            raise UntrustedHost
        return url.rstrip("/")
