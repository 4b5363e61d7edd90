"""Reading a request's JSON with the checks a host makes. A wrong field is refused the way the host's schema does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.fakes.harness.dialect import Obj


class Malformed(Exception):
    """A payload that fails the host's schema; ``issue`` is what a legacy host tells of it."""

    def __init__(self, issue: Obj) -> None:
        super().__init__(str(issue))
        self.issue = issue


def name_of(value: object) -> str:
    """Return the name JavaScript has for a JSON value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


class Fields:
    """A JSON object being read."""

    def __init__(self, value: object, path: Sequence[object] = ()) -> None:
        self._path = list(path)
        if not isinstance(value, dict):
            raise self._wrong("object", value)
        self.raw: Obj = value

    def __contains__(self, key: str) -> bool:
        return key in self.raw

    def text(self, key: str, *, least: int = 0, most: int | None = None) -> str:
        """Return a string."""
        value = self.raw.get(key)
        if not isinstance(value, str):
            raise self._wrong("string", value, key)
        if len(value) < least:
            raise self._small("string", least, f"Too small: expected string to have >={least} characters", key)
        if most is not None and len(value) > most:
            raise Malformed({"origin": "string", "code": "too_big", "maximum": most, "path": [*self._path, key]})
        return value

    def text_or_none(self, key: str) -> str | None:
        """Return a string, None when the key is missing."""
        return self.text(key) if key in self.raw else None

    def number(self, key: str) -> float:
        """Return a number, an ``int`` where it was written as one."""
        value = self.raw.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._wrong("number", value, key)
        return value

    def number_or_none(self, key: str) -> float | None:
        """Return a number, None when the key is missing."""
        return self.number(key) if key in self.raw else None

    def whole(self, key: str) -> int:
        """Return an integer."""
        value = self.number(key)
        if not isinstance(value, int):
            raise self._wrong("int", value, key)
        return value

    def whole_or_none(self, key: str) -> int | None:
        """Return an integer, None when the key is missing."""
        return self.whole(key) if key in self.raw else None

    def choice(self, key: str, *choices: str) -> str:
        """Return one of a closed set."""
        value = self.raw.get(key)
        if value not in choices:
            raise Malformed({"code": "invalid_union", "path": [*self._path, key], "message": "Invalid input"})
        return str(value)

    def child(self, key: str) -> Fields:
        """Return an object."""
        return Fields(self.raw.get(key), [*self._path, key])

    def items(self, key: str) -> Iterator[Fields]:
        """Return the objects of a list."""
        value = self.raw.get(key)
        if not isinstance(value, list):
            raise self._wrong("array", value, key)
        for index, item in enumerate(value):
            yield Fields(item, [*self._path, key, index])

    def _wrong(self, expected: str, value: object, key: str | None = None) -> Malformed:
        path = self._path if key is None else [*self._path, key]
        received = "undefined" if key is not None and key not in self.raw else name_of(value)
        message = f"Invalid input: expected {expected}, received {received}"
        return Malformed({"expected": expected, "code": "invalid_type", "path": path, "message": message})

    def _small(self, origin: str, least: int, message: str, key: str) -> Malformed:
        issue: Obj = {"origin": origin, "code": "too_small", "minimum": least, "inclusive": True}
        return Malformed({**issue, "path": [*self._path, key], "message": message})
