"""``/presets`` and ``/preset``: the agent preset of the sessions this chat begins; a session keeps its own."""

from __future__ import annotations

from commands.answer import No, answering, soon
from commands.cleaning import one_line
from commands.lists import MOST, picked, row
from commands.model import CommandRequest, Listing, Services
from i18n import Key

DEFAULT = "--default"
LITERAL = "id:"
"""Before an id that looks like a number."""


@answering(Key.PRESETS_FAILED)
async def presets(request: CommandRequest, services: Services) -> str:
    """List the presets, numbered for ``/preset N``."""
    words = services.words
    chosen = await services.preferences.preset(request.chat)
    found = await soon(services, services.harness.presets())
    services.shown.remember(request.chat, Listing.PRESETS, (each.id for each in found[:MOST]))
    lines = [words(Key.PRESETS_HEADER, total=len(found))]
    for number, each in enumerate(found[:MOST], 1):
        marks = {Key.PRESETS_DEFAULT: each.default, Key.PRESETS_CHOSEN: each.id == chosen}
        name = one_line(each.name) if each.name != each.id else ""
        lines.append(row(number, one_line(each.id), name, *(words(key) for key, holds in marks.items() if holds)))
    return "\n".join([*lines, "", words(Key.PRESETS_FOOTER)])


@answering(Key.PRESETS_FAILED)
async def preset(request: CommandRequest, services: Services) -> str:
    """Say which preset new sessions get, or choose it: by number, id, ``id:…``, or ``--default`` for the host's."""
    words, argument = services.words, request.argument
    if not argument:
        chosen = await services.preferences.preset(request.chat)
        return words(Key.PRESET_CURRENT, preset=one_line(chosen)) if chosen else words(Key.PRESET_UNSET)
    if argument.lower() == DEFAULT:
        await services.preferences.choose_preset(request.chat, None)
        return words(Key.PRESET_CLEARED)
    number = picked(argument, Listing.PRESETS, request, services)
    wanted = number or argument.removeprefix(LITERAL)
    if wanted not in {each.id for each in await soon(services, services.harness.presets())}:
        raise No(Key.PRESET_UNKNOWN) if number is None else No(Key.LIST_CHANGED, command=Listing.PRESETS)
    await services.preferences.choose_preset(request.chat, wanted)
    return words(Key.PRESET_DONE, preset=one_line(wanted))
