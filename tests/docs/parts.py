"""The generated parts of the pages, each between ``<!-- NAME -->`` and ``<!-- end -->``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial

from i18n import Language
from tests.docs import chatting, codes, figures, settings, stops

_PART = re.compile(r"(<!-- (\w+) (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def parts() -> Mapping[tuple[str, str], Callable[[Language], str]]:
    """Return everything that is generated, by the two words of its mark."""
    found: dict[tuple[str, str], Callable[[Language], str]] = {
        ("commands", "table"): chatting.section,
        ("metrics", "table"): figures.section,
    }
    found |= {("codes", name): partial(codes.section, name) for name in codes.sections()}
    found |= {("stops", name): partial(stops.section, name) for name in settings.CHANNELS}
    found |= {("channel", name): partial(settings.channel, name) for name in settings.CHANNELS}
    return found | {("keys", name): partial(settings.section, name) for name in settings.sections()}


def marked(text: str) -> list[tuple[str, str]]:
    return [(kind, name) for _, kind, name, _ in _PART.findall(text)]


def renewed(text: str, language: Language) -> str:
    """Return the page with its generated parts as they should be. Raises KeyError for a mark nobody knows."""
    known = parts()
    return _PART.sub(lambda part: f"{part[1]}\n{known[part[2], part[3]](language)}\n\n{part[4]}", text)
