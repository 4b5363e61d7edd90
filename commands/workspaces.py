"""``/workspaces``, ``/workspace`` and ``/conv``: the folder of the host that new sessions work in."""

from __future__ import annotations

from commands.answer import No, answering, soon
from commands.cleaning import one_line
from commands.folders import is_folder, same, tidy
from commands.lists import MOST, is_number, picked, row
from commands.model import CommandRequest, Listing, Services
from harness_client.errors import Refused, Unsupported
from i18n import Key

CLEAR = "clear"
_NO_FOLDER = frozenset({"workspace/invalid-path", "workspace-invalid-path"})


@answering(Key.WORKSPACES_FAILED)
async def workspaces(request: CommandRequest, services: Services) -> str:
    """List the folders the host knows, the chat's own first, numbered for the other two."""
    words = services.words
    place = await services.preferences.place(request.chat)
    folders = list(dict.fromkeys(map(tidy, (place.folder, place.default, *await _known(services)))))
    services.shown.remember(request.chat, Listing.WORKSPACES, folders[:MOST])
    lines = [words(Key.WORKSPACES_HEADER, total=len(folders))]
    for number, folder in enumerate(folders[:MOST], 1):
        current = words(Key.WORKSPACES_PINNED if place.pin else Key.WORKSPACES_CURRENT) if number == 1 else ""
        lines.append(row(number, one_line(folder), current))
    return "\n".join([*lines, "", words(Key.WORKSPACES_FOOTER)])


@answering(Key.WORKSPACE_FAILED)
async def workspace(request: CommandRequest, services: Services) -> str:
    """Switch the bot to another folder: all its chats begin new sessions there, those with a pin aside."""
    folder = await _chosen(request, services)
    place = await services.preferences.place(request.chat)
    if place.pin is None and same(folder, place.default):
        raise No(Key.WORKSPACE_SAME, folder=one_line(folder))
    await services.preferences.switch(request.chat, folder)
    return services.words(Key.WORKSPACE_DONE, folder=one_line(folder))


@answering(Key.CONV_FAILED)
async def conv(request: CommandRequest, services: Services) -> str:
    """Pin this chat alone to a folder, unpin it, or say where it works."""
    place = await services.preferences.place(request.chat)
    if not request.argument:
        key = Key.CONV_DEFAULT if place.pin is None else Key.CONV_PINNED
        return services.words(key, folder=one_line(place.folder))
    if request.argument.lower() == CLEAR:
        if place.pin is None:
            raise No(Key.CONV_NO_PIN, folder=one_line(place.folder))
        await services.preferences.pin(request.chat, None)
        return services.words(Key.CONV_CLEARED, folder=one_line(place.default))
    folder = await _chosen(request, services)
    if place.pin is not None and same(folder, place.pin):
        raise No(Key.CONV_SAME, folder=one_line(folder))
    await services.preferences.pin(request.chat, folder)
    return services.words(Key.CONV_DONE, folder=one_line(folder))


def is_choice(argument: str) -> bool:
    """Whether the argument names a folder, by its path or by a number."""
    return is_number(argument) or is_folder(argument)


def is_pin(argument: str) -> bool:
    """Whether ``/conv`` knows what to do with the argument."""
    return not argument or argument.lower() == CLEAR or is_choice(argument)


async def _chosen(request: CommandRequest, services: Services) -> str:
    """Return the folder that was asked for: one the host knows, or one that exists and is then made known to it."""
    number = picked(request.argument, Listing.WORKSPACES, request, services)
    if number is not None:
        return number
    folder = tidy(request.argument)
    if any(same(folder, known) for known in await _known(services)):
        return folder
    try:
        await soon(services, services.harness.create_workspace(folder))
    except Unsupported:
        pass  # the folder exists, or the client would have refused; the host just keeps no list
    except Refused as refused:
        if refused.reason in _NO_FOLDER:
            raise No(Key.WORKSPACE_NO_FOLDER, folder=one_line(folder)) from None
        raise
    return folder


async def _known(services: Services) -> list[str]:
    """Return the registered folders; of a host that registers none, those its sessions work in, newest first."""
    try:
        return [each.path for each in (await soon(services, services.harness.workspaces())).workspaces]
    except Unsupported:
        rows = await soon(services, services.harness.sessions())
        return [each.cwd for each in rows if each.cwd is not None and not each.subagent]
