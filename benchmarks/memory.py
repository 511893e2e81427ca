"""How much memory this process has held at most."""

from __future__ import annotations

import sys
from pathlib import Path


def peak_mb() -> float:
    """In MB, 0 where it cannot be known. Linux hands the peak of `getrusage` down to a child, so its own count is read there."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 2**10
    try:
        import resource
    except ImportError:  # not on Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
