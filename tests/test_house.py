"""The rules of the house that no linter knows. Layers are import-linter's business (pyproject.toml)."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guards.sources import PACKAGES, ROOT, python, texts, tree

LONGEST_FILE = 400
LISTS = {"i18n/keys.py"}
"""One line an entry and nothing to follow: they are as long as what they list."""
LONGEST_FUNCTION = 50

SUPERVISORS = {
    "bridges/bot.py": "one message's work: whatever escapes it becomes a reply with a reference",
    "bridges/cli/smoking/simulated.py": "one case on a simulated platform: whatever it raises is its verdict",
    "bridges/cli/examination/platforms.py": "one platform looked at: whatever its SDK raises is a finding",
    "bridges/delivery.py": "one send: whatever escapes a channel leaves open whether the message arrived",
    "bridges/feishu/sdk.py": "one bot's link in the process of the SDK: whatever ends it is reported, the others go on",
    "bridges/serve.py": "one bot: its failure never stops another",
    "bridges/state/database.py": "the database's thread: whatever escapes a job is carried to its caller",
    "bridges/supervise.py": "one bot's link: whatever escapes it is backed off from, and shown as its health",
}
"""The only places that may catch everything and go on: each keeps one failure from its neighbours, and reports it."""


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring, which is a contract and may take the room it needs."""
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    match node.body[0]:
        case ast.Expr(ast.Constant(str())) as docstring:
            lines -= (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1
    return lines


def test_files_are_short() -> None:
    counts = {name: text.count("\n") for name, text in python().items() if name not in LISTS}
    long = {name: count for name, count in counts.items() if count > LONGEST_FILE}
    assert not long


def test_functions_are_short() -> None:
    long = {
        f"{name}:{node.lineno} {node.name}": length
        for name, text in python().items()
        for node in ast.walk(tree(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (length := _length(node)) > LONGEST_FUNCTION
    }
    assert not long


def _catches_everything(handler: ast.ExceptHandler) -> bool:
    caught = ast.unparse(handler.type) if handler.type else "BaseException"
    return bool(re.search(r"\b(Base)?Exception\b", caught)) and not isinstance(handler.body[-1], ast.Raise)


def test_only_supervisors_catch_everything() -> None:
    places = {
        f"{name}:{node.lineno}"
        for name, text in python(*PACKAGES).items()
        for node in ast.walk(tree(text))
        if isinstance(node, ast.ExceptHandler) and _catches_everything(node)
    }
    assert {place.split(":")[0] for place in places} <= SUPERVISORS.keys(), places


def _comments(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


_SILENCED = re.compile(r"#\s*(type:\s*ignore|noqa|pragma:\s*no\s*(cover|branch)|pylint:|fmt:\s*off)")
_REASON = re.compile(r"(\[[\w, -]+\]|[A-Z]+\d+|no (cover|branch)|fmt: off)[\s,:;#(-]+[a-z].{3,}", re.IGNORECASE)


def test_every_exception_to_a_check_has_its_reason_beside_it() -> None:
    unexplained = {
        f"{name}:{line} {comment}"
        for name, text in python().items()
        for line, comment in _comments(text)
        if _SILENCED.search(comment) and not _REASON.search(comment)
    }
    assert not unexplained


ABROAD = {
    "a folder of one machine": re.compile(rf"(?<![\w./-])/(root|work|Users)/|{re.escape(str(ROOT))}\b"),
    "a file outside the project": re.compile(r"\.\./(?!\.\./)[a-z]+/(spec|facts|samples|seeds|recipes)\b|\.\./shared"),
    "a ticket": re.compile(r"\b(issue|ticket|pull request)s?\s+(#|no\.?\s*|number\s+)?\d", re.IGNORECASE),
    "how a line was written": re.compile(r"co-authored-by|\bas an? (ai|assistant|language model)\b", re.IGNORECASE),
    "a package registry": re.compile(r"https?://[^\s\"')]*(pypi|pythonhosted|npmjs|registry|debian)", re.IGNORECASE),
}


@pytest.mark.parametrize("what", ABROAD)
def test_the_text_speaks_of_the_product_only(what: str) -> None:
    found = {
        f"{name}: {match.group()}"
        for name, text in texts().items()
        if name != Path(__file__).relative_to(ROOT).as_posix()
        for match in ABROAD[what].finditer(text)
    }
    assert not found
