"""The memory of the machine, and the memory settings of the embedded server."""

import os
from pathlib import Path

MEGABYTE = 1024 * 1024


def settings_for(memory: int) -> dict[str, str]:
    """Return PostgreSQL's settings for `memory` bytes: an eighth is its own cache, the rest is left to the system's."""
    return {
        "shared_buffers": f"{_clamp_megabytes(memory // 8, 32, 8192)}MB",
        "effective_cache_size": f"{_clamp_megabytes(memory // 2, 64, 1 << 20)}MB",
        "maintenance_work_mem": f"{_clamp_megabytes(memory // 32, 16, 2048)}MB",
        "work_mem": f"{_clamp_megabytes(memory // 512, 4, 64)}MB",
    }


def machine_memory() -> int:
    """Return the memory of this machine in bytes, or the limit of the control group if that is lower."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def _clamp_megabytes(size: int, least: int, most: int) -> int:
    return max(least, min(most, size // MEGABYTE))
