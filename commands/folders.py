"""Names of folders on the host's machine, which may be another system than ours: compared as text, never looked up."""

from __future__ import annotations

import unicodedata
from pathlib import PurePosixPath, PureWindowsPath
from typing import Final

LONGEST_PATH: Final = 1_024
"""Characters."""


def is_absolute(path: str) -> bool:
    """Whether the path is absolute on some system."""
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()


def is_folder(text: str) -> bool:
    """Whether a person may have meant a folder: an absolute path without anything invisible in it."""
    return (
        len(text) <= LONGEST_PATH
        and is_absolute(text)
        and not any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for char in text)
    )


def tidy(path: str) -> str:
    """Return the path as it is spelled without doubled or trailing separators and without ``.``."""
    if PurePosixPath(path).is_absolute():
        return "/" + str(PurePosixPath(path)).lstrip("/")  # two slashes in front may mean something; not here
    return str(PureWindowsPath(path))


def same(one: str, other: str) -> bool:
    """Whether two paths name one folder, as far as their spelling tells."""
    return tidy(one) == tidy(other)
