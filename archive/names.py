"""Names of archive roots, which are also the stems of their files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from types import MappingProxyType

from archive.model import Host, NodeId
from harness_client.types import SessionId

_SAFE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,119}")
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
"""What some file systems take for a device, whatever follows the dot."""

_PREFIX = {Host.PI: "", Host.DSH: "dsh-"}


def root_name(host: Host, session: SessionId, taken: Mapping[str, str] = MappingProxyType({})) -> NodeId:
    """Name a session's archive so that any file system can hold it.

    Session ids are foreign text: what is no plain name, or differs from another in case alone, is replaced by its
    hash. ``taken`` holds the other names by their casefolded form.
    """
    prefix = _PREFIX[host]
    name = f"{prefix}{session}"
    plain = _SAFE.fullmatch(session) and not _DEVICE.fullmatch(session) and not session.endswith(".")
    if plain and taken.get(name.casefold(), name) == name:
        return NodeId(name)
    return NodeId(f"{prefix}h-{hashlib.sha256(session.encode()).hexdigest()[:32]}")
