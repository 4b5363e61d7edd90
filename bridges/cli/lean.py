"""structlog without rich. Import this before anything that imports structlog.

Wherever rich is installed structlog loads it, for coloured tracebacks that no log of ours has: 4 MB of every chat.
"""

from __future__ import annotations

from bridges.lean import import_without

import_without("rich", "structlog")
