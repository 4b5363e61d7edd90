"""Events as the platform writes them."""

from __future__ import annotations

import itertools
import json

Obj = dict[str, object]

BOT = "ou_0b07b07b07b07b07b07b07b07b07b0b0"
ALICE = "ou_a11cea11cea11cea11cea11cea11cea1"
GROUP = "oc_6409164091640916409164091640916a"

_NUMBERS = itertools.count(1)


def private(person: str) -> str:
    """Return the id of a person's chat with the bot."""
    return f"oc_p2p_{person}"


def mention(key: str, open_id: str, name: str) -> Obj:
    """Return one of a message's mentions."""
    return {"key": key, "id": {"open_id": open_id, "union_id": "on_1", "user_id": ""}, "name": name, "tenant_key": "t"}


def message(
    content: Obj,
    kind: str = "text",
    *,
    sender: str = ALICE,
    chat: str | None = None,
    mentions: list[Obj] | None = None,
    sender_type: str = "user",
    **more: object,
) -> Obj:
    """Return the event of a message: in a private chat unless ``chat`` names a group; ``more`` are fields of it."""
    number = next(_NUMBERS)
    fields: Obj = {
        "message_id": f"om_{number:032x}",
        "create_time": "1798761600000",
        "update_time": "1798761600000",
        "chat_id": chat or private(sender),
        "chat_type": "group" if chat else "p2p",
        "message_type": kind,
        "content": json.dumps(content, ensure_ascii=False),
        **more,
    }
    if mentions:
        fields["mentions"] = mentions
    return {
        "schema": "2.0",
        "header": {
            "event_id": f"event-{number}",
            "event_type": "im.message.receive_v1",
            "create_time": "1798761600000",
            "token": "",
            "app_id": "cli_0123456789abcdef",
            "tenant_key": "t",
        },
        "event": {
            "sender": {
                "sender_id": {"open_id": sender, "union_id": "on_2", "user_id": ""},
                "sender_type": sender_type,
                "tenant_key": "t",
            },
            "message": fields,
        },
    }
