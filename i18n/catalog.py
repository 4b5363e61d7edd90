"""Keys, languages and the lookup."""

from __future__ import annotations

import functools
import tomllib
from enum import StrEnum
from importlib import resources


class Language(StrEnum):
    """The two languages kept by this project."""

    ZH = "zh"
    EN = "en"

    @classmethod
    def of(cls, tag: str) -> Language:
        """Choose by a language tag: ``en``, ``english``, ``en-…`` and ``en_…`` are English, all else Chinese."""
        folded = tag.strip().lower().replace("_", "-")
        return cls.EN if folded in {"en", "english"} or folded.startswith("en-") else cls.ZH


class Key(StrEnum):
    """Names of texts: table and entry of the catalog, joined by a dot."""

    HISTORY_HEADER = "history.header"
    HISTORY_USER = "history.user"
    HISTORY_ASSISTANT = "history.assistant"
    HISTORY_IMAGE = "history.image"
    HISTORY_FILE = "history.file"
    HISTORY_TRUNCATED = "history.truncated"
    HISTORY_NO_TEXT = "history.no_text"
    HISTORY_RUNNING = "history.running"
    HISTORY_FOOTER = "history.footer"
    HISTORY_PRIVATE_ONLY = "history.private_only"
    HISTORY_EMPTY = "history.empty"
    HISTORY_USAGE = "history.usage"
    HISTORY_SUMMARY = "history.summary"
    HISTORY_PARAMETER = "history.parameter"
    HISTORY_UNBOUND = "history.unbound"
    HISTORY_NOT_REACHED = "history.not_reached"
    HISTORY_ONLY = "history.only"
    HISTORY_BOUNDED = "history.bounded"
    HISTORY_DROPPED = "history.dropped"
    HISTORY_GONE = "history.gone"
    HISTORY_CHANGED = "history.changed"
    HISTORY_UNSUPPORTED = "history.unsupported"
    HISTORY_TIMED_OUT = "history.timed_out"
    HISTORY_UNAVAILABLE = "history.unavailable"

    HELP_TITLE = "help.title"
    HELP_LINE = "help.line"
    HELP_USAGE = "help.usage"
    HELP_SUMMARY = "help.summary"

    CONFIG_ABSENT = "config.absent"
    CONFIG_UNREADABLE = "config.unreadable"
    CONFIG_SYNTAX = "config.syntax"
    CONFIG_UNKNOWN = "config.unknown"
    CONFIG_MISSING = "config.missing"
    CONFIG_WRONG = "config.wrong"
    CONFIG_TWICE = "config.twice"
    CONFIG_NOTHING_THERE = "config.nothing_there"
    CONFIG_EMBEDDED_URL = "config.embedded_url"

    STATE_LOCKED = "state.locked"
    STATE_NEWER = "state.newer"
    STATE_FOREIGN = "state.foreign"
    STATE_FULL = "state.full"
    STATE_READ_ONLY = "state.read_only"
    STATE_BUSY = "state.busy"
    STATE_BROKEN = "state.broken"
    STATE_FAILED = "state.failed"
    STATE_SET_ASIDE = "state.set_aside"

    DEMO_ECHO = "demo.echo"
    DEMO_TITLE = "demo.title"
    DEMO_SUMMARY = "demo.summary"
    DEMO_SCRIPT_OVER = "demo.script_over"
    DEMO_BAD_SCRIPT = "demo.bad_script"

    CHAT_PAIRING = "chat.pairing"
    CHAT_TOO_LONG = "chat.too_long"
    CHAT_ATTACHMENTS = "chat.attachments"
    CHAT_EMPTY = "chat.empty"
    CHAT_FULL = "chat.full"
    CHAT_FAULT = "chat.fault"
    CHAT_COMMAND_DENIED = "chat.command_denied"
    CHAT_TEXT_ONLY = "chat.text_only"
    CHAT_PRIVATE_ONLY = "chat.private_only"
    CHAT_OWNER_ONLY = "chat.owner_only"
    CHAT_SESSION_GONE = "chat.session_gone"
    CHAT_SESSION_BUSY = "chat.session_busy"
    CHAT_SWITCHED = "chat.switched"
    CHAT_WITHDRAWN = "chat.withdrawn"
    CHAT_PROMPT_LOST = "chat.prompt_lost"
    CHAT_STATE = "chat.state"
    CHAT_STILL_RUNNING = "chat.still_running"
    CHAT_LOST_CONTACT = "chat.lost_contact"
    CHAT_UNREACHABLE = "chat.unreachable"
    CHAT_TIMED_OUT = "chat.timed_out"
    CHAT_UNAUTHORIZED = "chat.unauthorized"
    CHAT_FAILED = "chat.failed"
    CHAT_DONE = "chat.done"
    CHAT_DAMAGED = "chat.damaged"
    CHAT_ABORTED = "chat.aborted"
    CHAT_TURN_FAILED = "chat.turn_failed"
    CHAT_MAX_TOKENS = "chat.max_tokens"
    CHAT_INTERRUPTED = "chat.interrupted"
    CHAT_BLOCKED = "chat.blocked"
    CHAT_ENDED = "chat.ended"
    CHAT_UNDELIVERED = "chat.undelivered"
    CHAT_LATE = "chat.late"
    CHAT_SEND_AGAIN = "chat.send_again"
    CHAT_CUT_OFF = "chat.cut_off"
    CHAT_UNBOUND = "chat.unbound"
    CHAT_PRESET_GONE = "chat.preset_gone"

    SESSION_USAGE = "session.usage"
    SESSION_SUMMARY = "session.summary"
    SESSION_PARAMETER = "session.parameter"
    SESSION_NOT_FOUND = "session.not_found"
    SESSION_SUBAGENT = "session.subagent"
    SESSION_MOVED = "session.moved"
    SESSION_FAILED = "session.failed"
    SESSION_DONE = "session.done"
    SESSION_TRY_HISTORY = "session.try_history"
    SESSION_ELSEWHERE = "session.elsewhere"
    SESSION_RENUMBERED = "session.renumbered"

    SESSIONS_USAGE = "sessions.usage"
    SESSIONS_SUMMARY = "sessions.summary"
    SESSIONS_PARAMETER = "sessions.parameter"
    SESSIONS_HEADER = "sessions.header"
    SESSIONS_FOOTER = "sessions.footer"
    SESSIONS_NONE = "sessions.none"
    SESSIONS_BOUND = "sessions.bound"
    SESSIONS_RUNNING = "sessions.running"
    SESSIONS_UNTITLED = "sessions.untitled"
    SESSIONS_FAILED = "sessions.failed"
    SESSIONS_ARCHIVED = "sessions.archived"
    SESSIONS_HEADER_IN = "sessions.header_in"
    SESSIONS_NONE_IN = "sessions.none_in"

    NEW_USAGE = "new.usage"
    NEW_SUMMARY = "new.summary"
    NEW_DONE = "new.done"

    AGE_NOW = "age.now"
    AGE_MINUTES = "age.minutes"
    AGE_HOURS = "age.hours"
    AGE_DAYS = "age.days"

    STATUS_USAGE = "status.usage"
    STATUS_SUMMARY = "status.summary"
    STATUS_HOST = "status.host"
    STATUS_SESSION = "status.session"
    STATUS_UNBOUND = "status.unbound"
    STATUS_RUNNING = "status.running"
    STATUS_IDLE = "status.idle"
    STATUS_FAILED = "status.failed"

    STOP_USAGE = "stop.usage"
    STOP_NOT_BEGUN = "stop.not_begun"
    STOP_SUMMARY = "stop.summary"
    STOP_IDLE = "stop.idle"
    STOP_DONE = "stop.done"
    STOP_WITHDRAWN = "stop.withdrawn"
    STOP_FAILED = "stop.failed"

    STEER_USAGE = "steer.usage"
    STEER_SUMMARY = "steer.summary"
    STEER_PARAMETER = "steer.parameter"
    STEER_IDLE = "steer.idle"
    STEER_DONE = "steer.done"
    STEER_FAILED = "steer.failed"

    WORKSPACES_USAGE = "workspaces.usage"
    WORKSPACES_SUMMARY = "workspaces.summary"
    WORKSPACES_HEADER = "workspaces.header"
    WORKSPACES_FOOTER = "workspaces.footer"
    WORKSPACES_CURRENT = "workspaces.current"
    WORKSPACES_PINNED = "workspaces.pinned"
    WORKSPACES_FAILED = "workspaces.failed"

    WORKSPACE_USAGE = "workspace.usage"
    WORKSPACE_SUMMARY = "workspace.summary"
    WORKSPACE_PARAMETER = "workspace.parameter"
    WORKSPACE_SAME = "workspace.same"
    WORKSPACE_NO_FOLDER = "workspace.no_folder"
    WORKSPACE_DONE = "workspace.done"
    WORKSPACE_FAILED = "workspace.failed"

    CONV_USAGE = "conv.usage"
    CONV_SUMMARY = "conv.summary"
    CONV_PARAMETER = "conv.parameter"
    CONV_DEFAULT = "conv.default"
    CONV_PINNED = "conv.pinned"
    CONV_NO_PIN = "conv.no_pin"
    CONV_CLEARED = "conv.cleared"
    CONV_SAME = "conv.same"
    CONV_DONE = "conv.done"
    CONV_FAILED = "conv.failed"

    MODELS_USAGE = "models.usage"
    MODELS_SUMMARY = "models.summary"
    MODELS_HEADER = "models.header"
    MODELS_FOOTER = "models.footer"
    MODELS_CURRENT = "models.current"
    MODELS_MISSING = "models.missing"
    MODELS_FAILED = "models.failed"

    MODEL_USAGE = "model.usage"
    MODEL_SUMMARY = "model.summary"
    MODEL_PARAMETER = "model.parameter"
    MODEL_CURRENT = "model.current"
    MODEL_NONE = "model.none"
    MODEL_NO_EFFORT = "model.no_effort"
    MODEL_UNKNOWN = "model.unknown"
    MODEL_AMBIGUOUS = "model.ambiguous"
    MODEL_BUSY = "model.busy"
    MODEL_DONE = "model.done"
    MODEL_FAILED = "model.failed"

    REASONINGS_USAGE = "reasonings.usage"
    REASONINGS_SUMMARY = "reasonings.summary"
    REASONINGS_HEADER = "reasonings.header"
    REASONINGS_FOOTER = "reasonings.footer"
    REASONINGS_CURRENT = "reasonings.current"
    REASONINGS_DEFAULT = "reasonings.default"
    REASONINGS_NONE = "reasonings.none"

    REASONING_USAGE = "reasoning.usage"
    REASONING_SUMMARY = "reasoning.summary"
    REASONING_PARAMETER = "reasoning.parameter"
    REASONING_UNKNOWN = "reasoning.unknown"

    PRESETS_USAGE = "presets.usage"
    PRESETS_SUMMARY = "presets.summary"
    PRESETS_HEADER = "presets.header"
    PRESETS_FOOTER = "presets.footer"
    PRESETS_DEFAULT = "presets.default"
    PRESETS_CHOSEN = "presets.chosen"
    PRESETS_FAILED = "presets.failed"

    PRESET_USAGE = "preset.usage"
    PRESET_SUMMARY = "preset.summary"
    PRESET_PARAMETER = "preset.parameter"
    PRESET_CURRENT = "preset.current"
    PRESET_UNSET = "preset.unset"
    PRESET_CLEARED = "preset.cleared"
    PRESET_UNKNOWN = "preset.unknown"
    PRESET_DONE = "preset.done"

    COMPACT_USAGE = "compact.usage"
    COMPACT_SUMMARY = "compact.summary"
    COMPACT_BUSY = "compact.busy"
    COMPACT_NOTHING = "compact.nothing"
    COMPACT_UNSUPPORTED = "compact.unsupported"
    COMPACT_REFUSED = "compact.refused"
    COMPACT_DONE = "compact.done"
    COMPACT_OK = "compact.ok"
    COMPACT_FAILED = "compact.failed"

    LANGUAGE_USAGE = "language.usage"
    LANGUAGE_SUMMARY = "language.summary"
    LANGUAGE_PARAMETER = "language.parameter"
    LANGUAGE_DONE = "language.done"

    VERSION_USAGE = "version.usage"
    VERSION_SUMMARY = "version.summary"
    VERSION_TEXT = "version.text"

    PAIR_USAGE = "pair.usage"
    PAIR_SUMMARY = "pair.summary"
    PAIR_PARAMETER = "pair.parameter"
    PAIR_UNKNOWN = "pair.unknown"
    PAIR_DONE = "pair.done"

    PAIRING_NOBODY = "pairing.nobody"
    PAIRING_WAITING = "pairing.waiting"
    PAIRING_APPROVED = "pairing.approved"
    PAIRING_REVOKED = "pairing.revoked"
    PAIRING_NOT_ADMITTED = "pairing.not_admitted"

    LIST_NONE = "list.none"
    LIST_NO_NUMBER = "list.no_number"
    LIST_CHANGED = "list.changed"

    TERMINAL_HEADER = "terminal.header"
    TERMINAL_UNBOUND = "terminal.unbound"
    TERMINAL_HINT = "terminal.hint"
    TERMINAL_DEMO = "terminal.demo"

    START_TWO_HOSTS = "start.two_hosts"
    START_BAD_SESSION = "start.bad_session"
    START_UNREACHABLE = "start.unreachable"
    START_TIMED_OUT = "start.timed_out"
    START_UNAUTHORIZED = "start.unauthorized"
    START_FORBIDDEN = "start.forbidden"
    START_WRONG_HOST = "start.wrong_host"
    START_HOST_FAILED = "start.host_failed"
    START_NO_RUNTIME = "start.no_runtime"
    START_HOME_IN_USE = "start.home_in_use"
    START_NOT_READY = "start.not_ready"

    LOGIN_SCAN = "login.scan"
    LOGIN_NO_QR = "login.no_qr"
    LOGIN_SCANNED = "login.scanned"
    LOGIN_NUMBER = "login.number"
    LOGIN_WRONG_NUMBER = "login.wrong_number"
    LOGIN_EXPIRED = "login.expired"
    LOGIN_BLOCKED = "login.blocked"
    LOGIN_DONE = "login.done"
    LOGIN_ALREADY = "login.already"
    LOGIN_NO_CODE = "login.no_code"
    LOGIN_GAVE_UP = "login.gave_up"
    LOGIN_REST = "login.rest"
    LOGIN_TIMED_OUT = "login.timed_out"
    LOGIN_UNTRUSTED = "login.untrusted"
    LOGIN_INCOMPLETE = "login.incomplete"
    LOGIN_NOT_STORED = "login.not_stored"

    RUN_READY = "run.ready"
    RUN_UP = "run.up"
    RUN_WAITING = "run.waiting"
    RUN_STOPPED = "run.stopped"
    RUN_NOT_SERVED = "run.not_served"
    RUN_NO_BOTS = "run.no_bots"


@functools.cache
def _catalog(language: Language) -> dict[str, str]:
    text = resources.files("i18n").joinpath(f"{language}.toml").read_text("utf-8")
    return {
        f"{table}.{entry}": value for table, entries in tomllib.loads(text).items() for entry, value in entries.items()
    }


class Words:
    """The catalog in one language."""

    __slots__ = ("_texts", "language")

    def __init__(self, language: Language) -> None:
        self.language = language
        self._texts = _catalog(language)

    def __call__(self, key: Key, **values: object) -> str:
        """Return the text of ``key``, its ``{placeholders}`` filled in one pass: values are never read as templates.

        Raises KeyError when a placeholder has no value; the parity tests keep both languages' placeholders equal.
        """
        return self._texts[key].format_map(values)
