"""Where a host listens: the line it prints at its start, split into its parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self
from urllib.parse import parse_qs, urlsplit

_PRINTED_PREFIX = "dsh web:"


@dataclass(frozen=True, slots=True)
class Address:
    """``base`` is ``http(s)://authority`` without a trailing slash; ``token`` is a secret and not in the repr."""

    base: str
    token: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, printed: str, token: str | None = None) -> Self:
        """Split ``http://127.0.0.1:3080/?token=…``, with or without the ``dsh web:`` before it.

        ``token`` is for an address without one. Raise ValueError, whose text holds nothing of the input, when it is
        no http(s) address of a host. The authority stays as written: a login is bound to it (facts HARNESS 4.1).
        """
        try:
            url = urlsplit(printed.strip().removeprefix(_PRINTED_PREFIX).strip())
            port = url.port
        except ValueError:
            # The cause quotes the input, and with it perhaps the token.
            raise ValueError("the host's address is not a valid URL") from None
        if url.scheme not in {"http", "https"} or not url.hostname or port == 0:
            raise ValueError("the host's address must look like http://127.0.0.1:3080/")
        if url.username is not None or url.password is not None:
            raise ValueError("the host's address must not hold a user name or password")
        if url.path not in {"", "/"} or any(blank in url.netloc for blank in " \t\r\n"):
            raise ValueError("the host's address must have no path")
        found = parse_qs(url.query).get("token", [])
        return cls(f"{url.scheme}://{url.netloc.lower()}", _one_token(found, token))

    @property
    def is_loopback(self) -> bool:
        """Whether the host runs on this machine, so that its folders are ours."""
        return urlsplit(self.base).hostname in {"localhost", "127.0.0.1", "::1"}


def _one_token(found: list[str], given: str | None) -> str | None:
    if given is not None and not given.strip():
        raise ValueError("the host's token is empty")
    tokens = {*found, *([given.strip()] if given is not None else [])}
    if len(tokens) > 1:
        raise ValueError("the host's address and its token setting name two different tokens")
    return tokens.pop() if tokens else None
