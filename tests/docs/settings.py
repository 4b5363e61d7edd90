"""The keys of :mod:`bridges.config`, with type and default; their meaning is in ``configuration.toml``."""

from __future__ import annotations

import types
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, Union, get_args, get_origin

import msgspec

from bridges.config import AnyBot, Bot, Config, Identifier, Section
from bridges.listen import Listen
from bridges.secret import Secret
from i18n import Language
from tests.docs.tables import table, told

HEADINGS = {
    Language.EN: ("key", "value", "default", "meaning"),
    Language.ZH: ("键", "值", "默认", "含义"),
}
NEEDED = {Language.EN: "required", Language.ZH: "必填"}
_PLACES = '`"…"`, `{ env = "NAME" }`, `{ file = "PATH" }`'
_PLAIN: dict[object, str] = {
    bool: "`true`, `false`", str: '`"…"`', Path: '`"PATH"`', Listen: '`"HOST:PORT"`',
    Secret: _PLACES, Identifier: _PLACES, frozenset: '`["ID", …]`',
}  # fmt: skip

CHANNELS = {str(kind.__struct_config__.tag): kind for kind in get_args(AnyBot)}
SHARED = frozenset(field.name for field in msgspec.structs.fields(Bot))


def own(channel: str) -> set[str]:
    """Return the keys that only tables of this channel have."""
    return {field.encode_name for field in msgspec.structs.fields(CHANNELS[channel])} - SHARED


def endpoints(channel: str) -> type[Section]:
    (found,) = (field.type for field in msgspec.structs.fields(CHANNELS[channel]) if field.name == "endpoints")
    assert isinstance(found, type)
    assert issubclass(found, Section)
    return found


def keys(kind: type[Section]) -> list[msgspec.structs.FieldInfo]:
    return list(msgspec.structs.fields(kind))


def is_table(field: msgspec.structs.FieldInfo) -> bool:
    """Whether a key is a table of its own, described elsewhere."""
    return any(isinstance(each, type) and issubclass(each, msgspec.Struct) for each in _parts(field.type))


def _parts(kind: object) -> tuple[object, ...]:
    """Return the alternatives of a type, ``None`` aside."""
    origin = get_origin(kind)
    if origin is Annotated:
        return _parts(get_args(kind)[0])
    if origin in {Union, types.UnionType}:
        return tuple(part for each in get_args(kind) for part in _parts(each) if each is not type(None))
    if origin is tuple:
        return _parts(get_args(kind)[0])
    return (origin if origin is frozenset else kind,)


def _values(kind: object) -> str:
    return ", ".join(map(_value, _parts(kind)))


def _value(kind: object) -> str:
    if get_origin(kind) is Literal:
        return ", ".join(f'`"{each}"`' for each in get_args(kind))
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return ", ".join(f'`"{each}"`' for each in kind)
    return _PLAIN[kind]


def _default(field: msgspec.structs.FieldInfo, language: Language) -> str:
    if field.required:
        return NEEDED[language]
    match field.default:
        case bool(given):
            return f"`{str(given).lower()}`"
        case frozenset():
            return "`[]`"
        case str(given):
            return f'`"{given}"`'
        case _:
            return ""


def rows(kind: type[Section], place: str, only: frozenset[str] | None, language: Language) -> list[list[str]]:
    """Return a row a key; ``only`` leaves others out. The words are those of ``PLACE.KEY``."""
    words = told("configuration")
    wanted = [field for field in keys(kind) if not is_table(field) and (only is None or field.name in only)]
    return [
        [
            f"`{field.encode_name}`",
            _values(field.type),
            _default(field, language),
            words[f"{place}.{field.encode_name}"][language][0],
        ]
        for field in wanted
    ]


def sections() -> dict[str, type[Section]]:
    """Return the tables of the file by their name, that of all bots too; a channel's own keys are another matter."""
    inner = [("", Config), *((field.encode_name, part) for field in keys(Config) for part in _parts(field.type))]
    shared = [("bot", Bot), *((field.encode_name, part) for field in keys(Bot) for part in _parts(field.type))]
    found = {name: kind for name, kind in (*inner, *shared) if isinstance(kind, type) and issubclass(kind, Section)}
    return {name or "top": kind for name, kind in found.items()}


def section(name: str, language: Language) -> str:
    """Return the table of one section of the file."""
    return table(HEADINGS[language], rows(sections()[name], name, None, language))


def channel(name: str, language: Language) -> str:
    """Return the table of a channel's own keys, those of its endpoints last."""
    only = frozenset(own(name))
    mine = rows(CHANNELS[name], name, only, language)
    there = rows(endpoints(name), name, None, language)
    return table(HEADINGS[language], [*mine, *([f"`endpoints.{row[0][1:]}", *row[1:]] for row in there)])


def wanted() -> set[str]:
    """Return every entry ``configuration.toml`` must have, and no other."""
    places = [(name, kind, frozenset(field.encode_name for field in keys(kind))) for name, kind in sections().items()]
    places += [(name, kind, frozenset(own(name))) for name, kind in CHANNELS.items()]
    places += [
        (name, kind, frozenset(each.encode_name for each in keys(kind)))
        for name in CHANNELS
        for kind in [endpoints(name)]
    ]
    return {
        f"{place}.{field.encode_name}"
        for place, kind, only in places
        for field in keys(kind)
        if field.encode_name in only and not is_table(field)
    }
