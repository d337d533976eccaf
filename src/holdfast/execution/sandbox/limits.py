"""The limits of a sandboxed program."""

import resource
from dataclasses import dataclass

MEGABYTE = 1024 * 1024
DESCRIPTORS = 256  # open files per process


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """What a program may use. `seconds`: how long it may run; None: until it is stopped.

    The kernel enforces `cpu_seconds`, `memory_mb` and the size of a file for each process, and `processes` for all of
    them, threads included. Ten times a second, the launcher compares the memory of all processes together, and the
    number and size of the files in the work folder. `disk_mb` None: the work folder is not limited.
    """

    seconds: float | None = 30.0
    cpu_seconds: int | None = 30
    memory_mb: int = 512
    processes: int = 64
    files: int = 1000
    disk_mb: int | None = 64
    output_bytes: int = 4 * MEGABYTE

    @property
    def rlimits(self) -> list[tuple[int, int]]:
        """The limits that the kernel holds for each process."""
        limits = [
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_NOFILE, DESCRIPTORS),
            (resource.RLIMIT_DATA, self.memory_mb * MEGABYTE),
            (resource.RLIMIT_MEMLOCK, 0),
        ]
        if self.cpu_seconds is not None:
            limits.append((resource.RLIMIT_CPU, self.cpu_seconds))
        if self.disk_mb is not None:
            limits.append((resource.RLIMIT_FSIZE, self.disk_mb * MEGABYTE))
        return limits
