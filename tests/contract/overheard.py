"""The log of a contract run as ``run`` sets it up, every library as talkative as can be, and what it may not hold."""

from __future__ import annotations

import base64
import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

from bridges.log import Redactor, logging_to
from tests.contract.table import Told

LIBRARIES = (
    "Lark", "aiohttp", "asyncio", "discord", "dingtalk_stream", "httpcore", "httpx", "slack_bolt", "slack_sdk",
    "telegram",
)  # fmt: skip

SHORTEST_TEXT = 8
"""What somebody said is looked for from this length on: a shorter word may be one of the log's own."""


class Overheard:
    """What was logged, and whatever else is added to it."""

    def __init__(self, stream: io.StringIO) -> None:
        self.stream = stream

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    def revealing(self, told: Told) -> list[str]:
        """Return the lines that hold a secret in whatever spelling, or what somebody said."""
        texts = {line for text in told.texts for line in text.splitlines() if len(line.strip()) >= SHORTEST_TEXT}
        kept = {spelling for each in told.secrets | texts for spelling in spellings(each)}
        return [line for line in self.text.splitlines() if any(each in line for each in kept)]


def spellings(text: str) -> set[str]:
    """Return how a text may be written: as it is, in an address, in JSON, in a ``repr``, in base64."""
    coded = base64.b64encode(text.encode()).decode().rstrip("=")
    return {text, quote(text), quote(text, safe=""), json.dumps(text)[1:-1], repr(text)[1:-1], coded}


@contextmanager
def overheard(redact: Redactor, *, as_json: bool) -> Iterator[Overheard]:
    """Log to memory while the context lasts."""
    stream = io.StringIO()
    before = {name: logging.getLogger(name).level for name in LIBRARIES}
    with logging_to(stream, redact, as_json=as_json):
        try:
            for name in before:
                logging.getLogger(name).setLevel(logging.DEBUG)
            yield Overheard(stream)
        finally:
            for name, level in before.items():
                logging.getLogger(name).setLevel(level)
