"""Logs: one chain for our own lines and those of every library, and nothing secret on any of them.

What is hidden is hidden in the finished line, so it makes no difference how it got there: message, field, argument of
a library's logger, exception text, traceback. Message content never belongs into a log; nothing here can take it out.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import sys
import traceback
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, TextIO
from urllib.parse import quote

import structlog

from commands.model import SenderId
from harness_client.errors import HarnessError, Refused
from harness_client.types import SessionId

OURS: Final = ("archive", "bridges", "commands", "harness_client")
HIDDEN: Final = "[hidden]"

SHORTEST_SECRET: Final = 4
"""A shorter one would hide half of every line, and protects nothing."""

MAX_LEARNT: Final = 256
"""Secrets learnt at run time that are hidden; those learnt longest ago have long expired and go first."""

REFERENCE_ALPHABET: Final = "23456789ABCDEFGHJKMNPQRSTVWXYZ"

_LIKE_SECRETS: Final = re.compile(r"(?i)([?&](?:access_|app_)?token=|\bbearer\s+|\bbot(?=\d+:))[^\s&\"'<>)]+")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class Redactor:
    """Takes known secrets, and what looks like one, out of a text. ``configured`` ones are never forgotten."""

    def __init__(self, configured: Iterable[str] = ()) -> None:
        self._configured = {spelling for secret in configured for spelling in _spellings(secret)}
        self._learnt: OrderedDict[str, None] = OrderedDict()
        self._longest_first = sorted(self._configured, key=len, reverse=True)

    def hide(self, secret: str) -> None:
        """Hide one more secret from now on: a token that was fetched, the address a child printed."""
        self._learnt[secret] = None
        self._learnt.move_to_end(secret)
        while len(self._learnt) > MAX_LEARNT:
            self._learnt.popitem(last=False)
        learnt = {spelling for secret in self._learnt for spelling in _spellings(secret)}
        self._longest_first = sorted(self._configured | learnt, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Return the text with every secret hidden."""
        for spelling in self._longest_first:
            text = text.replace(spelling, HIDDEN)
        return _LIKE_SECRETS.sub(rf"\1{HIDDEN}", text)


def _spellings(secret: str) -> set[str]:
    """How a secret may be written in a line: as it is, in JSON, in a ``repr``, in an address."""
    if len(secret) < SHORTEST_SECRET:
        return set()
    return {
        secret,
        json.dumps(secret)[1:-1],
        repr(secret)[1:-1],
        quote(secret, errors="replace"),
        quote(secret, "", errors="replace"),
    }


class _Formatter(structlog.stdlib.ProcessorFormatter):
    """Renders a record, then hides."""

    def __init__(self, redact: Redactor, *, as_json: bool) -> None:
        renderer: structlog.types.Processor = (
            structlog.processors.JSONRenderer(ensure_ascii=False)
            if as_json
            else structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
        )
        super().__init__(
            foreign_pre_chain=_SHARED,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *([structlog.processors.format_exc_info] if as_json else []),
                renderer,
            ],
        )
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        line = _CONTROLS.sub("�", self._redact(super().format(record)))
        return line.replace("\n", "\n    ")  # a line within an entry cannot pass for an entry


_SHARED: Final[list[structlog.types.Processor]] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


@contextmanager
def logging_to(stream: TextIO, redact: Redactor, *, as_json: bool = False, level: int = logging.INFO) -> Iterator[None]:
    """Send all logs of the process to ``stream`` while the context lasts, uncaught exceptions and warnings included.

    ``level`` is for our own lines; libraries speak from WARNING on, for below it some print tokens and messages.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Formatter(redact, as_json=as_json))
    root = logging.getLogger()
    before = (root.handlers[:], root.level, sys.excepthook)
    ours = {name: logging.getLogger(name).level for name in OURS}
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in ours:
        logging.getLogger(name).setLevel(level)
    logging.captureWarnings(True)
    sys.excepthook = _log_uncaught
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    try:
        yield
    finally:
        structlog.reset_defaults()
        root.handlers[:], root.level, sys.excepthook = before
        logging.captureWarnings(False)
        for name, old in ours.items():
            logging.getLogger(name).setLevel(old)


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    logging.getLogger("bridges").critical("uncaught", exc_info=(kind, error, trace))


class LoggedReferences:
    """See :class:`commands.model.References`."""

    def record(self, error: BaseException, *, actor: SenderId, session: SessionId | None) -> str:
        """Log actor, session, reference and the classes and codes of the cause: no texts, they may quote a message."""
        reference = "H-" + "".join(secrets.choice(REFERENCE_ALPHABET) for _ in range(6))
        structlog.get_logger(__name__).error(
            "failed",
            reference=reference,
            actor=actor,
            session=session,
            cause=" <- ".join(_name(link) for link in _chain(error)),
            at=_place(error),
        )
        return reference


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: BaseException | None = error
    for _ in range(8):
        if link is None:
            return
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _name(error: BaseException) -> str:
    name = type(error).__name__
    if isinstance(error, Refused):
        return f"{name}[{error.code} {error.reason}]"
    return f"{name}[{error.code}]" if isinstance(error, HarnessError) else name


def _place(error: BaseException) -> str | None:
    """Where it was raised: module file and line, no folders of this machine."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename.replace(chr(92), '/').rpartition('/')[2]}:{frames[-1].lineno}" if frames else None
