"""The frames of the long connection, in the proto2 encoding of ``pbbp2.Frame``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

CONTROL, DATA = 0, 1
_BYTES = 2
_NUMBERS = {1: "seq", 2: "log", 3: "service", 4: "method"}
_HEADER, _PAYLOAD = 5, 8


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame; its two encodings and the textual log id are not looked at."""

    method: int
    headers: dict[str, str] = field(default_factory=dict)
    payload: bytes = b""
    service: int = 1
    seq: int = 0
    log: int = 0

    def encode(self) -> bytes:
        """Return the bytes of it."""
        numbers = [_varint(tag << 3) + _varint(getattr(self, name)) for tag, name in _NUMBERS.items()]
        headers = [
            _field(_HEADER, _field(1, key.encode()) + _field(2, value.encode())) for key, value in self.headers.items()
        ]
        return b"".join([*numbers, *headers, _field(_PAYLOAD, self.payload)])

    @classmethod
    def decode(cls, data: bytes) -> Frame:
        """Read a frame. Raises ValueError, IndexError."""
        numbers: dict[str, int] = {}
        headers: dict[str, str] = {}
        payload = b""
        for tag, value in _fields(data):
            if isinstance(value, int):
                numbers[_NUMBERS[tag]] = value
            elif tag == _HEADER:
                pair = {number: text for number, text in _fields(value) if isinstance(text, bytes)}
                headers[pair[1].decode()] = pair[2].decode()
            elif tag == _PAYLOAD:
                payload = value
        if len(numbers) != len(_NUMBERS):
            raise ValueError("a required field is missing")
        return cls(headers=headers, payload=payload, **numbers)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _read(data, at)
        number, at = _read(data, at)
        match key & 7:
            case 0:
                yield key >> 3, number
            case 2:
                if at + number > len(data):
                    raise ValueError("a field is cut off")
                yield key >> 3, data[at : at + number]
                at += number
            case wire:
                raise ValueError(f"wire type {wire}")


def _field(tag: int, value: bytes) -> bytes:
    return _varint(tag << 3 | _BYTES) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _read(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
    raise ValueError("a number without an end")
