"""The parts of a prompt, checked and turned into what lies in the log."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from zoneinfo import available_timezones

from tests.fakes.harness.dialect import Obj
from tests.fakes.harness.fields import Fields
from tests.fakes.harness.live import LiveSession
from tests.fakes.harness.notices import Refused

MEDIA_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif")
MAGIC = re.compile(rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|RIFF....WEBP|GIF8", re.DOTALL)


def read_content(session: LiveSession, parts: Iterator[Fields]) -> list[Obj]:
    """Check the parts of a prompt; keep images as attachments of the session."""
    content = [_part(session, part) for part in parts]
    if session.world.dialect.flavour == "0.2" and not any(_visible(part) for part in content):
        raise Refused("bad-request", "prompt content must include non-whitespace text or an attachment")
    return content


def check_time_zone(zone: str | None) -> None:
    """Refuse a zone that is neither UTC nor an IANA Area/Location name."""
    if zone is not None and zone != "UTC" and zone not in available_timezones():
        message = "clientTimeZone must be UTC or a valid IANA Area/Location name"
        raise Refused("invalid-time-zone", message, {"value": zone})


def _part(session: LiveSession, part: Fields) -> Obj:
    if part.choice("type", "text", "image") == "text":
        return {"type": "text", "text": part.text("text")}
    media = part.choice("mediaType", *MEDIA_TYPES)
    try:
        data = base64.b64decode(part.text("data"), validate=True)
    except binascii.Error:
        data = b""
    if session.model not in session.world.image_models:
        message = f'Model "{session.model}" does not support image input.'
        raise Refused("attachment-error", message, {"reason": "MODEL_DOES_NOT_SUPPORT_IMAGES"})
    if MAGIC.match(data) is None:
        raise Refused("attachment-error", "Unsupported or malformed image data.", {"reason": "INVALID_IMAGE"})
    id_ = f"sha256:{hashlib.sha256(data).hexdigest()}"
    attachment: Obj = {"attachmentId": id_, "mediaType": media, "width": 64, "height": 64, "bytes": len(data)}
    if "name" in part:
        attachment["name"] = part.text("name")
    session.attachments[id_] = {"attachment": attachment, "data": part.text("data")}
    return {"type": "image", "attachment": attachment}


def _visible(part: Obj) -> bool:
    return part["type"] != "text" or bool(str(part["text"]).strip())
