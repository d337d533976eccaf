"""The filter of system calls, read as the kernel reads it."""

import errno
import struct

import pytest

from holdfast.core.errors import Unavailable
from holdfast.execution.sandbox.seccomp import ALLOW, ERRNO, KILL, numbers_of, syscall_filter

pytestmark = pytest.mark.req("EXEC-03")

X86, ARM = 0xC000003E, 0xC00000B7
ARCHITECTURES = {"x86_64": X86, "aarch64": ARM}
PERMITTED = {"network": False, "own_user": True, "scoped": True}


def verdict(machine: str, call: str | int, *arguments: int, architecture: int | None = None, **options: bool) -> int:
    """What the filter says to a call."""
    number = call if isinstance(call, int) else numbers_of(machine, [call])[call]
    program = list(struct.iter_unpack("=HBBI", syscall_filter(machine, **(PERMITTED | options))))
    padded = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    data = struct.pack("=IIQ6Q", number, architecture or ARCHITECTURES[machine], 0, *padded)
    at = accumulator = 0
    while True:
        code, if_true, if_false, value = program[at]
        at += 1
        if code == 0x06:
            return value
        if code == 0x20:
            accumulator = struct.unpack_from("=I", data, value)[0]
        elif code == 0x54:
            accumulator &= value
        else:
            held = {0x15: accumulator == value, 0x25: accumulator > value, 0x45: bool(accumulator & value)}[code]
            at += if_true if held else if_false


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize(
    ("call", "arguments", "error"),
    [
        ("ptrace", (), errno.EPERM),
        ("mount", (), errno.EPERM),
        ("setsid", (), errno.EPERM),
        ("clone3", (), errno.ENOSYS),
        ("io_uring_setup", (), errno.ENOSYS),
        ("inotify_add_watch", (), errno.ENOSYS),
        ("splice", (), errno.ENOSYS),
        ("prctl", (4,), errno.EPERM),
        ("ioctl", (0, 0x40305828), errno.EPERM),
        ("fallocate", (), errno.EOPNOTSUPP),
        ("socket", (1,), errno.EACCES),
        ("socket", (2,), errno.EACCES),
        ("socketpair", (1, 2), errno.EACCES),
        ("socketpair", (1, 0o2000002), errno.EACCES),
        ("socketpair", (1, 3), errno.EACCES),
        ("socketpair", (30, 1), errno.EACCES),
        ("clone", (0x10000000,), errno.EPERM),
        ("prlimit64", (77,), errno.EPERM),
        ("openat", (0, 0, 0o1000), errno.EPERM),
        ("openat", (0, 0, 3), errno.EPERM),
        ("openat", (0, 0, 0o1003), errno.EPERM),
        ("fcntl", (0, 8), errno.EPERM),
        ("fcntl", (0, 15), errno.EPERM),
        ("ioctl", (0, 0x8901), errno.EPERM),
        ("ioctl", (0, 0x8902), errno.EPERM),
        ("mmap", (0, 0, 0, 0x21), errno.EPERM),
        ("mmap", (0, 0, 0, 0x122), errno.EPERM),
        ("ioctl", (0, 0x5412), errno.EPERM),
        ("personality", (0x0040000,), errno.EPERM),
        (463, (), errno.ENOSYS),
        (0x40000000, (), errno.ENOSYS),
    ],
)
def test_calls_that_lead_out_of_the_sandbox_are_refused(
    machine: str, call: str | int, arguments: tuple[int, ...], error: int
) -> None:
    assert verdict(machine, call, *arguments) == ERRNO | error


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("clone", (0x11,)),
        ("prlimit64", (0,)),
        ("openat", (0, 0, 0o1101)),
        ("openat", (0, 0, 0)),
        ("openat", (0, 0, 0o1002)),
        ("fcntl", (0, 4)),
        ("prctl", (15,)),
        ("socketpair", (1, 1)),
        ("socketpair", (1, 0o2000005)),
        ("mmap", (0, 0, 0, 0x22)),
        ("mmap", (0, 0, 0, 0x1)),
        ("ioctl", (0, 0x5401)),
        ("personality", (0xFFFFFFFF,)),
        ("kill", ()),
        ("fchmod", ()),
    ],
)
def test_calls_that_programs_need_are_allowed(machine: str, call: str, arguments: tuple[int, ...]) -> None:
    assert verdict(machine, call, *arguments) == ALLOW


def test_internet_sockets_are_allowed_with_the_network_and_unix_sockets_never() -> None:
    families = [verdict("x86_64", "socket", family, network=True) for family in (2, 10, 16, 1, 17)]

    assert families == [ALLOW, ALLOW, ALLOW, ERRNO | errno.EACCES, ERRNO | errno.EACCES]


def test_a_program_of_the_engines_user_changes_no_attributes_and_without_scopes_sends_no_signals() -> None:
    shared = {call: verdict("x86_64", call, own_user=False, scoped=False) for call in ("chmod", "utimensat", "kill")}

    assert shared == {"chmod": ERRNO, "utimensat": ERRNO, "kill": ERRNO | errno.EPERM}
    assert verdict("x86_64", "kill", own_user=False, scoped=True) == ALLOW


def test_calls_of_another_architecture_kill_the_program() -> None:
    assert verdict("x86_64", "kill", architecture=ARM) == KILL


def test_a_cpu_whose_calls_are_not_known_has_no_sandbox() -> None:
    with pytest.raises(Unavailable, match="no sandbox for the CPU riscv64"):
        syscall_filter("riscv64", network=False, own_user=True, scoped=True)
