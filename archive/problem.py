"""What is wrong with a request, as a code. Faces put it into words; nothing was read or written for it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Fault(StrEnum):
    """Everything a request may be refused for."""

    BAD_JSON = "bad-json"
    NOT_AN_OBJECT = "not-an-object"
    MISSING = "missing"
    UNKNOWN_PARAMETER = "unknown-parameter"
    UNKNOWN_ACTION = "unknown-action"
    WRONG_TYPE = "wrong-type"
    TOO_LONG = "too-long"
    OUT_OF_RANGE = "out-of-range"
    UNKNOWN_HOST = "unknown-host"
    BAD_TIME = "bad-time"
    REVERSED_RANGE = "reversed-range"
    UNKNOWN_ID = "unknown-id"
    AMBIGUOUS_ID = "ambiguous-id"
    NO_ARCHIVE = "no-archive"
    NO_WORKSPACE = "no-workspace"
    NO_WRITER = "no-writer"


class BadRequest(Exception):
    """A request that cannot be answered. ``parameter`` names what is wrong with it, as the asker wrote it.

    ``values`` are what the words need: ``least`` and ``most`` of a range, ``hosts`` of an ambiguous id.
    """

    def __init__(self, code: Fault, parameter: str, values: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(f"{code}: {parameter}")
        self.code = code
        self.parameter = parameter
        self.values = values
