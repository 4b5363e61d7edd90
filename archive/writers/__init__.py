"""Who writes summaries: a model, reached the way its host reaches it. The call carries nothing but what it is given."""

from __future__ import annotations

from typing import Final, Protocol

from archive.model import Code

SECONDS: Final = 300.0
"""What one call may take."""
LONGEST_ANSWER: Final = 1 << 20
"""Bytes of an answer that are read; no summary is a hundredth of it."""


class WriterFailed(Exception):
    """No summary came; ``code`` says why, for the warning. Never holds anything of the material or the answer."""

    def __init__(self, code: Code, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}" if detail else code.value)
        self.code = code


class Writer(Protocol):
    """One model. Cancelling a call ends whatever it started."""

    async def write(self, instructions: str, material: str) -> str:
        """Return what the model makes of ``material``; not blank. Raises WriterFailed."""
