"""The figures of :mod:`bridges.metrics`, read from what it serves once everything has happened."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from archive.model import Host
from bridges.message import Acceptance, ChatKey, ChatKind, EventId, InboundMessage, ReplyTarget
from bridges.metrics import Metrics
from bridges.state import BotKey, Health, Link
from commands.model import Outcome, SenderId
from i18n import Language
from tests.docs.tables import table, told

HEADINGS = {
    Language.EN: ("figure", "kind", "labels", "what it says"),
    Language.ZH: ("指标", "类型", "标签", "含义"),
}


class _Bot:
    health = Health(BotKey("telegram", "ops"), Link.UP, 0.0)
    waiting = 0


def figures() -> dict[str, tuple[str, list[str]]]:
    """Return kind and labels of every figure, by the name a query uses."""
    metrics = Metrics()
    chat = ChatKey("telegram", "ops", "1")
    message = InboundMessage(EventId("1"), chat, ChatKind.DIRECT, SenderId("1"), "", ReplyTarget(chat, ""))
    metrics.watch([_Bot()])
    metrics.stalled(0.0)
    metrics.harness_answers(up=True)
    observer = metrics.observer
    observer.accepted(message, Acceptance.ACCEPTED)
    observer.commanded("telegram", "history", Outcome.OK, 0.0)
    observer.sent("telegram", "sent", 0.0)
    observer.requested("health", "ok", 0.0)
    observer.archived("search", Host.DSH, 0.0)
    observer.archived("refresh", Host.DSH, 0.0)
    found: dict[str, tuple[str, list[str]]] = {}
    for family in text_string_to_metric_families(metrics.text().decode()):
        if family.samples and not family.name.endswith("_created"):
            name = f"{family.name}_total" if family.type == "counter" else family.name
            found[name] = (family.type, sorted({label for each in family.samples for label in each.labels} - {"le"}))
    return found


def section(language: Language) -> str:
    words = told("metrics")
    rows = [
        [f"`{name}`", kind, ", ".join(f"`{label}`" for label in labels), words[f"figure.{name}"][language][0]]
        for name, (kind, labels) in figures().items()
    ]
    return table(HEADINGS[language], rows)
