"""Weixin's addresses, and the operator's in their place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from bridges.trusted import TrustedHosts, UntrustedHost

OFFICIAL: Final = "https://ilinkai.weixin.qq.com"
MEDIA: Final = "https://novac2c.cdn.weixin.qq.com/c2c"


@dataclass(frozen=True, slots=True)
class Hosts:
    """``override`` is the operator's address for everything."""

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
        return TrustedHosts(("weixin.qq.com",), self.override).check(url)

    def redirected(self, host: str) -> str:
        """Return the address of a ``host`` or ``host:port`` that the platform sends us to. Raises UntrustedHost."""
        if any(sign in host for sign in "/?#\\"):
            raise UntrustedHost
        return self.trusted(f"{urlsplit(self.base).scheme}://{host}")
