"""Strict JSON, read value by value, so that a large body never holds the event loop.

A C decoder keeps the interpreter lock for a whole call: a thread alone would not help. So a body is walked in a
worker thread in short calls, over a window of text that slides along it. Only stdlib ``json`` will do: hosts cut
strings between the halves of a surrogate pair, and stricter decoders refuse what they wrote.

Everything that is no strict JSON ends as Malformed: bad UTF-8, NaN and Infinity, repeated keys, endless nesting,
endless numbers, text behind the end. No message quotes the body.
"""

from __future__ import annotations

import codecs
import json
import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from json.decoder import JSONArray, scanstring  # type: ignore[attr-defined] # typeshed leaves out what a decoder is made of
from json.scanner import py_make_scanner  # type: ignore[attr-defined] # the same
from typing import Final, NoReturn, ParamSpec, TypeVar

from harness_client.errors import Malformed
from harness_client.offload import offload

DIRECT_BYTES: Final = 256 * 1024
"""Bodies up to this size are read in the loop: that takes a few milliseconds, less than a thread is worth."""
_PIECE: Final = 128 * 1024
"""Bytes turned into text at a time."""
_LONG: Final = 512 * 1024
"""A window longer than this (characters) holds one long value, which the C decoder must not read in one call."""
_NUMBER_TAIL: Final = 4
"""Characters that tell a whole number from one that goes on: ``1`` may become ``1e+5``."""
_BLANKS: Final = " \t\n\r"

T = TypeVar("T")
P = ParamSpec("P")


class Stopped(Exception):
    """Nobody waits for the result any more; only ever raised in the worker thread."""


async def off_loop(read: Callable[[JsonText], T], body: bytes) -> T:
    """Run ``read`` over ``body``, in a worker thread when it is large; stop it when the caller is cancelled."""
    if len(body) <= DIRECT_BYTES:
        return read(JsonText(body))
    text = JsonText(body)
    try:
        return await offload(partial(read, text))
    finally:
        text.stop.set()


def loads(body: bytes) -> object:
    """Decode one whole value in the loop, for bodies known to be small. Raises Malformed."""
    text = JsonText(body)
    value, _ = text.value()
    text.end()
    return value


class JsonText:
    """A JSON text under a cursor. Every method raises Malformed when the text is not what it asks for."""

    def __init__(self, body: bytes) -> None:
        self._body = memoryview(body)
        self._read = 0
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._again: list[str] = []
        self._window = ""
        self._at = 0
        self.stop = threading.Event()

    def value(self) -> tuple[object, str]:
        """Read the next value; return it with its source text."""
        self._peek()
        while True:
            long = len(self._window) > _LONG
            try:
                value, end = (_LongDecoder(self.stop) if long else _DECODER).raw_decode(self._window, self._at)
            except json.JSONDecodeError:
                # Broken, or cut by the end of the window: only the rest of the body can tell.
                if self._slide():
                    continue
                _fail("no JSON value")
            except (ValueError, RecursionError):
                _fail("a value beyond every bound")
            if type(value) in (int, float) and len(self._window) - end < _NUMBER_TAIL and self._slide():
                continue
            source = self._window[self._at : end]
            self._at = end
            if long:
                self._shorten()
            return value, source

    def members(self) -> Iterator[str]:
        """Walk an object: yield each key, the cursor before its value, which the caller must read."""
        self._expect("{")
        if self._peek() == "}":
            self._at += 1
            return
        seen: set[str] = set()
        while True:
            key, _ = self.value()
            if not isinstance(key, str) or key in seen:
                _fail("a key that is no string, or repeated")
            seen.add(key)
            self._expect(":")
            yield key
            if self._expect(",}") == "}":
                return

    def items(self) -> Iterator[None]:
        """Walk a list: yield with the cursor before each item, which the caller must read."""
        self._expect("[")
        if self._peek() == "]":
            self._at += 1
            return
        while True:
            yield
            if self._expect(",]") == "]":
                return

    def opens(self, bracket: str) -> bool:
        """Whether the next value begins with ``bracket``."""
        return self._peek() == bracket

    def end(self) -> None:
        """Make sure that nothing follows."""
        if self._peek():
            _fail("text behind the end")

    def _expect(self, chars: str) -> str:
        char = self._peek()
        if not char or char not in chars:
            _fail("JSON of another shape")
        self._at += 1
        return char

    def _peek(self) -> str:
        """Skip blanks; return the next character, empty at the end."""
        while True:
            while self._at < len(self._window):
                char = self._window[self._at]
                if char not in _BLANKS:
                    return char
                self._at += 1
            if not self._slide():
                return ""

    def _slide(self) -> bool:
        """Drop what was read and add at least as much text as is left; False at the end of the body."""
        if self.stop.is_set():
            raise Stopped
        pieces = [self._window[self._at :]]
        wanted = max(len(pieces[0]), 1)
        while wanted > 0 and (piece := self._piece()):
            pieces.append(piece)
            wanted -= len(piece)
        if len(pieces) == 1:
            return False
        self._window = "".join(pieces)
        self._at = 0
        return True

    def _piece(self) -> str:
        """Take the next piece of text; empty at the end of the body."""
        if self._again:
            return self._again.pop()
        text = ""
        while not text and self._read < len(self._body):
            piece = self._body[self._read : self._read + _PIECE]
            self._read += len(piece)
            try:
                text = self._utf8.decode(piece, final=self._read >= len(self._body))
            except UnicodeDecodeError:
                _fail("bytes that are no UTF-8")
        return text

    def _shorten(self) -> None:
        """Behind a long value, put the rest of its window back: what follows is read by the fast decoder again."""
        rest, self._window, self._at = self._window[self._at :], "", 0
        self._again += reversed([rest[at : at + _PIECE] for at in range(0, len(rest), _PIECE)])


def _fail(what: str) -> NoReturn:
    # The error at hand quotes the body: it must not become the cause.
    raise Malformed(what) from None


def _constant(_: str) -> NoReturn:
    raise Malformed("NaN or Infinity")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise Malformed("a repeated key")
    return found


def _long_string(text: str, at: int, strict: bool = True) -> tuple[str, int]:
    """Read a string whose opening quote lies before ``at``, in short calls of the C scanner."""
    parts: list[str] = []
    while True:
        piece = text[at : at + _PIECE]
        try:
            part, end = scanstring(piece, 0, strict)
        except json.JSONDecodeError:
            if at + _PIECE >= len(text):
                raise
            cut = _unbroken(piece)
            parts.append(scanstring(piece[:cut] + '"', 0, strict)[0])
            at += cut
        else:
            return "".join([*parts, part]), at + end


def _unbroken(piece: str) -> int:
    """Return where to cut ``piece`` of a string's inside: not in an escape, nor between the halves of a pair."""
    cut = len(piece)
    last = piece.rfind("\\", max(0, cut - _ESCAPE))
    whole = _ESCAPE if piece[last + 1 : last + 2] == "u" else 2
    if last >= 0 and _escapes(piece, last) and last + whole > cut:
        cut = last
    half = max(0, cut - _ESCAPE)
    return half if _FIRST_HALF.fullmatch(piece, half, cut) and _escapes(piece, half) else cut


def _escapes(piece: str, at: int) -> bool:
    """Whether the backslash at ``at`` begins an escape: it is not itself escaped."""
    before = piece[:at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 0


class _LongDecoder(json.JSONDecoder):
    """json's own pure Python decoder, strings cut into short calls: slower, and it never keeps the lock.

    It may work for many seconds, so it too ends when nobody waits any more.
    """

    def __init__(self, stop: threading.Event) -> None:
        super().__init__(object_pairs_hook=_object, parse_constant=_constant)
        self.parse_string = _stoppable(_long_string, stop)
        self.parse_array = _stoppable(JSONArray, stop)
        self.scan_once = py_make_scanner(self)


def _stoppable(parse: Callable[P, T], stop: threading.Event) -> Callable[P, T]:
    def step(*args: P.args, **kwargs: P.kwargs) -> T:
        if stop.is_set():
            raise Stopped
        return parse(*args, **kwargs)

    return step


_ESCAPE: Final = len("\\uD83D")
_FIRST_HALF: Final = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}")
"""The escape of a character's first half; the second one follows, or none."""
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
