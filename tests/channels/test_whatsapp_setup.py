"""``harness-im whatsapp setup``: what it asks, installs, shows and returns. Node and npm are stand-ins."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bridges.cli import main
from i18n import Key, Language, Words

EN = Words(Language.EN)

_NODE = """#!{python} -IS
import pathlib, sys
folder = pathlib.Path(sys.argv[3])
lines = {lines!r}
login = folder / "login"
sys.stdout.write(lines[1 if not login.exists() and len(lines) > 1 else 0])
sys.stdout.flush()
sys.stdin.read()
"""
_NPM = """#!{python} -IS
import json, pathlib, sys
words = sys.argv[1:]
pathlib.Path({record!r}).write_text(json.dumps(words))
if {fails}:
    sys.exit(7)
package = pathlib.Path(words[words.index("--prefix") + 1], "node_modules", "baileys")
package.mkdir(parents=True)
package.joinpath("package.json").write_text(json.dumps({{"version": "7.0.0-rc14"}}))
"""

OPEN = '{"type": "open", "ids": []}\n'
QR = '{"type": "qr", "text": "2@code"}\n'


class Machine:
    """A machine with a configuration, and with Node and npm as a case wants them."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.record = folder / "npm.json"
        self.config = folder / "config.toml"
        self.bots('[[bot]]\nname = "me"\nchannel = "whatsapp"\ntransport = "linked"\n')
        self.npm(fails=False)
        self.node(QR + OPEN)
        patch.setenv("PATH", str(self.bin))

    @property
    def home(self) -> Path:
        return self.folder / "whatsapp"

    def bots(self, tables: str) -> None:
        self.config.write_text(f'language = "en"\n[state]\npath = "{self.folder}/state.db"\n{tables}')

    def node(self, *lines: str) -> None:
        """Let Node say these lines; a second set is what it says once there is no login any more."""
        self._program("node", _NODE.format(python=sys.executable, lines=lines))

    def npm(self, *, fails: bool) -> None:
        self._program("npm", _NPM.format(python=sys.executable, record=str(self.record), fails=fails))

    def _program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o700)

    def setup(self, *words: str, typed: str = "") -> Result:
        return CliRunner().invoke(main, ["whatsapp", "setup", "--config", str(self.config), *words], input=typed)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_the_package_is_installed_once_without_its_scripts_and_the_code_is_shown(machine: Machine) -> None:
    done = machine.setup("--yes")
    assert done.exit_code == 0, done.output
    for said in (EN(Key.WHATSAPP_RISK), EN(Key.WHATSAPP_SCAN), "me is linked"):
        assert said in done.output
    words = json.loads(machine.record.read_text())
    assert {"--ignore-scripts", "baileys@7.0.0-rc14"} <= set(words)
    assert [each.name for each in machine.home.iterdir() if each.name.startswith("installing")] == []
    assert (machine.home / "devices" / "me").stat().st_mode & 0o777 == 0o700
    machine.record.unlink()
    assert machine.setup("--yes").exit_code == 0
    assert not machine.record.exists()


def test_without_the_library_the_text_of_the_code_is_shown(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "segno", None)
    assert EN(Key.WHATSAPP_NO_QR, text="2@code") in machine.setup("--yes").output


def test_nothing_is_done_before_the_risk_is_taken(machine: Machine) -> None:
    for typed, code in (("n\n", 1), ("", 130)):
        done = machine.setup(typed=typed)
        assert done.exit_code == code
        assert EN(Key.WHATSAPP_RISK) in done.output
    assert not machine.home.exists()
    assert machine.setup(typed="y\n").exit_code == 0


def test_a_login_that_was_unlinked_is_replaced(machine: Machine) -> None:
    login = machine.home / "devices" / "me" / "login"
    login.mkdir(parents=True)
    machine.node('{"type": "closed", "code": 401}\n', QR + OPEN)
    assert machine.setup("--yes").exit_code == 0
    assert not login.exists()


@pytest.mark.parametrize(
    ("lines", "key"),
    [
        (QR + '{"type": "closed", "code": 408}\n', Key.WHATSAPP_EXPIRED),
        ('{"type": "broken"}\n', Key.WHATSAPP_BROKEN),
        ("no json\n", Key.WHATSAPP_BROKEN),
    ],
)
def test_what_comes_to_nothing_says_why(machine: Machine, lines: str, key: Key) -> None:
    machine.node(lines)
    done = machine.setup("--yes")
    assert done.exit_code == 1
    assert EN(key) in done.output


def test_an_install_that_fails_leaves_nothing_behind(machine: Machine) -> None:
    machine.npm(fails=True)
    done = machine.setup("--yes")
    assert done.exit_code == 1
    assert EN(Key.WHATSAPP_NOT_INSTALLED, reason="npm: 7") in done.output
    assert list(machine.home.iterdir()) == []


@pytest.mark.parametrize(("missing", "key"), [("node", Key.WHATSAPP_NO_NODE), ("npm", Key.WHATSAPP_NOT_INSTALLED)])
def test_without_node_or_npm_it_says_so(machine: Machine, missing: str, key: Key) -> None:
    (machine.bin / missing).unlink()
    done = machine.setup("--yes")
    assert done.exit_code == 1
    assert EN(key, reason="npm") in done.output


def test_exactly_one_linked_bot_is_set_up(machine: Machine) -> None:
    table = '[[bot]]\nname = "{}"\nchannel = "whatsapp"\ntransport = "linked"\n'
    machine.bots(table.format("one") + table.format("two"))
    assert machine.setup("--yes").exit_code == 2
    assert machine.setup("--yes", "--bot", "three").exit_code == 2
    assert machine.setup("--yes", "--bot", "two").exit_code == 0
    assert (machine.home / "devices" / "two").is_dir()
    machine.bots('[[bot]]\nname = "t"\nchannel = "telegram"\ntoken = "fake"\n')
    assert EN(Key.WHATSAPP_WHICH_BOT, count="0") in machine.setup("--yes").output
    machine.bots("[[bot]]\n")
    assert machine.setup("--yes").exit_code == 2
