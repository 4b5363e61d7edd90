"""The chat commands, as the one table of :mod:`commands.catalog` has them."""

from __future__ import annotations

from commands.catalog import COMMANDS
from commands.help import form
from commands.model import Command, Gate
from i18n import Language, Words
from tests.docs.tables import table

HEADINGS = {
    Language.EN: ("command", "what it does", "how to type it", "also", "where"),
    Language.ZH: ("命令", "作用", "用法", "别名", "可用范围"),
}
WHERE = {
    Gate.ANYWHERE: {Language.EN: "anywhere", Language.ZH: "不限"},
    Gate.PRIVATE: {Language.EN: "private chats", Language.ZH: "私聊"},
    Gate.OWNER: {Language.EN: "owners", Language.ZH: "所有者"},
}


def section(language: Language) -> str:
    return table(HEADINGS[language], [_row(each, Words(language), language) for each in COMMANDS.values()])


def _row(command: Command, words: Words, language: Language) -> list[str]:
    also = ", ".join(f"`/{alias}`" for alias in command.aliases)
    usage = words(command.usage).partition(":" if language is Language.EN else "：")[2]
    return [f"`{form(command, words)}`", words(command.summary), usage, also, WHERE[command.gate][language]]
