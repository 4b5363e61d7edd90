"""Output for whoever started the program: in whatever encoding, and also where nothing can be written."""

from __future__ import annotations

import codecs
import errno
import os
import sys
from io import TextIOWrapper
from typing import Any, Final, TextIO

import click

from bridges.cli.spoken import spoken
from bridges.environment import environment
from i18n import Key, Words

FAILED: Final = 1

_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}

_ESCAPES: Final = "harness-im-escapes"


class Program(click.Group):
    """The command line. Characters that the output has no bytes for are escaped, in JSON as JSON wants it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # the signature is click's
        """Run it; an output that is full ends it with a word and exit code 1, a closed pipe without a word."""
        codecs.register_error(_ESCAPES, _escaped)
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors=_ESCAPES)
        try:
            return super().__call__(*args, **kwargs)
        except OSError as error:
            if error.errno not in _FULL or error.filename is not None:
                raise
            silence(sys.stdout)
            try:
                click.echo(Words(spoken(environment()))(Key.START_NO_OUTPUT, reason=error.strerror), err=True)
            except OSError:
                silence(sys.stderr)
            raise SystemExit(FAILED) from None


def silence(stream: TextIO) -> None:
    """Let what is still to be written to a stream that is lost go nowhere, or the interpreter complains at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = memoryview(error.object[error.start : error.end].encode("utf-16-le", "surrogatepass")).cast("H")
    return "".join(f"\\u{unit:04x}" for unit in units), error.end
