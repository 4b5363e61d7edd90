"""What WhatsApp posts to a webhook, as it shapes it."""

from __future__ import annotations

import itertools
from typing import TypeAlias

Obj: TypeAlias = dict[str, "object"]

NUMBER = "106540352242922"
DIGITS = "15550783881"

_ids = itertools.count(1)


def message(text: str | None = None, *, sender: str | None = "16505551234", **fields: object) -> Obj:
    """Return a person's message: text, or whatever ``fields`` make of it; ``from`` is absent without a ``sender``."""
    content: Obj = {} if text is None else {"type": "text", "text": {"body": text}}
    who: Obj = {} if sender is None else {"from": sender}
    return who | {"id": f"wamid.IN{next(_ids):08}", "timestamp": "1749416383"} | content | fields


def status(name: str, state: str, code: int | None = None) -> Obj:
    """Return what became of a message of the bot."""
    found: Obj = {"id": name, "status": state, "timestamp": "1749416384", "recipient_id": "16505551234"}
    if code is not None:
        found["errors"] = [{"code": code, "title": "no", "message": "no", "error_data": {"details": "no"}}]
    return found


def value(*messages: Obj, statuses: tuple[Obj, ...] = (), number: str = NUMBER, contacts: object = None) -> Obj:
    """Return what one change holds; WhatsApp names the people beside their messages."""
    found: Obj = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": f"+{DIGITS[0]} {DIGITS[1:4]}-{DIGITS[4:]}", "phone_number_id": number},
    }
    if messages:
        people = [_contact(each) for each in messages]
        found |= {"contacts": people if contacts is None else contacts, "messages": list(messages)}
    return found | ({"statuses": list(statuses)} if statuses else {})


def _contact(found: Obj) -> Obj:
    known = {"wa_id": found.get("from"), "user_id": found.get("from_user_id")}
    return {"profile": {"name": "Some Person"}} | {name: told for name, told in known.items() if told}


def change(held: Obj, field: str = "messages") -> Obj:
    """Return a change of one field."""
    return {"field": field, "value": held}


def post(*changes: Obj) -> Obj:
    """Return a post with an entry for each change."""
    entries = [{"id": "102290129340398", "changes": [each]} for each in changes]
    return {"object": "whatsapp_business_account", "entry": entries}
