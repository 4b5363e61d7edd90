"""What may be shown of a library's line and of an error: what stands in source code, never what was filled in.

Libraries fill in addresses with tokens, whole updates, what people typed; and an error quotes whatever it stumbled
over. A token can be looked for in the finished line, but nobody knows how to look for a message.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Final

OURS: Final = ("archive", "bridges", "commands", "harness_client")

MAX_LINKS: Final = 8
"""Causes of an error that are shown."""
MAX_FRAMES: Final = 20
"""Innermost frames of each that are shown."""


def is_ours(module: str) -> bool:
    """Whether a module, or the logger named after it, is one of ours."""
    return module.partition(".")[0] in OURS


def written(record: logging.LogRecord) -> str | None:
    """Return a line's words as they stand in the code that wrote it, blanks unfilled; None when they do not.

    Call it while the line is being written: the code is found on the stack.
    """
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - no public name gives the frame without its source
    while frame is not None:
        if (frame.f_code.co_filename, frame.f_lineno) == (record.pathname, record.lineno):
            return record.msg if isinstance(record.msg, str) and record.msg in frame.f_code.co_consts else None
        frame = frame.f_back
    return None


def trace(error: BaseException) -> str:
    """Return the classes of an error and its causes, and where each was raised: no texts, no folders."""
    lines: list[str] = []
    for link in chain(error):
        lines.append(type(link).__name__)
        lines += [f"  {place}" for place in _places(link.__traceback__)[-MAX_FRAMES:]]
    return "\n".join(lines)


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it came from, the parts of a group first."""
    waiting = [error]
    for _ in range(MAX_LINKS):
        if not waiting:
            return
        link = waiting.pop(0)
        yield link
        if isinstance(link, BaseExceptionGroup):
            waiting += link.exceptions
        cause = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
        waiting += [cause] if cause else []


def raised_at(error: BaseException) -> str | None:
    """Return the file and line an error was raised at."""
    places = _places(error.__traceback__)
    return places[-1].partition(" ")[0] if places else None


def described(error: BaseException) -> str:
    """Return an error's class, with its text where that is ours or the system's."""
    ours = is_ours(type(error).__module__) or isinstance(error, OSError | ImportError)
    text = " ".join(str(error).split()) if ours else ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def reason(error: OSError) -> str:
    """Return the system's words for an error, which hold no path; its class where it has none."""
    return os.strerror(error.errno) if error.errno else type(error).__name__


def code(word: str) -> str:
    """Return what a platform names as its code, if that is what it is: a body may hold anything in its place."""
    return word if re.fullmatch(r"[\w.:/-]{0,64}", word, re.ASCII) else "odd"


def at(file: str, line: int) -> str:
    """Name a place in source code without the folders of this machine."""
    return f"{file.replace(chr(92), '/').rpartition('/')[2]}:{line}"


def _places(trace: TracebackType | None) -> list[str]:
    return [
        f"{at(frame.f_code.co_filename, line)} in {frame.f_code.co_name}" for frame, line in traceback.walk_tb(trace)
    ]
