"""Both languages say the same things, and every text is used."""

from __future__ import annotations

import re
import string
import tomllib

import pytest

from i18n import Key, Language, Words
from tests.guards.sources import python, texts

CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]")


def catalog(language: Language) -> dict[str, str]:
    tables: dict[str, dict[str, str]] = tomllib.loads(texts()[f"i18n/{language}.toml"])
    return {f"{table}.{entry}": text for table, entries in tables.items() for entry, text in entries.items()}


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", Language)
def test_keys_and_texts_are_the_same_set(language: Language) -> None:
    assert set(catalog(language)) == set(Key)


@pytest.mark.parametrize("language", Language)
def test_no_text_is_empty_or_has_outer_blanks(language: Language) -> None:
    assert not {key for key, text in catalog(language).items() if not text or text != text.strip()}


def test_both_languages_fill_the_same_placeholders() -> None:
    chinese, english = catalog(Language.ZH), catalog(Language.EN)
    assert not {key for key in Key if placeholders(chinese[key]) != placeholders(english[key])}


@pytest.mark.parametrize("language", Language)
def test_placeholders_are_plain_names(language: Language) -> None:
    assert all(name.isidentifier() for text in catalog(language).values() for name in placeholders(text))


def test_english_has_no_chinese_characters_or_punctuation() -> None:
    assert not {key for key, text in catalog(Language.EN).items() if CJK.search(text)}


@pytest.mark.parametrize("language", Language)
def test_no_two_texts_are_alike(language: Language) -> None:
    texts = list(catalog(language).values())
    assert not {text for text in texts if texts.count(text) > 1}


def test_every_key_is_used() -> None:
    sources = "\n".join(python("bridges", "commands").values())
    assert not {key.name for key in Key if not re.search(rf"\bKey\.{key.name}\b", sources)}


def test_the_fixed_chinese_phrases_are_verbatim() -> None:
    say = Words(Language.ZH)
    assert say(Key.HISTORY_HEADER, label="abc123", count=3) == "会话历史｜会话 abc123｜最近 3 条"
    assert say(Key.HISTORY_FOOTER) == "以上为历史记录，不是本次新回复。"
    assert say(Key.HISTORY_RUNNING) == "当前任务仍在进行中"
    assert say(Key.HISTORY_PRIVATE_ONLY) == "请在与机器人的私聊中使用 /history"
    assert say(Key.HISTORY_EMPTY) == "当前会话暂无可预览的历史消息"
    assert say(Key.HISTORY_NO_TEXT) == "本条没有可预览的文字"
    assert [say(key) for key in (Key.HISTORY_USER, Key.HISTORY_ASSISTANT)] == ["用户", "助手"]
    assert [say(key) for key in (Key.HISTORY_IMAGE, Key.HISTORY_FILE)] == ["[图片]", "[文件]"]
    assert say(Key.HISTORY_TRUNCATED) == "（已截断）"
    assert say(Key.SESSION_TRY_HISTORY) == "发送 /history 查看最近对话"


def test_the_fixed_english_phrases_are_verbatim() -> None:
    say = Words(Language.EN)
    assert say(Key.HISTORY_HEADER, label="abc123", count=3) == "History | Session abc123 | Latest 3"
    assert say(Key.HISTORY_FOOTER) == "This is history, not a new reply."
    assert say(Key.HISTORY_RUNNING) == "A task is still running"
    assert say(Key.HISTORY_PRIVATE_ONLY) == "Use /history in a private chat with the bot"
    assert say(Key.HISTORY_EMPTY) == "No messages to preview in this session yet"
    assert say(Key.HISTORY_NO_TEXT) == "No text to preview in this message"
    assert [say(key) for key in (Key.HISTORY_USER, Key.HISTORY_ASSISTANT)] == ["User", "Assistant"]
    assert [say(key) for key in (Key.HISTORY_IMAGE, Key.HISTORY_FILE)] == ["[image]", "[file]"]
    assert say(Key.HISTORY_TRUNCATED) == "(truncated)"


def test_values_are_never_read_as_templates() -> None:
    assert "{count}" in Words(Language.EN)(Key.HISTORY_HEADER, label="{count}", count=3)


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        Words(Language.EN)(Key.HISTORY_HEADER, label="abc123")


@pytest.mark.parametrize(
    ("tag", "language"),
    [
        ("en", Language.EN), ("EN", Language.EN), ("en-US", Language.EN), ("en_GB.UTF-8", Language.EN),
        ("English", Language.EN), ("zh", Language.ZH), ("zh-Hant", Language.ZH), ("", Language.ZH),
        ("enx", Language.ZH), ("fr", Language.ZH),
    ],
)  # fmt: skip
def test_language_of_a_tag(tag: str, language: Language) -> None:
    assert Language.of(tag) is language
