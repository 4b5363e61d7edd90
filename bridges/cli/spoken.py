"""The language of whoever started the program, as long as no configuration says it."""

from __future__ import annotations

from collections.abc import Mapping

from i18n import Language


def spoken(environ: Mapping[str, str], chosen: str | None = None) -> Language:
    """Return the language that an option has chosen, else that of the environment's locale."""
    if chosen:
        return Language(chosen)
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    return Language.of(next((environ[name] for name in names if environ.get(name)), "").partition(".")[0])
