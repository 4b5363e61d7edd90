"""The recognition table (spec HISTORY 1)."""

from __future__ import annotations

import pytest

from commands.catalog import COMMANDS, KNOWN, refusal
from commands.count import parse_count
from commands.model import AttachmentKind, ChatKind
from commands.recognise import ANY_BOT, NotOurs, Recognised, recognise
from i18n import Key

HISTORY = Recognised("history")


@pytest.mark.parametrize(
    "text", ["/history", " /HiStOrY ", "\t/HISTORY\r\n", "／history", "\ufeff/history\u2028", "\u3000/history\xa0"]
)
def test_the_bare_command(text: str) -> None:
    assert recognise(text, KNOWN) == HISTORY


@pytest.mark.parametrize(
    "blank", [" ", "\t", "\n", "\r\n", "\xa0", "\u3000", "\u2028", "\u2029", "\ufeff", "  \u200b \u2060"]
)
def test_separators(blank: str) -> None:
    assert recognise(f"{blank}/history{blank}4{blank}", KNOWN) == Recognised("history", "4")


@pytest.mark.parametrize(
    "mark", [*map(chr, [*range(0x200B, 0x2010), 0x2060, *range(0x2066, 0x206A), *range(0x202A, 0x202F)])]
)
def test_invisible_characters_around_are_ignored_and_separate_nothing(mark: str) -> None:
    assert recognise(f"{mark}/history{mark} {mark}4{mark}", KNOWN) == Recognised("history", "4")
    assert recognise(f"/history{mark}4", KNOWN) is None
    assert recognise(f"/his{mark}tory", KNOWN) is None


@pytest.mark.parametrize("glue", ["。", ".", "!", "！", "?", "？", "…", "？！…"])
def test_glued_punctuation_is_a_typo(glue: str) -> None:
    assert recognise(f"/history{glue}", KNOWN) == Recognised("history", "", glued=True)
    assert recognise(f"/new{glue} please", KNOWN) == Recognised("new", "please", glued=True)
    assert recognise(f"/history{glue}3", KNOWN) is None


ORDINARY = (
    *("", " ", "/", "history", "hi /history", "//history", "/ history", "\\history", "/unheard"),
    *("/history2", "/histories", "/history-1", "/history:3", "/history,", "/historyé", "/hiſtory", "/history\u0301"),
    *("/history@", "/history@bot"),
)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text(text: str) -> None:
    assert recognise(text, KNOWN) is None


def test_letters_are_folded_in_ascii_only() -> None:
    assert recognise("/\u212aelvin", {"kelvin": "kelvin"}) is None


@pytest.mark.parametrize("text", ["/history@ThisBot", "/HISTORY@thisbot", "/history@THISBOT "])
def test_addressed_to_this_bot(text: str) -> None:
    assert recognise(text, KNOWN, bot="ThisBot") == HISTORY
    assert recognise(text + " 5", KNOWN, bot="ThisBot") == Recognised("history", "5")
    assert recognise(text, KNOWN, bot=ANY_BOT) == HISTORY


def test_addressed_to_another_bot() -> None:
    assert recognise("/history@OtherBot 5", KNOWN, bot="ThisBot") == NotOurs()
    assert recognise("/history@OtherBot!", KNOWN, bot="ThisBot") == NotOurs()
    assert recognise("/history@ThisBot?", KNOWN, bot="ThisBot") == Recognised("history", "", glued=True)
    assert recognise("/unheard@OtherBot", KNOWN, bot="ThisBot") is None
    assert recognise("/history@Other-Bot", KNOWN, bot="ThisBot") is None


@pytest.mark.parametrize("name", KNOWN)
def test_every_name_and_alias_is_recognised(name: str) -> None:
    assert recognise(f"／{name.upper()} x", KNOWN) == Recognised(KNOWN[name], "x")


COUNTS = {"": 3, "1": 1, "5": 5, "6": 5, "10": 5, "0003": 3, "9" * 5_000: 5, "0" * 5_000 + "2": 2}
NO_COUNTS = dict.fromkeys(("0", "000", "-1", "+3", "1.5", "1e3", "1_0", "1,0", "３", "٣", "²", "三", "x", "1 2"))


@pytest.mark.parametrize(("argument", "count"), (COUNTS | NO_COUNTS).items())
def test_counts(argument: str, count: int | None) -> None:
    assert parse_count(argument) == count


ALL = frozenset(AttachmentKind)


@pytest.mark.parametrize(
    ("recognised", "kind", "attachments", "notice"),
    [
        (Recognised("history", "0"), ChatKind.GROUP, ALL, Key.HISTORY_PRIVATE_ONLY),
        (Recognised("history", "3", glued=True), ChatKind.GROUP, ALL, Key.HISTORY_PRIVATE_ONLY),
        (Recognised("history", "0"), ChatKind.DIRECT, ALL, Key.HISTORY_USAGE),
        (Recognised("history", "3", glued=True), ChatKind.DIRECT, frozenset(), Key.HISTORY_USAGE),
        (Recognised("history", "3"), ChatKind.DIRECT, ALL, Key.CHAT_TEXT_ONLY),
        (Recognised("history", "3"), ChatKind.DIRECT, frozenset(), None),
        (Recognised("new", ""), ChatKind.GROUP, frozenset(), None),
        (Recognised("new", "x"), ChatKind.GROUP, frozenset(), Key.NEW_USAGE),
        (Recognised("help", "x"), ChatKind.DIRECT, frozenset(), Key.HELP_USAGE),
        (Recognised("session", "x"), ChatKind.DIRECT, ALL, Key.CHAT_TEXT_ONLY),
    ],
)
def test_the_order_of_refusals(
    recognised: Recognised, kind: ChatKind, attachments: frozenset[AttachmentKind], notice: Key | None
) -> None:
    assert refusal(recognised, kind, attachments) == notice


def test_names_and_aliases_are_unique_and_lower_case() -> None:
    names = [name for row in COMMANDS.values() for name in (row.name, *row.aliases)]
    assert len(set(names)) == len(names)
    assert all(name.isascii() and name.isalpha() and name.islower() for name in names)
