"""The process's environment: the only module that reads or changes ``os.environ``."""

from __future__ import annotations

import os
from collections.abc import Mapping


def environment() -> Mapping[str, str]:
    """Return a copy: for :func:`bridges.config.load`, and for children to start from."""
    return dict(os.environ)


def without_proxy() -> None:
    """Let nothing in this process, libraries included, look for what is on this machine behind a proxy."""
    os.environ.update(NO_PROXY="*", no_proxy="*")
