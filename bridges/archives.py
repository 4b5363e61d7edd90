"""Where a face finds the archive: which native sessions are current for it, and who writes its summaries."""

from __future__ import annotations

import shutil
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from archive.model import Host
from archive.service import HistoryService, LocalDsh, LocalPi, Native, Observe, unobserved
from archive.sources.pi_locate import PiHome
from archive.writers import Writer
from archive.writers.endpoint import EndpointWriter
from archive.writers.pi import PiWriter
from bridges.config import Summaries

WORKSPACES: Final = 4
"""Workspaces whose archives are kept in memory; the one not asked for longest goes first."""

PI_SESSION: Final = "PBOT_PI_SESSION"
"""Names the file of the Pi session that asks; the Pi extension sets it."""


class Archives:
    """The services of a bridge's workspaces; dsh is current for all of them."""

    def __init__(self, dsh: Native, *, observe: Observe = unobserved) -> None:
        self._dsh = dsh
        self._observe = observe
        self._services: OrderedDict[str, HistoryService] = OrderedDict()

    def of(self, workspace: str) -> HistoryService:
        """Return the history of a workspace."""
        service = self._services.get(workspace)
        if service is None:
            service = HistoryService(Path(workspace), {Host.DSH: self._dsh}, observe=self._observe)
            self._services[workspace] = service
        self._services.move_to_end(workspace)
        while len(self._services) > WORKSPACES:
            self._services.popitem(last=False)
        return service


def local_natives(environ: Mapping[str, str]) -> dict[Host, Native]:
    """Return both hosts' sessions of this machine, where the hosts themselves would look for them."""
    home = PiHome(agent_dir(environ), _path(environ, "PI_CODING_AGENT_SESSION_DIR"), _path(environ, PI_SESSION))
    return {
        Host.PI: LocalPi(home),
        Host.DSH: LocalDsh(_path(environ, "DSH_HOME") or Path.home() / ".dsh"),
    }


def agent_dir(environ: Mapping[str, str]) -> Path:
    """Return Pi's directory."""
    return _path(environ, "PI_CODING_AGENT_DIR") or Path.home() / ".pi" / "agent"


def writer(host: Host, summaries: Summaries, environ: Mapping[str, str]) -> Writer | None:
    """Return the host's own way to a model; None where none is known."""
    if host is Host.PI:
        found = shutil.which(summaries.pi, path=environ.get("PATH"))
        return PiWriter((found,), environ) if found else None
    url = summaries.url or environ.get("DEEPSEEK_BASE_URL") or "https://api.deepseek.com"
    key = summaries.key.reveal() if summaries.key else environ.get("DEEPSEEK_API_KEY")
    return EndpointWriter(url, summaries.model, key) if key or summaries.url else None


def _path(environ: Mapping[str, str], name: str) -> Path | None:
    return Path(environ[name]).expanduser() if environ.get(name) else None
