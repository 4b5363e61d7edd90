"""One module per channel, each a :class:`tests.contract.platform.Row`."""

from __future__ import annotations


class Memory:
    """Cursors that end with the test."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}

    async def load(self, key: str) -> bytes | None:
        return self.values.get(key)

    async def save(self, key: str, value: bytes) -> None:
        self.values[key] = value
