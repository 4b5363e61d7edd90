"""Feishu and DingTalk: whatever stands in whatever field, a message comes of it that can be kept, or nothing does."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterator

import pytest

from bridges.dingtalk import inbound as dingtalk
from bridges.feishu import inbound as feishu
from bridges.message import InboundMessage
from commands.model import ChatKind
from tests.fakes.feishu import BOT, GROUP, Obj, mention, message

GONE = object()
ODD: tuple[object, ...] = (
    GONE, None, 0, -1, 1e308, float("nan"), True, "", "odd", "\ud800", "9" * 400, "@_user_1", [], [None], [[None]],
    ["\udc00"], {}, {"a": None}, {"zh_cn": None},
)  # fmt: skip

POST: Obj = {
    "title": "t",
    "content": [[{"tag": "at", "user_id": "@_user_1"}, {"tag": "text", "text": "x"}, {"tag": "img", "image_key": "k"}]],
}
CONTENTS: list[tuple[str, Obj]] = [
    ("text", {"text": "@_user_1 hi"}),
    ("post", POST),
    ("post", {"zh_cn": POST}),
    ("file", {"file_key": "f", "file_name": "n"}),
]
CALLBACK: Obj = {
    "msgId": "m",
    "msgtype": "richText",
    "text": {"content": "hi", "isReplyMsg": True},
    "conversationType": "2",
    "conversationId": "c",
    "senderId": "s",
    "senderStaffId": "a",
    "chatbotUserId": "b",
    "robotCode": "r",
    "sessionWebhook": "https://oapi.dingtalk.com/x",
    "sessionWebhookExpiredTime": 1.0,
    "isInAtList": True,
    "atUsers": [{"dingtalkId": "b", "staffId": "z"}],
    "content": {
        "richText": [{"text": "@b"}, {"downloadCode": "c", "type": "picture"}],
        "fileName": "f",
        "recognition": "x",
        "downloadCode": "d",
    },
}


def variants(whole: object) -> Iterator[object]:
    """Yield it with each of its parts replaced by each odd thing."""
    for place in places(whole):
        for odd in ODD:
            yield replaced(copy.deepcopy(whole), place, odd)


def places(part: object) -> Iterator[tuple[str | int, ...]]:
    yield ()
    inner = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in inner:
        yield from ((key, *rest) for rest in places(value))


def replaced(part: object, place: tuple[str | int, ...], odd: object) -> object:
    if not place:
        return {} if odd is GONE else odd
    key, *rest = place
    assert isinstance(part, dict | list)
    if odd is GONE and not rest:
        del part[key]  # type: ignore[arg-type]  # a name for a table, a number for a list
    else:
        part[key] = replaced(part[key], tuple(rest), odd)  # type: ignore[index]  # the same
    return part


def at_feishu(event: object) -> InboundMessage | None:
    return feishu.parse(json.dumps(event).encode(), "bot", BOT)


def at_dingtalk(data: object) -> InboundMessage | None:
    return dingtalk.parse(data, "bot", "client")


def events() -> Iterator[object]:
    for kind, content in CONTENTS:
        mentions = [mention("@_user_1", BOT, "Bot")]
        yield from variants(message(content, kind, chat=GROUP, mentions=mentions, thread_id="t", parent_id="p"))
        for odd in variants(content):
            yield message({}, kind, chat=GROUP) | {"event": holding(kind, odd)}


def holding(kind: str, content: object) -> object:
    event = message({}, kind, chat=GROUP)["event"]
    assert isinstance(event, dict)
    event["message"]["content"] = json.dumps(content)
    return event


@pytest.mark.parametrize(
    ("parse", "all_of_them"), [(at_feishu, events()), (at_dingtalk, variants(CALLBACK))], ids=["feishu", "dingtalk"]
)
def test_nothing_but_a_message_comes_of_it(
    parse: Callable[[object], InboundMessage | None], all_of_them: Iterator[object]
) -> None:
    read = 0
    for odd in all_of_them:
        with contextlib.suppress(feishu.Malformed, dingtalk.Malformed):
            found = parse(odd)
            if found is None:
                continue
            read += 1
            files = [part for each in found.attachments for part in (each.handle, each.name or "")]
            kept = [found.id, found.chat.chat, found.sender, found.text, found.reply_to.route, *files]
            "".join(kept).encode()
            assert found.id
            assert found.sender
            assert found.kind is ChatKind.GROUP, "nothing makes a private chat of a group"
    assert read > 100
