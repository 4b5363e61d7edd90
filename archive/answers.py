"""The shapes of answers, the same in every face; field names are those of the wire (spec ARCHIVE 2.1)."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from archive.body import Where
from archive.model import Code, EndReason, Host, NodeId, Origin
from archive.times import Instant
from harness_client.types import SessionId

Kind = Literal["session", "pair", "summary"]


class Answer(msgspec.Struct, frozen=True, rename="camel"):
    """A JSON object; :func:`msgspec.json.encode` writes it."""


class Warned(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """One warning. ``subject`` is a session id or a file's bare name, never a path."""

    code: Code
    subject: str
    line: int | None = None


class Match(Answer, frozen=True, kw_only=True):
    """Where a query stands: UTF-16 offsets into the body that a read returns."""

    where: Where = msgspec.field(name="in")
    start: int
    end: int


class From(Answer, frozen=True, kw_only=True):
    """Where a node's text came from: message ids of the native session; for a summary the first and the last."""

    host: Host
    session_id: SessionId
    entry_ids: tuple[str, ...]


class Parent(Answer, frozen=True, kw_only=True):
    """A node above another."""

    host: Host
    id: NodeId
    preview: str


class Child(Answer, frozen=True, kw_only=True):
    """A node below another."""

    host: Host
    id: NodeId
    kind: Kind
    preview: str


class Result(Answer, frozen=True, kw_only=True):
    """One hit, or one session of the list. ``level`` is 0 for a pair and None for a session, which is a directory.

    ``shared`` is there, and true, for what a fork copied from the session it came from.
    """

    host: Host
    id: NodeId
    kind: Kind
    level: int | None
    session_id: SessionId
    title: str | None
    preview: str
    matches: tuple[Match, ...]
    start: Instant
    end: Instant
    completed: bool
    ready: bool
    source: From
    parents: tuple[Parent, ...]
    shared: Literal[True] | UnsetType = UNSET


class Why(StrEnum):
    """Why a search found nothing, the first that applies."""

    NO_ARCHIVE = "no-archive"
    UNREADABLE = "unreadable"
    NO_SUCH_HOST = "none-of-host"
    NO_SUCH_SESSION = "none-of-session"
    OUT_OF_RANGE = "out-of-range"
    NO_MATCH = "no-match"
    PAST_THE_END = "past-the-end"


class Reason(Answer, frozen=True, kw_only=True):
    """Why there are no results: what was looked through. ``sessions`` are those in scope, ``unreadable`` archives."""

    code: Why
    hosts: tuple[Host, ...]
    sessions: int
    unreadable: int
    session_id: SessionId | None
    since: Instant | None = msgspec.field(name="from")
    until: Instant | None = msgspec.field(name="to")


class SearchAnswer(Answer, frozen=True, kw_only=True):
    """A page of results; ``reason`` only without any."""

    results: tuple[Result, ...]
    next_offset: int | None
    reason: Reason | None
    warnings: tuple[Warned, ...]


class InputText(Answer, frozen=True, kw_only=True):
    """One human input, as far as it lies on the page that was read."""

    origin: Origin
    text: str
    at: Instant


class ReadAnswer(Answer, frozen=True, kw_only=True):
    """A page of one node. The last four are there for pairs only; their texts are those of this page.

    Pages are bounded, so a long question or answer is spread over them as the body is.
    """

    host: Host
    id: NodeId
    kind: Kind
    text: str
    offset: int
    next_offset: int | None
    children: tuple[Child, ...]
    next_children_offset: int | None
    parents: tuple[Parent, ...]
    source: From
    ready: bool
    completed: bool
    start: Instant
    end: Instant
    warnings: tuple[Warned, ...]
    shared: Literal[True] | UnsetType = UNSET
    inputs: tuple[InputText, ...] | UnsetType = UNSET
    answer: str | UnsetType = UNSET
    later: tuple[str, ...] | UnsetType = UNSET
    end_reason: EndReason | UnsetType = UNSET


class RefreshAnswer(Answer, frozen=True, kw_only=True):
    """See :class:`archive.refresh.Report`."""

    host: Host
    sessions: int
    pairs: int
    added: int
    updated: int
    unchanged: int
    warnings: tuple[Warned, ...]


class SummarizeAnswer(Answer, frozen=True, kw_only=True):
    """What one run of the summariser did. ``pending`` are still to be written, those that failed among them."""

    host: Host
    pending: int
    written: int
    failed: int
    cancelled: bool
    warnings: tuple[Warned, ...]
