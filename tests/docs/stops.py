"""Why a channel may stop for good: every text that stands beside a :class:`bridges.message.Stop` in its modules."""

from __future__ import annotations

import ast
import functools
import itertools
import re
from collections.abc import Iterator, Mapping

from i18n import Language
from tests.docs.tables import table, told
from tests.guards.sources import python, tree

HEADINGS = {
    Language.EN: ("error of a bot that stopped", "what to do"),
    Language.ZH: ("已停止的机器人的错误", "处理办法"),
}


@functools.cache
def stops(channel: str) -> list[str]:
    """Return the texts, in the order of the modules; what is filled in is shown as dots."""
    place = re.compile(rf"bridges/(text/)?{channel}(_\w+)?(/|\.py$)")
    found = [text for name, source in python("bridges").items() if place.match(name) for text in _texts(tree(source))]
    return list(dict.fromkeys(found))


def _texts(module: ast.Module) -> Iterator[str]:
    fixed = {ast.unparse(each.target): each.value for each in module.body if isinstance(each, ast.AnnAssign)}
    for node in ast.walk(module):
        given = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.Tuple) else []
        for why, text in itertools.pairwise(given):
            if ast.unparse(why).startswith("Stop."):
                yield _read(text, fixed)


def _read(text: ast.expr, fixed: Mapping[str, ast.expr | None]) -> str:
    match text:
        case ast.Constant(str(value)):
            return value
        case ast.JoinedStr(parts):
            return "".join(_read(part, fixed) for part in parts)
        case ast.FormattedValue(inner):
            return _read(inner, fixed)
        case ast.Name(name) if (meant := fixed.get(name)) is not None:
            return _read(meant, fixed)
        case _:
            return "…"


def section(channel: str, language: Language) -> str:
    words = told("stops")
    return table(
        HEADINGS[language], [[f"`{text}`", words[f"{channel}.{text}"][language][0]] for text in stops(channel)]
    )
