"""Logs: one chain for our own lines and those of every library, and nothing secret on any of them.

Two rules, whatever the way here: a logger, a warning, an uncaught error, a lost task, a dying thread. Of a library's
line and of an error only what stands in source code is shown (:mod:`bridges.shown`), so no message content. And known
secrets are hidden in the finished line, so it makes no difference which event or field of ours they got into.
"""

from __future__ import annotations

import base64
import html
import json
import logging
import re
import secrets
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, TextIO
from urllib.parse import quote, quote_plus

import structlog

from bridges.shown import OURS, at, chain, is_ours, raised_at, trace, written
from commands.model import SenderId
from harness_client.errors import HarnessError, Refused
from harness_client.types import SessionId

HIDDEN: Final = "[hidden]"

SHORTEST_SECRET: Final = 4
"""A shorter one would hide half of every line, and protects nothing."""

MAX_LEARNT: Final = 256
"""Secrets learnt at run time that are hidden; those learnt longest ago have long expired and go first."""

UNTOLD: Final = "a library's words, put together while it ran"
"""What stands in the place of a library's words that may hold anything."""

REFERENCE_ALPHABET: Final = "23456789ABCDEFGHJKMNPQRSTVWXYZ"

_LIKE_SECRETS: Final = re.compile(r"(?i)([?&](?:access_|app_)?token=|\bbearer\s+|\bbot(?=\d+:))[^\s&\"'<>)]+")
_ESCAPED: Final = re.compile(r"%[0-9A-F]{2}")
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class Redactor:
    """Takes known secrets, and what looks like one, out of a text."""

    def __init__(self, lasting: Iterable[str] = ()) -> None:
        self._lasting: set[str] = set()
        self._learnt: OrderedDict[str, None] = OrderedDict()
        self._longest_first: list[str] = []
        self.keep(lasting)

    def keep(self, secrets: Iterable[str]) -> None:
        """Hide these from now on and for ever: they were configured, or last as long as the program."""
        self._lasting |= {spelling for secret in secrets for spelling in _spellings(secret)}
        self._sort()

    def hide(self, secret: str) -> None:
        """Hide one more from now on: a token that was fetched, and will be over some time."""
        self._learnt[secret] = None
        self._learnt.move_to_end(secret)
        while len(self._learnt) > MAX_LEARNT:
            self._learnt.popitem(last=False)
        self._sort()

    def _sort(self) -> None:
        learnt = {spelling for secret in self._learnt for spelling in _spellings(secret)}
        self._longest_first = sorted(self._lasting | learnt, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Return the text with every secret hidden."""
        for spelling in self._longest_first:
            text = text.replace(spelling, HIDDEN)
        return _LIKE_SECRETS.sub(rf"\1{HIDDEN}", text)


def _spellings(secret: str) -> set[str]:
    """How a secret may be written in a line: as it is, in JSON, in a ``repr``, an address, a page, in base64."""
    if len(secret) < SHORTEST_SECRET:
        return set()
    data = secret.encode("utf-8", "replace")
    addresses = {quote(secret, safe, errors="replace") for safe in ("/", "")} | {quote_plus(secret, errors="replace")}
    return {
        secret,
        html.escape(secret),
        *(json.dumps(secret, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)),
        *(shown(secret)[1:-1] for shown in (repr, ascii)),
        repr(data)[2:-1],
        *addresses,
        *(_ESCAPED.sub(lambda escape: escape[0].lower(), address) for address in addresses),
        *(encode(data).decode().rstrip("=") for encode in (base64.b64encode, base64.urlsafe_b64encode)),
    }


class _Formatter(structlog.stdlib.ProcessorFormatter):
    """Renders a record, then hides."""

    def __init__(self, redact: Redactor, *, as_json: bool) -> None:
        renderer: structlog.types.Processor = (
            structlog.processors.JSONRenderer(ensure_ascii=False)
            if as_json
            else structlog.dev.ConsoleRenderer(colors=False)
        )
        super().__init__(
            foreign_pre_chain=[_as_written, *_SHARED],
            processors=[
                structlog.processors.ExceptionRenderer(lambda error: trace(error[1]) if error[1] else ""),
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                renderer,
            ],
            use_get_message=False,  # a line that cannot be filled in is a line all the same
        )
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        line = _CONTROLS.sub("�", self._redact(super().format(record)))
        return line.replace("\n", "\n    ")  # a line within an entry cannot pass for an entry


def _as_written(_: object, __: str, entry: structlog.types.EventDict) -> structlog.types.EventDict:
    """Keep of a library's line what stands in its source, and where that is."""
    record: logging.LogRecord = entry["_record"]
    entry.update(event=written(record) or UNTOLD, at=at(record.pathname, record.lineno))
    return entry


_SHARED: Final[list[structlog.types.Processor]] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


@contextmanager
def logging_to(stream: TextIO, redact: Redactor, *, as_json: bool = False, level: int = logging.INFO) -> Iterator[None]:
    """Send all logs of the process to ``stream`` while the context lasts, uncaught errors and warnings included.

    ``level`` is for our own lines; libraries speak from WARNING on, whatever level one gave its loggers.
    """
    handler = logging.StreamHandler(stream)
    handler.addFilter(lambda record: record.levelno >= logging.WARNING or is_ours(record.name))
    handler.setFormatter(_Formatter(redact, as_json=as_json))
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    ours = {name: logging.getLogger(name).level for name in OURS}
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in ours:
        logging.getLogger(name).setLevel(level)
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
        with _hooked():
            yield
    finally:
        structlog.reset_defaults()
        root.handlers[:], root.level = before
        for name, old in ours.items():
            logging.getLogger(name).setLevel(old)


@contextmanager
def _hooked() -> Iterator[None]:
    """Log what the interpreter would print by itself: it prints texts."""
    before = (sys.excepthook, sys.unraisablehook, threading.excepthook, warnings.showwarning)
    sys.excepthook = _log_uncaught
    sys.unraisablehook = lambda lost: _log_lost("in passing", lost.exc_value)
    threading.excepthook = lambda lost: _log_lost("thread ended", lost.exc_value)
    warnings.showwarning = _log_warning
    try:
        yield
    finally:
        sys.excepthook, sys.unraisablehook, threading.excepthook, warnings.showwarning = before


def _log_uncaught(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        _log_lost("uncaught", error)


def _log_lost(event: str, error: BaseException | None) -> None:
    structlog.get_logger(__name__).critical(event, exc_info=error)


def _log_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    del message, file, line  # the signature is Python's
    structlog.get_logger(__name__).warning("python warns", category=category.__name__, at=at(filename, lineno))


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
            cause=" <- ".join(_name(link) for link in chain(error)),
            at=raised_at(error),
        )
        return reference


def _name(error: BaseException) -> str:
    name = type(error).__name__
    if isinstance(error, Refused):
        return f"{name}[{error.code} {error.reason}]"
    return f"{name}[{error.code}]" if isinstance(error, HarnessError) else name
