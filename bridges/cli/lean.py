"""structlog without rich. Import this before anything that imports structlog.

Wherever rich is installed structlog loads it, for coloured tracebacks that no log of ours has: 4 MB of every chat.
"""

from __future__ import annotations

import sys

if "rich" not in sys.modules:
    sys.modules["rich"] = None  # type: ignore[assignment]  # how Python marks a module that must not be found
    try:
        import structlog  # noqa: F401 - to have it loaded
    finally:
        del sys.modules["rich"]
