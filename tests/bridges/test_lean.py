"""What a library loads in vain is not loaded, and is there again afterwards for whoever needs it."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bridges.lean import import_without


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "lean_heavy.py").write_text("weight = 8\n")
    (tmp_path / "lean_eager.py").write_text("try:\n    import lean_heavy\nexcept ImportError:\n    lean_heavy = None\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("lean_heavy", "lean_eager"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "lean_eager"


def test_the_unwanted_is_left_out_once(package: str) -> None:
    import_without("lean_heavy", package)
    assert sys.modules[package].__dict__["lean_heavy"] is None
    assert __import__("lean_heavy").weight == 8


def test_what_is_there_already_stays(package: str) -> None:
    heavy = __import__("lean_heavy")
    import_without("lean_heavy", package)
    assert sys.modules[package].__dict__["lean_heavy"] is heavy


def test_a_library_that_is_not_there_is_told_and_nothing_stays_hidden(package: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        import_without("lean_heavy", "no_such_library")
    assert "lean_heavy" not in sys.modules


def test_many_threads_may_want_the_same(package: str) -> None:
    failures: list[BaseException] = []

    def load() -> None:
        try:
            import_without("lean_heavy", package)
        except ImportError as error:
            failures.append(error)

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert "lean_heavy" not in sys.modules


def test_telegram_is_whole_without_its_passports() -> None:
    code = (
        "from bridges.lean import import_without\n"
        "import_without('cryptography.hazmat.backends', 'telegram')\n"
        "import sys, telegram\n"
        "from bridges.text import telegram_api\n"
        "from cryptography.hazmat.primitives.ciphers import Cipher\n"
        "print(telegram.Bot is not None, 'cryptography.hazmat.backends' in sys.modules)\n"
    )
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)  # noqa: S603 - our own
    assert said.stdout.split() == ["True", "False"]
