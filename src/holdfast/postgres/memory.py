"""How much of the machine's memory the embedded server may use."""

import os
from pathlib import Path

MEGABYTE = 1024 * 1024


def memory_settings(memory: int) -> dict[str, str]:
    """PostgreSQL's settings for so many bytes of memory: an eighth for its own cache, the rest left to the system's."""
    return {
        "shared_buffers": f"{_between(memory // 8, 32, 8192)}MB",
        "effective_cache_size": f"{_between(memory // 2, 64, 1 << 20)}MB",
        "maintenance_work_mem": f"{_between(memory // 32, 16, 2048)}MB",
        "work_mem": f"{_between(memory // 512, 4, 64)}MB",
    }


def machine_memory() -> int:
    """Bytes of memory of this machine, within the limit of the control group if there is one."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total


def _between(size: int, least: int, most: int) -> int:
    return max(least, min(most, size // MEGABYTE))
