"""The same environment for every test, whatever the machine: no credentials, no proxies, an empty home."""

from __future__ import annotations

import os
import re
from pathlib import Path

HOME = Path.home()
"""The real one, where package clients keep their settings."""

CACHE = Path(os.environ.get("HARNESS_IM_NODE_CACHE") or HOME / ".cache" / "harness-im" / "node")
"""Where other vendors' packages are installed for the independent tests."""

_SCRUBBED = re.compile(
    r"(.*_proxy|deepseek_.*|dsh_.*|harness_.*|xdg_.*|credentials_directory|notify_socket|watchdog_.*"
    r"|(no|force)_color|columns|lines|lang|language|lc_.*)",
    re.IGNORECASE,
)


def scrub(home: Path) -> None:
    """Take everything out of the environment that could change a test, and make ``home`` the home."""
    for name in list(os.environ):
        if _SCRUBBED.fullmatch(name):
            del os.environ[name]
    os.environ.update(HOME=str(home), LC_ALL="C.UTF-8", NO_PROXY="*", DSH_TELEMETRY_DISABLED="1")
