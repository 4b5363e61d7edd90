"""Libraries without the packages they would load for parts that nothing here uses."""

from __future__ import annotations

import importlib
import sys


def import_without(absent: str, name: str) -> None:
    """Import ``name`` as if the module ``absent`` were not there, unless either is loaded already.

    Meanwhile no other thread may need ``absent``. Raises ImportError as the import itself does.
    """
    if absent in sys.modules:
        importlib.import_module(name)
        return
    sys.modules[absent] = None  # type: ignore[assignment]  # how Python marks a module that must not be found
    try:
        importlib.import_module(name)
    finally:
        sys.modules.pop(absent, None)  # another thread may have done the same for itself
