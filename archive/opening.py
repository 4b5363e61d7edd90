"""How files that others wrote are opened: to read their bytes, and only what is a file and comes to an end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_file(path: Path) -> BinaryIO:
    """Open a regular file, links followed. Raises OSError, for a pipe or a device too: reading those may never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", path.name)
    return open(descriptor, "rb")  # noqa: PTH123  (a descriptor, not a path; the caller closes the file)
