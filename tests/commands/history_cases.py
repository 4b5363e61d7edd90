"""What ``/history`` answers to logs of every kind, as data: pages of a host, what a person types, what is shown."""

from __future__ import annotations

from dataclasses import dataclass, field

from commands.marks import Quote, wrap
from i18n import Key
from tests.commands.rig import SECRET
from tests.wire_events import Obj, assistant, dialogue, end, other, start, text, user

Pages = tuple[tuple[list[Obj], bool], ...]
"""Newest first: events, and whether the host has more."""

OLD_END = other(3, "turn/end", turn=1, reason="completed")
REASONING: Obj = {"type": "reasoning", "text": SECRET}
TOOL_CALL: Obj = {"type": "tool-call", "id": "c1", "name": "bash", "arguments": SECRET}
IMAGE: Obj = {"type": "image", "attachment": {"attachmentId": f"sha256:{SECRET}", "name": SECRET}}
FILE: Obj = {"type": "file", "attachment": {"attachmentId": SECRET, "name": SECRET}}


@dataclass(frozen=True)
class Case:
    """``shown`` are the bodies in order, or the one Key that is the whole reply; ``cursors`` the reads made."""

    name: str
    pages: Pages
    typed: str
    shown: list[str] | Key
    cursors: list[int | None] = field(default_factory=lambda: [None])


def one(*events: Obj) -> Pages:
    return ((list(events), False),)


STORED = one(
    user(1, "/history old"),
    *(event for event in dialogue(3)),
    user(33, "/history"),
    user(34, "/history 10"),
    user(40, " /HiStOrY 3 "),
)
ONLY_COMMANDS = one(user(1, "/history"), user(2, "/history 10"), user(3, " /HISTORY 5 "))
COMMAND_PAGES: Pages = (
    ([user(60, "/history"), user(61, "/history 10"), user(62, "/history 3")], True),
    ([user(50, "u3"), user(51, "u4"), user(52, "u5"), user(53, "u6"), user(54, "/history 2")], True),
    ([user(10, "u1"), user(11, "u2"), user(12, "/history 10")], False),
)
FIVE_USERS = ["u2", "u3", "u4", "u5", "u6"]
OTHER_COMMANDS = one(
    user(1, "u1"),
    user(2, "/history@SomeBot 5"),
    user(3, "/history", IMAGE),
    user(4, "/history", "3"),
    user(5, "\u200b／HISTORY。"),
)
UNREACHED: Pages = tuple(([user(n, "/history")], True) for n in (9, 8, 7))
EVERYTHING_HIDDEN = one(
    user(1, "u1"),
    user(2, SECRET, source={"kind": "plugin", "plugin": "compact"}),
    user(3, SECRET, source={"kind": "goal", "goalId": "g"}),
    assistant(4, 1, SECRET),
    user(5, SECRET, source=...),
    user(6, SECRET, surfaceOp=...),
    user(7, SECRET, surfaceOp={"op": "replace", "startSeq": 1, "endSeq": 4}),
    user(8, SECRET, surfaceOp="replace"),
    assistant(9, 1, SECRET, surfaceOp={"op": "replace", "startSeq": 1, "endSeq": 4}),
    other(10, "tool/call", turn=1, step=1, callId="c1", name="bash", arguments=SECRET),
    other(11, "tool/result", turn=1, step=1, message={"source": {"callId": "c1"}, "content": [text(SECRET)]}),
    other(12, "assistant/chunk", turn=1, step=1, chunk={"type": "text-delta", "index": 0, "text": SECRET}),
    assistant(13, 1, REASONING, "a1", TOOL_CALL, step=2),
    end(14, 1),
    other(15, "approval/asked", id="p1", toolName=SECRET),
)
RUNNING = one(
    *dialogue(1),
    start(19, 2),
    user(20, "u2"),
    assistant(21, 2, SECRET),
    other(22, "assistant/chunk", turn=2, step=2, chunk={"type": "text-delta", "index": 0, "text": SECRET}),
)
CUT_SHORT = one(user(1, "u1"), assistant(2, 1, SECRET), assistant(3, 1, SECRET, step=2, interrupted=True), end(4, 1))
NO_TEXT = one(user(1, "u1"), assistant(2, 1, SECRET), assistant(3, 1, REASONING, step=2), end(4, 1))
D2 = dialogue(2)
SHUFFLED = one(D2[4], D2[0], D2[5], D2[2], D2[1], D2[0], D2[3])
SPLIT_TURN: Pages = (
    ([end(32, 3)], True),
    ([user(20, "u2"), assistant(21, 2, "a2"), end(22, 2), user(30, "u3"), assistant(31, 3, "a3")], True),
)
LONG_TURN: Pages = (
    ([assistant(90, 1, "a1", step=50), end(91, 1), user(100, "u2"), assistant(101, 2, SECRET)], True),
    ([assistant(60, 1, SECRET), assistant(70, 1, SECRET)], True),
    ([user(1, "u1"), assistant(2, 1, SECRET)], False),
)
ENDLESS: Pages = (([user(99, "u99")], True), ([user(98, "u98")], True), ([user(97, "u97")], True))
LATE: Pages = (([user(50, "u2")], True), ([user(40, "u1"), user(60, SECRET)], False))
LATE_END: Pages = (
    ([user(50, "u2"), assistant(51, 2, SECRET)], True),
    ([user(40, "u1"), end(60, 2)], False),
)
FORK = one(
    start(1, 1), user(2, "u1"), assistant(3, 1, "a1"), end(4, 1),
    start(5, 1), user(6, "u1'"), assistant(7, 1, SECRET), end(8, 1, "forked"),
    start(9, 1), user(10, "u1''"), assistant(11, 1, "a1''"), end(12, 1),
)  # fmt: skip
STEERED = one(
    start(1, 1), user(2, "u1"), assistant(3, 1, SECRET), user(4, "steer"), assistant(5, 1, "a1", step=2), end(6, 1)
)
INTERLEAVED = one(
    start(1, 1),
    user(2, "u1"),
    start(3, 2),
    user(4, "u2"),
    assistant(5, 1, "a1"),
    assistant(6, 2, "a2"),
    end(7, 2),
    end(8, 1),
)
NOTHING_TO_SEE = one(
    user(1, ""), user(2), user(3, " \n\u200b\ufeff"), user(4, "\x1b[0m", "\x00"), user(5, {"type": "video"})
)
UNCLEAN = one(user(1, "\r\n\n  \x1b[31mred\x1b[0m\r\nb\u202ec", "", "\ud83d!\u2028 "))
MARKED = one(
    user(1, wrap(["see this"], quote=Quote("Eve", SECRET), files=[SECRET]), FILE),
    user(2, wrap(["/history 5"], files=[SECRET])),
    user(3, wrap(["first", "second\nline"])),
)
SAME_TEXT = one(user(1, "same"), user(2, "same"), user(3, "same"))
USAGES = ["0", "000", "-1", "+3", "1.5", "1e3", "1_000", "1,000", "no", "1 2", "3\n4", "３", "٣", "²", "三"]
REASONS = ["error", "aborted", "blocked", "max-tokens", "interrupted", "forked", "unheard-of"]
DIALOGUE = one(*dialogue(4))
LAST = ["u2", "a2", "u3", "a3", "u4", "a4"]

CASES = [
    Case("the newest three by default", DIALOGUE, "/history", ["a3", "u4", "a4"]),
    *(Case(f"the newest {n}", DIALOGUE, f"/history {n}", LAST[-n:]) for n in range(1, 6)),
    *(Case("never more than five", DIALOGUE, f"/history {n}", LAST[-5:]) for n in ("6", "100", "9" * 400, "9" * 5_000)),
    Case("leading zeros", DIALOGUE, "/history 0003", ["a3", "u4", "a4"]),
    Case("full-width slash", DIALOGUE, "／history 4", LAST[-4:]),
    *(Case(f"no count: {bad!r}", DIALOGUE, f"/history {bad}", Key.HISTORY_USAGE, []) for bad in USAGES),
    *(Case(f"glued: {c}", DIALOGUE, f"/history{c}", Key.HISTORY_USAGE, []) for c in ("。", "!", "？？", "… 3")),
    Case("stored commands do not count", STORED, "/history", ["a2", "u3", "a3"]),
    Case("stored commands do not count, five", STORED, "/history 10", ["a1", "u2", "a2", "u3", "a3"]),
    Case(
        "a mention of the command is text",
        one(user(1, "/history2"), user(2, "解释一下 /history 命令"), user(3, "文档里的 /history 10")),
        "/history",
        ["/history2", "解释一下 /history 命令", "文档里的 /history 10"],
    ),
    Case(
        "a stored command to another bot, with an image, in several blocks",
        OTHER_COMMANDS,
        "/history 5",
        ["u1"],
    ),
    Case("commands make it page on", COMMAND_PAGES, "/history", ["u4", "u5", "u6"], [None, 60]),
    Case("commands make it page on, five", COMMAND_PAGES, "/history 10", FIVE_USERS, [None, 60, 50]),
    Case("only commands", ONLY_COMMANDS, "/history", Key.HISTORY_EMPTY),
    Case("an empty session", one(), "/history", Key.HISTORY_EMPTY),
    Case("fewer than asked for", one(user(1, "u1")), "/history 5", ["u1"]),
    Case("completed", one(user(1, "u1"), assistant(2, 1, "a1"), end(3, 1)), "/history", ["u1", "a1"]),
    Case("completed, on old hosts", one(user(1, "u1"), assistant(2, 1, "a1"), OLD_END), "/history", ["u1", "a1"]),
    Case("what nobody may see", EVERYTHING_HIDDEN, "/history 5", ["u1", "a1"]),
    Case("a running turn", RUNNING, "/history", ["u1", "a1", "u2"]),
    *(
        Case(f"ended {reason}", one(user(1, "u1"), assistant(2, 1, SECRET), ended), "/history", ["u1"])
        for reason in REASONS
        for ended in (end(3, 1, reason), other(3, "turn/end", turn=1, reason=reason))
    ),
    Case("no reason", one(user(1, "u1"), assistant(2, 1, SECRET), other(3, "turn/end", turn=1)), "/history", ["u1"]),
    Case("the last message was cut short", CUT_SHORT, "/history", ["u1"]),
    Case("the last message has no text", NO_TEXT, "/history 1", ["本条没有可预览的文字"]),
    Case("images and files", one(user(1, "u1", IMAGE, "more", FILE)), "/history", ["u1\n[图片]\nmore\n[文件]"]),
    Case("shuffled, one event twice", SHUFFLED, "/history 5", ["u1", "a1", "u2", "a2"]),
    Case("a turn's end on a newer page", SPLIT_TURN, "/history", ["a2", "u3", "a3"], [None, 32]),
    Case("a long turn over pages, one", LONG_TURN, "/history 1", ["u2"]),
    Case("a long turn over pages, three", LONG_TURN, "/history 3", ["u1", "a1", "u2"], [None, 90, 60]),
    Case("a long turn over pages, five", LONG_TURN, "/history 5", ["u1", "a1", "u2"], [None, 90, 60]),
    Case("three pages at most", ENDLESS, "/history 5", ["u97", "u98", "u99"], [None, 99, 98]),
    Case("newer than the snapshot", LATE, "/history 5", ["u1", "u2"], [None, 50]),
    Case("an end after the snapshot completes nothing", LATE_END, "/history 5", ["u1", "u2"], [None, 50]),
    Case("turn numbers repeat in a fork", FORK, "/history 5", ["u1", "a1", "u1'", "u1''", "a1''"]),
    Case("steered", STEERED, "/history 5", ["u1", "steer", "a1"]),
    Case("turns interleaved", INTERLEAVED, "/history 5", ["u1", "u2", "a1", "a2"]),
    Case("nothing to see in a message", NOTHING_TO_SEE, "/history 5", ["本条没有可预览的文字"] * 5),
    Case("unclean text", UNCLEAN, "/history", ["  red\nbc\n\ufffd!"]),
    Case("what our own bridge added", MARKED, "/history", ["see this\n[文件]", "first\nsecond\nline"]),
    Case("equal texts are different messages", SAME_TEXT, "/history", ["same", "same", "same"]),
    Case("nothing to see though there is more", UNREACHED, "/history", Key.HISTORY_NOT_REACHED, [None, 9, 8]),
]

U50 = [user(50, "u1")]
BROKEN: dict[str, Pages] = {
    "one seq, two events": (([user(1, "u1"), user(1, SECRET)], False),),
    "one seq, true and 1": (([other(1, x=True), other(1, x=1)], False),),
    "one seq, 1.0 and 1": (([other(1, x=1.0), other(1, x=1)], False),),
    **{f"seq {bad!r}": (([user(bad, SECRET)], False),) for bad in (-1, 1.5, "1", True, None, 2**53, 1.0)},
    "no seq": (([{"type": "user/message"}], False),),
    "no type": (([{"seq": 1}], False),),
    "type is no string": (([{"type": 7, "seq": 1}], False),),
    "the same seq again, other content": ((U50, True), ([user(50, SECRET)], True)),
    "the cursor goes forward": ((U50, True), ([user(51, SECRET)], True)),
    "the cursor stands still": ((U50, True), (U50, True)),
    "the cursor stands still on the last page": ((U50, True), ([user(49, "u0")], True), ([user(49, "u0")], True)),
    "more to come of nothing": (([], True),),
    "more to come of nothing, later": ((U50, True), ([], True)),
    "content is no list": (([user(1, content=SECRET)], False),),
    "a block is no object": (([user(1, content=[SECRET])], False),),
    "text is no string": (([user(1, {"type": "text", "text": 5})], False),),
    "a block without type": (([user(1, {"text": SECRET})], False),),
    "a completed answer without content": (([assistant(1, 1, message={"content": None}), end(2, 1)], False),),
    "a completed answer, interrupted is no boolean": (([assistant(1, 1, SECRET, interrupted="no"), end(2, 1)], False),),
    "an answer without a turn": (([assistant(1, 1, "a1"), assistant(2, None, SECRET), end(3, 1)], False),),
}
"""Pages that no answer may be made of."""

HARMLESS: dict[str, Pages] = {
    "an injected message": one(user(1, content=SECRET, source={"kind": "plugin"}), user(5, "u1")),
    "a message without source": one(user(1, content=SECRET, source=...), user(5, "u1")),
    "a replacement": one(user(1, content=SECRET, surfaceOp={"op": "replace"}), user(5, "u1")),
    "data that is no object": one(user(1, data=SECRET), user(5, "u1")),
    "an earlier step": one(user(1, "u1"), assistant(2, 1, message=None), assistant(3, 1, "a1"), end(4, 1)),
    "an unfinished turn": one(user(1, "u1"), assistant(2, 1, message=None)),
    "an aborted turn": one(user(1, "u1"), assistant(2, 1, message=None), end(3, 1, "aborted")),
    "a start without number": one(user(1, "u1"), start(2, None), assistant(3, 1, "a1"), end(4, 1)),
    "a tool call": one(user(1, "u1"), other(2, "tool/call", arguments=7)),
}
"""Damage that concerns nothing a person may see."""
