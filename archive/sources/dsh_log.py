"""dsh session files: which generation counts, and the events inside (facts HARNESS 7, SESSIONS 2.1)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec
import zstandard

from archive.model import Code, Notice
from archive.opening import open_file
from archive.sources.dsh_turns import Log
from archive.text import clean
from archive.times import EPOCH, Instant, from_millis
from harness_client.deltas import logged
from harness_client.errors import Malformed
from harness_client.events import Event, StreamReset, TextDelta, parse_event
from harness_client.types import SessionId

NEWEST_FORMAT = 4

_FILE = re.compile(r"session(?:\.v(\d{1,4}))?\.jsonl(?:\.zstd)?")
_CHUNK = 1 << 16
_PACKED = frozenset({"text-chunks", "reasoning-chunks", "tool-call-chunks"})
"""Rows of a v0 log that stand for runs of chunk events; they have no ``seq`` of their own."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a session file."""

    session: SessionId
    version: int
    created_at: Instant
    cwd: str
    parent: SessionId | None
    subagent: bool


class _HeaderLine(msgspec.Struct, rename="camel"):
    type: str
    id: str
    version: int = 0
    created_at: float | None = None
    cwd: str | None = None
    parent_session: str | None = None
    origin: str | None = None


def log_files(directory: Path) -> list[Path] | Code:
    """Return the session files in a session's directory, of the formats we know the newest first: that one counts.

    Empty when there is none at all, a code when there are only newer formats.
    """
    found: list[tuple[int, int, Path]] = []
    newer = False
    for path in directory.iterdir():
        match = _FILE.fullmatch(path.name)
        if match is None:
            continue
        version = int(match[1] or 0)
        if version > NEWEST_FORMAT:
            newer = True
        else:
            found.append((version, path.stat().st_mtime_ns, path))
    if newer and not found:
        return Code.UNKNOWN_FORMAT
    return [path for _, _, path in sorted(found, reverse=True)]


def peek(path: Path) -> Header | Code:
    """Read a file's header alone; the code says why it has none that we can read. Raises OSError."""
    with open_file(path) as file:
        try:
            return _header(next(_lines(file, path), b""))
        except zstandard.ZstdError:
            return Code.NO_HEADER


def _header(line: bytes) -> Header | Code:
    try:
        header = msgspec.convert(_parse(line), _HeaderLine)
    except (ValueError, msgspec.ValidationError):
        return Code.NO_HEADER
    if header.type != "session" or not header.id:
        return Code.NO_HEADER
    if header.version > NEWEST_FORMAT:
        return Code.UNKNOWN_FORMAT
    return Header(
        session=SessionId(clean(header.id)),
        version=header.version,
        created_at=from_millis(header.created_at) or EPOCH,
        cwd=header.cwd or "",
        parent=SessionId(clean(header.parent_session)) if header.parent_session else None,
        subagent=header.origin == "subagent",
    )


def read_log(path: Path, session: SessionId, log: Log, notices: list[Notice]) -> Header | None:
    """Take a whole file into ``log``, with the text that old hosts kept as chunks; None without a usable header.

    Adds a notice for everything that could not be read. Raises OSError.
    """
    with open_file(path) as file:
        lines = _whole_lines(file, path, session, notices)
        header = _header(next(lines, b""))
        if isinstance(header, Code):
            return None
        for number, line in enumerate(lines, 2):
            try:
                for item in _items(line):
                    log.take(item)
            except ValueError:
                notices.append(Notice(Code.LINE_TORN, session, number))
            except Malformed:
                notices.append(Notice(Code.ENTRY_INVALID, session, number))
        return header


def _whole_lines(file: BinaryIO, path: Path, session: SessionId, notices: list[Notice]) -> Iterator[bytes]:
    """Yield whole lines only: what follows the last line break, or cannot be decoded, a crash cut short."""
    number = 0
    try:
        for number, line in enumerate(_lines(file, path), 1):
            if line.endswith(b"\n"):
                yield line
            else:
                notices.append(Notice(Code.LINE_TORN, session, number))
    except zstandard.ZstdError:
        notices.append(Notice(Code.INCOMPLETE, session, number + 1))


def _items(line: bytes) -> Iterator[Event | TextDelta | StreamReset]:
    """Read one line. Raises ValueError when it is no JSON, Malformed when it is no event."""
    wire = _parse(line)
    if isinstance(wire, dict) and wire.get("type") in _PACKED:
        yield from _packed_text(wire)
    else:
        yield from logged(parse_event(wire), wire)


class _TextChunks(msgspec.Struct):
    turn: int
    step: int
    texts: tuple[str, ...]


def _packed_text(row: dict[object, object]) -> Iterator[TextDelta]:
    if row["type"] != "text-chunks":
        return
    try:
        data = msgspec.convert(row.get("data"), _TextChunks)
    except msgspec.ValidationError as error:
        raise Malformed("a run of text chunks without its texts") from error
    yield TextDelta(data.turn, data.step, "".join(data.texts))


def _lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Yield lines with their line breaks; only the last may lack one. Raises ZstdError behind what can be decoded."""
    begun: list[bytes] = []
    for chunk in _frames(file) if path.suffix == ".zstd" else iter(partial(file.read, _CHUNK), b""):
        head, *tails = chunk.split(b"\n")
        begun.append(head)
        for tail in tails:
            yield b"".join(begun) + b"\n"
            begun = [tail]
    if last := b"".join(begun):
        yield last


def _frames(file: BinaryIO) -> Iterator[bytes]:
    """Decode the frames of a file one by one: the host adds one each time it appends."""
    frame = zstandard.ZstdDecompressor().decompressobj()
    data = file.read(_CHUNK)
    while data:
        yield frame.decompress(data)
        data = frame.unused_data or file.read(_CHUNK)
        if frame.eof:
            frame = zstandard.ZstdDecompressor().decompressobj()


def _parse(line: bytes) -> object:
    """Parse one line of JSON. Raises ValueError."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:  # the second reader takes lone surrogates, which the first rightly refuses
        value: object = json.loads(line.decode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return value
