"""Recognition against an oracle that knows no regular expression and no strip: a machine that reads char by char."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from commands.recognise import NotOurs, Recognised, recognise

KNOWN = {"history": "history", "new": "new", "ws": "workspace"}
BOT = "ThisBot"

BLANK = {
    " ",
    "\t",
    "\n",
    "\r",
    "\v",
    "\f",
    "\x85",
    "\xa0",
    "\u1680",
    "\u2028",
    "\u2029",
    "\u202f",
    "\u205f",
    "\u3000",
    "\ufeff",
}
BLANK |= {chr(code) for code in range(0x2000, 0x200B)}
GHOST = {chr(code) for code in (*range(0x200B, 0x2010), 0x2060, *range(0x2066, 0x206A), *range(0x202A, 0x202F), 0xFEFF)}
GLUE = set("。.!！?？…")
ASCII = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
NAME = ASCII | set("0123456789_")


def oracle(text: str) -> object:
    chars = list(text)
    while chars and chars[0] in BLANK | GHOST:
        chars.pop(0)
    while chars and chars[-1] in BLANK | GHOST:
        chars.pop()
    if not chars or chars.pop(0) not in {"/", "／"}:
        return None
    name = take(chars, ASCII)
    bot = ""
    if len(chars) > 1 and chars[0] == "@" and chars[1] in NAME:
        chars.pop(0)
        bot = take(chars, NAME)
    glue = take(chars, GLUE)
    gap = take(chars, BLANK | GHOST)
    if name.lower() not in KNOWN or (chars and not set(gap) & BLANK):
        return None
    if bot and bot.lower() != BOT.lower():
        return NotOurs()
    return Recognised(KNOWN[name.lower()], "".join(chars), glued=glue != "")


def take(chars: list[str], wanted: set[str]) -> str:
    taken = ""
    while chars and chars[0] in wanted:
        taken += chars.pop(0)
    return taken


EDGES = st.text(st.sampled_from(sorted(BLANK | GHOST)), max_size=3)
PIECES = st.one_of(
    EDGES,
    st.sampled_from(["/", "／", "history", "HiStOrY", "new", "ws", "hiſtory", "unheard", "3"]),
    st.sampled_from(["@ThisBot", "@thisbot", "@Other", "@"]),
    st.text(st.sampled_from(sorted(GLUE)), min_size=1, max_size=2),
    st.text(max_size=3),
)
LIKELY = st.tuples(
    EDGES, st.sampled_from("/／"), st.sampled_from(["history", "NEW", "Ws", "hello"]), st.lists(PIECES, max_size=5)
)


@given(LIKELY.map(lambda parts: "".join((*parts[:3], *parts[3]))))
@example("/history@ThisBot? 5")
@example("/history\u200b\u200b")
def test_what_looks_like_a_command(text: str) -> None:
    assert recognise(text, KNOWN, bot=BOT) == oracle(text)


@given(st.lists(PIECES, max_size=8).map("".join))
def test_any_text(text: str) -> None:
    assert recognise(text, KNOWN, bot=BOT) == oracle(text)


@given(st.text())
def test_without_a_bots_name_an_address_is_ordinary_text(rest: str) -> None:
    assert recognise(f"/history@x{rest}", KNOWN) is None or not rest.isascii()
