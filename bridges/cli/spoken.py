"""The language of whoever started the program, as long as no configuration says it."""

from __future__ import annotations

from collections.abc import Mapping

from i18n import Language


def spoken(environ: Mapping[str, str]) -> Language:
    """Return the language of the environment's locale."""
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    return Language.of(next((environ[name] for name in names if environ.get(name)), "").partition(".")[0])
