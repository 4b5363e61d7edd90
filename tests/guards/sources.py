"""The project's own files, for the tests that read them."""

from __future__ import annotations

import ast
import functools
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("archive", "bridges", "commands", "harness_client", "i18n")

_NOT_OURS = {".git", ".venv", ".hypothesis", ".import_linter_cache", ".mypy_cache", ".pytest_cache", ".ruff_cache",
             "__pycache__", "build", "dist", "harness_im.egg-info", "node_modules"}  # fmt: skip


@functools.cache
def texts() -> dict[str, str]:
    """Every text file of the project by its path from the root; files that are not UTF-8 are left out."""
    found: dict[str, str] = {}
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(set(folders) - _NOT_OURS)
        for path in (Path(folder, name) for name in sorted(names) if not name.startswith(".coverage")):
            try:
                found[path.relative_to(ROOT).as_posix()] = path.read_text("utf-8")
            except UnicodeDecodeError:
                continue
    return found


def python(*packages: str) -> dict[str, str]:
    """Return the Python files of ``packages`` (none: of the whole project)."""
    return {
        name: text
        for name, text in texts().items()
        if name.endswith(".py") and (not packages or name.split("/")[0] in packages)
    }


def tree(text: str) -> ast.Module:
    """Parse source; once more where the interpreter lost count of its own depth, a known fault of CPython 3.11."""
    try:
        return ast.parse(text)
    except SystemError:
        return ast.parse(text)
