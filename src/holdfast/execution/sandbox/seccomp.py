"""The filter of system calls of a sandboxed program, as the kernel reads it. Building it is pure.

Calls are allowed unless a rule refuses them. Calls that are newer than this list do not exist for the program: a new
kernel opens nothing.
"""

import errno
import struct
from collections.abc import Iterable

from holdfast.core.errors import Unavailable

NEWEST = 462  # the last call that was reviewed (mseal, Linux 6.10)
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_LOAD, _EQUAL, _ABOVE, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets of what the kernel passes to a filter
_NAMESPACES = 0x7E020000  # the flags of clone that make namespaces
_SHARED_ANONYMOUS, _GROWS_DOWN = 0x21, 0x100  # memory that no limit counts
_TRUNCATE, _ACCESS_MODE = 0o1000, 3
_SET_OWNER, _SET_OWNER_EX = 8, 15  # fcntl: the process that gets a signal when data arrives
_SET_DUMPABLE = 4  # prctl: hide what the process does
_RESERVATIONS = (0x40305828, 0x4030582A, 0x40305839)  # ioctl: take space of the disk, as fallocate does
_OWNER_IOCTLS = (0x8901, 0x8902)  # the same for sockets
_INET, _INET6, _NETLINK = 2, 10, 16
_UNIX, _KIND, _STREAM, _SEQUENCED = 1, 0xF, 1, 5  # of sockets; flags are beside the kind
_TERMINAL_INPUT = (0x5412, 0x541C)  # ioctl: type into a terminal

# The numbers of calls on x86-64 and on ARM64; None: there is no such call.
Numbers = dict[str, tuple[int | None, int | None]]
_OTHER_PROCESSES: Numbers = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "sched_setaffinity": (203, 122),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "setsid": (112, 157),  # with these two, a process could leave the group that is killed at the end
    "setpgid": (109, 154),
}
_KERNEL: Numbers = {
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "lsm_set_self_attr": (460, 460),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "_sysctl": (156, None),
}
_SHARED: Numbers = {  # memory and queues that outlive a process, or that no limit counts
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mq_notify": (244, 184),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "truncate": (76, 45),  # Landlock does not know it before Linux 6.2; ftruncate needs an open file
}
_ABSENT: Numbers = {  # programs fall back to older calls, whose arguments a filter can read
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_setup": (206, 0),
    "io_submit": (209, 2),
    "clone3": (435, 435),
    "openat2": (437, 437),
    "splice": (275, 76),  # it writes what no limit counts
    "tee": (276, 77),
    "vmsplice": (278, 75),
    "inotify_init": (253, None),  # Landlock does not know it: it tells the names of files in other folders
    "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27),
}
_UNSUPPORTED: Numbers = {
    "fallocate": (285, 47),  # takes space of the disk that no limit counts
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
}
_ATTRIBUTES: Numbers = {  # Landlock does not know them: they would change files of the engine's own user
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
}
_PLAIN: Numbers = {"read": (0, 63)}  # no rule is about it: the attacks use its number
_SIGNALS: Numbers = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
}
_CHECKED: Numbers = {
    "socket": (41, 198),
    "clone": (56, 220),
    "mmap": (9, 222),
    "prlimit64": (302, 261),
    "open": (2, None),
    "openat": (257, 56),
    "ioctl": (16, 29),
    "fcntl": (72, 25),
    "socketpair": (53, 199),
    "prctl": (157, 167),
    "personality": (135, 92),
}

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, value


def syscall_filter(machine: str, *, network: bool, own_user: bool, scoped: bool) -> bytes:
    """Return the filter for a kind of CPU.

    `network`: internet sockets are allowed. `own_user`: the program has a user of its own, so it may change attributes
    of files. `scoped`: the kernel confines signals (Landlock 6); otherwise a program of the engine's user sends none.
    """
    if machine not in _MACHINES:
        raise Unavailable(
            f"there is no sandbox for the CPU {machine}",
            why=f"the numbers of its system calls are not known; known are {', '.join(_MACHINES)}",
            next="Run scripts on such a machine, or offer them as functions of an app or as REST services.",
        )
    column, architecture = _MACHINES[machine]
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        _give(KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_ABOVE, 0, 1, NEWEST),
        _give(ERRNO | errno.ENOSYS),
    ]

    def rule(number: int | None, body: list[Instruction]) -> None:
        if number is not None:
            program.extend([(_EQUAL, 0, len(body), number), *body])

    for name, body in _checks(network).items():
        rule(_CHECKED[name][column], body)
    refused = {errno.EPERM: [_OTHER_PROCESSES, _KERNEL, _SHARED], errno.ENOSYS: [_ABSENT]}
    refused[errno.EOPNOTSUPP] = [_UNSUPPORTED]
    if not own_user:
        refused[0] = [_ATTRIBUTES]  # they succeed and do nothing: programs that copy files do not fail
    if not own_user and not scoped:
        refused[errno.EPERM].append(_SIGNALS)
    for code, tables in refused.items():
        for table in tables:
            for numbers in table.values():
                rule(numbers[column], [_give(ERRNO | code)])
    program.append(_give(ALLOW))
    return b"".join(struct.pack("=HBBI", *each) for each in program)


def numbers_of(machine: str, names: Iterable[str]) -> dict[str, int]:
    """Return the numbers of some system calls on a kind of CPU."""
    known = _OTHER_PROCESSES | _KERNEL | _SHARED | _ABSENT | _UNSUPPORTED | _ATTRIBUTES | _SIGNALS | _CHECKED | _PLAIN
    column = _MACHINES[machine][0] if machine in _MACHINES else 0
    return {name: number for name in names if (number := known[name][column]) is not None}


def _checks(network: bool) -> dict[str, list[Instruction]]:
    """Return the rules of calls that depend on an argument."""
    refuse = _give(ERRNO | errno.EPERM)
    no_right = [  # Landlock asks for no right to truncate before Linux 6.2, and for none with access mode 3
        (_AND, 0, 0, _TRUNCATE | _ACCESS_MODE),
        (_EQUAL, 2, 0, _TRUNCATE),
        (_AND, 0, 0, _ACCESS_MODE),
        (_EQUAL, 0, 1, _ACCESS_MODE),
        refuse,
        _give(ALLOW),
    ]
    return {
        "socket": _only(0, (_INET, _INET6, _NETLINK) if network else (), ERRNO | errno.EACCES),
        "socketpair": [  # a datagram socket of a pair can send to any path
            _argument(0),
            (_EQUAL, 0, 4, _UNIX),
            _argument(1),
            (_AND, 0, 0, _KIND),
            (_EQUAL, 2, 0, _STREAM),
            (_EQUAL, 1, 0, _SEQUENCED),
            _give(ERRNO | errno.EACCES),
            _give(ALLOW),
        ],
        "clone": [_argument(0), (_ANY_BIT, 0, 1, _NAMESPACES), refuse, _give(ALLOW)],
        "mmap": [
            _argument(3),
            (_ANY_BIT, 3, 0, _GROWS_DOWN),
            (_AND, 0, 0, _SHARED_ANONYMOUS),
            (_EQUAL, 1, 0, _SHARED_ANONYMOUS),
            _give(ALLOW),
            refuse,
        ],
        "prlimit64": _only(0, (0,), ERRNO | errno.EPERM),  # 0: its own limits
        "open": [_argument(1), *no_right],
        "openat": [_argument(2), *no_right],
        "ioctl": _all_but(1, (*_TERMINAL_INPUT, *_OWNER_IOCTLS, *_RESERVATIONS), ERRNO | errno.EPERM),
        "fcntl": _all_but(1, (_SET_OWNER, _SET_OWNER_EX), ERRNO | errno.EPERM),  # Landlock: since Linux 6.12
        "prctl": _all_but(0, (_SET_DUMPABLE,), ERRNO | errno.EPERM),
        "personality": _only(0, (0, 0xFFFFFFFF), ERRNO | errno.EPERM),
    }


def _only(argument: int, values: Iterable[int], otherwise: int) -> list[Instruction]:
    checks = [step for each in values for step in ((_EQUAL, 0, 1, each), _give(ALLOW))]
    return [_argument(argument), *checks, _give(otherwise)]


def _all_but(argument: int, values: Iterable[int], otherwise: int) -> list[Instruction]:
    checks = [step for each in values for step in ((_EQUAL, 0, 1, each), _give(otherwise))]
    return [_argument(argument), *checks, _give(ALLOW)]


def _argument(number: int) -> Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * number)


def _give(action: int) -> Instruction:
    return (_RETURN, 0, 0, action)
