"""``/models``, ``/model``, ``/reasonings`` and ``/reasoning``: which model answers, and how long it thinks.

Every host makes the choice for one session its default for new sessions too (facts HARNESS 12.17), and has no way to
choose without it: the replies say so.
"""

from __future__ import annotations

from collections.abc import Sequence

from commands.answer import No, answering, soon
from commands.cleaning import one_line
from commands.lists import MOST, picked, row
from commands.model import CommandRequest, Listing, Services
from harness_client.errors import SessionNotFound
from harness_client.types import Effort, Model, ModelCatalog, ModelChoice, SessionId
from i18n import Key, Words

DEFAULT = "--default"


@answering(Key.MODELS_FAILED)
async def models(request: CommandRequest, services: Services) -> str:
    """List the models, numbered for ``/model N``, and the providers that could not be asked."""
    words = services.words
    catalog = await _catalog(request, services)
    shown = catalog.models[:MOST]
    services.shown.remember(request.chat, Listing.MODELS, map(_name, shown))
    current = _current(catalog)
    lines = [words(Key.MODELS_HEADER, total=len(catalog.models))]
    for number, model in enumerate(shown, 1):
        name = one_line(model.name) if model.name != model.id else ""
        lines.append(row(number, one_line(_name(model)), name, words(Key.MODELS_CURRENT) if model is current else ""))
    if catalog.failures:
        lines.append(words(Key.MODELS_MISSING, providers=", ".join(map(one_line, catalog.failures))))
    return "\n".join([*lines, "", words(Key.MODELS_FOOTER)])


@answering(Key.MODEL_FAILED)
async def model(request: CommandRequest, services: Services) -> str:
    """Say which model answers, or choose another: by number, ``provider/model`` or model id, with an effort or not."""
    if not request.argument:
        return _told(await _catalog(request, services), services.words)
    session = await _free_session(request, services)
    catalog = await _catalog(request, services)
    wanted, *effort = request.argument.split()
    number = picked(wanted, Listing.MODELS, request, services)
    found = _find(number or wanted, catalog.models)
    if found is None:
        raise No(Key.MODEL_UNKNOWN) if number is None else No(Key.LIST_CHANGED, command=Listing.MODELS)
    chosen = _effort(effort[0], found.efforts).id if effort else None
    return await _select(session, ModelChoice(found.provider, found.id, chosen), services)


@answering(Key.MODELS_FAILED)
async def reasonings(request: CommandRequest, services: Services) -> str:
    """List the reasoning efforts of the chat's model, numbered for ``/reasoning N``."""
    words = services.words
    catalog = await _catalog(request, services)
    found = _reasoning_model(catalog)
    efforts = found.efforts[:MOST]
    services.shown.remember(request.chat, Listing.REASONINGS, (effort.id for effort in efforts))
    chosen = catalog.default.effort if catalog.default else None
    lines = [words(Key.REASONINGS_HEADER, model=one_line(_name(found)))]
    for number, effort in enumerate(efforts, 1):
        marks = {Key.REASONINGS_CURRENT: effort.id == chosen, Key.REASONINGS_DEFAULT: effort.id == found.default_effort}
        name = one_line(effort.name) if effort.name.lower() != effort.id.lower() else ""
        lines.append(row(number, one_line(effort.id), name, *(words(key) for key, holds in marks.items() if holds)))
    return "\n".join([*lines, "", words(Key.REASONINGS_FOOTER)])


@answering(Key.MODEL_FAILED)
async def reasoning(request: CommandRequest, services: Services) -> str:
    """Say how long the model thinks, or choose: by number, id, or ``--default`` for the model's own choice."""
    if not request.argument:
        return _told(await _catalog(request, services), services.words)
    session = await _free_session(request, services)
    found = _reasoning_model(await _catalog(request, services))
    if request.argument.lower() == DEFAULT:
        effort = found.default_effort
    else:
        effort = _effort(
            picked(request.argument, Listing.REASONINGS, request, services) or request.argument, found.efforts
        ).id
    return await _select(session, ModelChoice(found.provider, found.id, effort), services)


def is_choice(argument: str) -> bool:
    """Whether ``/model`` can make sense of the argument: nothing, a model, or a model and an effort."""
    return len(argument.split()) <= 2


def is_word(argument: str) -> bool:
    """Whether the argument is nothing or one word."""
    return len(argument.split()) <= 1


async def _catalog(request: CommandRequest, services: Services) -> ModelCatalog:
    """Read the models; ``default`` is the choice of the chat's session, or the host's for new ones."""
    session = (await services.bindings.get(request.chat)).session
    return await soon(services, services.harness.models(session))


async def _free_session(request: CommandRequest, services: Services) -> SessionId:
    """Return the chat's session if nothing runs in it: a turn must not change its model in the middle."""
    session = (await services.bindings.get(request.chat)).session
    if session is None:
        raise No(Key.CHAT_UNBOUND)
    try:
        running = await soon(services, services.harness.running(session))
    except SessionNotFound:
        raise No(Key.CHAT_SESSION_GONE) from None
    if running or services.turns.current(request.chat) is not None:
        raise No(Key.MODEL_BUSY)
    return session


async def _select(session: SessionId, choice: ModelChoice, services: Services) -> str:
    selected = await soon(services, services.harness.select_model(session, choice))
    effort = selected.effort or services.words(Key.MODEL_NO_EFFORT)
    name = f"{selected.provider}/{selected.model}"
    return services.words(Key.MODEL_DONE, model=one_line(name), effort=one_line(effort))


def _told(catalog: ModelCatalog, words: Words) -> str:
    choice = catalog.default
    if choice is None:
        raise No(Key.MODEL_NONE)
    effort = choice.effort or words(Key.MODEL_NO_EFFORT)
    return words(Key.MODEL_CURRENT, model=one_line(f"{choice.provider}/{choice.model}"), effort=one_line(effort))


def _name(found: Model) -> str:
    return f"{found.provider}/{found.id}"


def _current(catalog: ModelCatalog) -> Model | None:
    choice = catalog.default
    return _find(f"{choice.provider}/{choice.model}", catalog.models) if choice else None


def _find(wanted: str, among: Sequence[Model]) -> Model | None:
    """Return the model of that full name, else the only one of that id. Raises No when several have it."""
    exact = [each for each in among if _name(each) == wanted]
    found = exact or [each for each in among if each.id == wanted]
    if len(found) > 1:
        raise No(Key.MODEL_AMBIGUOUS, model=one_line(wanted))
    return found[0] if found else None


def _reasoning_model(catalog: ModelCatalog) -> Model:
    found = _current(catalog)
    if found is None:
        raise No(Key.MODEL_NONE)
    if not found.efforts:
        raise No(Key.REASONINGS_NONE, model=one_line(_name(found)))
    return found


def _effort(wanted: str, among: Sequence[Effort]) -> Effort:
    for effort in among:
        if effort.id.lower() == wanted.lower():
            return effort
    raise No(Key.REASONING_UNKNOWN, efforts=", ".join(one_line(effort.id) for effort in among) or "-")
