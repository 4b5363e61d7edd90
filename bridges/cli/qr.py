"""Draws codes to scan in the terminal."""

from __future__ import annotations

import sys


def drawn(text: str) -> bool:
    """Draw a QR code; False when the library that can is not installed, or no code holds so much."""
    try:
        import segno  # noqa: PLC0415 - an extra
    except ModuleNotFoundError:
        return False
    try:
        code = segno.make(text, error="l")
    except segno.DataOverflowError:
        return False
    code.terminal(out=sys.stdout, border=2, compact=True)
    return True
