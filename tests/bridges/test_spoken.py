"""The language of the program's words where no configuration says one: an option's, else that of the locale."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from bridges.cli import main
from i18n import Key, Language, Words

LOCALES = {Language.EN: "en_GB.UTF-8", Language.ZH: "zh_CN.UTF-8"}
CHOOSING = ("smoke --simulated", "chat", "login weixin", "whatsapp setup", "history search x")
"""Those with an option for it."""
COMMANDS = (*CHOOSING, "run", "bots", "sessions", "pair list", "reload", "health", "doctor")


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    file = tmp_path / "config.toml"
    file.write_text('[state]\npath = "state.db"\n[metrics]\nlisten = "example.org:9464"\n')
    return file


def said(words: str, file: Path, locale: Language, *options: str) -> str:
    env = {"LC_ALL": "", "LANG": LOCALES[locale]}
    return CliRunner().invoke(main, [*words.split(), "--config", str(file), *options], env=env).output


def refusal(language: Language) -> str:
    return Words(language)(Key.CONFIG_NOT_LOOPBACK, path="metrics.listen")


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_configuration_is_told_in_the_language_of_the_locale(
    command: str, language: Language, wrong: Path
) -> None:
    assert refusal(language) in said(command, wrong, language)


@pytest.mark.parametrize("language", Language)
@pytest.mark.parametrize("command", CHOOSING)
def test_an_option_has_the_last_word(command: str, language: Language, wrong: Path) -> None:
    (other,) = set(Language) - {language}
    assert refusal(language) in said(command, wrong, other, "--language", language.value)
