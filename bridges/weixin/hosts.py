"""Which addresses the bot's token may go to: Tencent's own over HTTPS, or those an operator set in their place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

OFFICIAL: Final = "https://ilinkai.weixin.qq.com"
MEDIA: Final = "https://novac2c.cdn.weixin.qq.com/c2c"
_DOMAIN: Final = ".weixin.qq.com"


class UntrustedHost(Exception):
    """The platform pointed to an address that is not its own; nothing was sent there."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """``override`` is the operator's address; with it, whatever is on that machine is trusted and nothing else."""

    override: str | None = None

    @property
    def base(self) -> str:
        """Return where everything begins."""
        return (self.override or OFFICIAL).rstrip("/")

    @property
    def media(self) -> str:
        """Return where files are fetched that come without an address of their own."""
        return f"{self.base}/c2c" if self.override else MEDIA

    def trusted(self, url: str) -> str:
        """Return ``url`` without a slash at its end. Raises UntrustedHost."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:  # a port that is no number, a bracket that is not closed
            raise UntrustedHost from None
        if self.override:
            fine = parts.scheme in {"http", "https"} and host == urlsplit(self.override).hostname
        else:
            fine = parts.scheme == "https" and host.endswith(_DOMAIN) and port in {None, 443}
        if not fine or parts.username is not None:
            raise UntrustedHost
        return url.rstrip("/")

    def redirected(self, host: str) -> str:
        """Return the address of a ``host`` or ``host:port`` that the platform sends us to. Raises UntrustedHost."""
        if any(sign in host for sign in "/?#\\"):
            raise UntrustedHost
        return self.trusted(f"{urlsplit(self.base).scheme}://{host}")
