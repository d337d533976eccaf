"""Starts a program in the sandbox, watches it, and removes all that it leaves. It is a program of its own.

It uses nothing but the standard library, because imports cost time on every run. It reads what to do from a socket,
whose descriptor is its argument, and reports there: that the program has begun, and how it has ended. If the other side
closes the socket, it kills the program.
"""

import contextlib
import ctypes
import errno
import marshal
import os
import resource
import select
import signal
import stat
import struct
import sys
import time
from collections.abc import Generator, Iterator
from typing import Any, Final

CONTROL: Final = 3
LOOK: Final = 0.1  # seconds between two looks at memory and disk
WRITTEN: Final = 16  # a program may write so many times the space that it may use: files can be deleted and still open

_SET_PDEATHSIG, _SET_SECCOMP, _SET_NO_NEW_PRIVS, _SET_CHILD_SUBREAPER = 1, 22, 38, 36
_SET_KEEPCAPS, _AMBIENT, _RAISE, _DAC_READ_SEARCH = 8, 47, 2, 2
_CAPABILITIES = 0x20080522  # the version of their form
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _CLOSE_RANGE = 444, 445, 446, 436
_FILE_RIGHTS = 0b1000000000000111 | 1 << 14  # of Landlock's rights, those that a file can have

libc = ctypes.CDLL(None, use_errno=True)


class StepFailed(Exception):
    """A step of the jail failed. Its text is the report."""


def main() -> None:
    """Run the program of the request, and report."""
    os.dup2(int(sys.argv[1]), CONTROL, inheritable=False)
    libc.syscall(_CLOSE_RANGE, CONTROL + 1, 0xFFFFFFFF, 0)  # uvloop passes on copies of the program's streams
    request = receive()
    report(run(request))
    # If a word of the other side were left unread, the end of this process would destroy the report.
    while os.read(CONTROL, 64):
        pass


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Run the program to its end, and return the last report."""
    begun = time.monotonic()
    try:
        pid = start(request)
        report({"pid": pid})
        for standard in (0, 1, 2):  # the program alone holds them: its readers see when it closes them
            os.dup2(os.open(os.devnull, os.O_RDWR), standard)
        reason, status, usage = watch(pid, request, begun)
    except (StepFailed, OSError) as error:
        return {"error": str(error)}
    finally:
        remove_folder(request["folder"])
    return {"reason": reason, "status": status, "seconds": time.monotonic() - begun, **usage}


def receive() -> dict[str, Any]:
    """Read the request."""
    size = struct.unpack("=I", _read(4))[0]
    return marshal.loads(_read(size))


def _read(size: int) -> bytes:
    read = b""
    while len(read) < size:
        piece = os.read(CONTROL, size - len(read))
        if not piece:
            sys.exit(1)
        read += piece
    return read


def report(message: dict[str, Any]) -> None:
    """Write a message, unless nobody reads any more."""
    data = marshal.dumps(message)
    with contextlib.suppress(OSError):
        os.write(CONTROL, struct.pack("=I", len(data)) + data)


def start(request: dict[str, Any]) -> int:
    """Start the program in its jail, and return its process id."""
    libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what the program leaves becomes a child of this process
    told, telling = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            enter(request)
            os.execve(request["command"][0], request["command"], request["environment"])
        except StepFailed as error:
            os.write(telling, str(error).encode())
        except OSError as error:
            os.write(telling, f"{request['command'][0]} cannot be run: {error.strerror}".encode())
        except Exception as error:  # noqa: BLE001 - nobody else would tell it
            os.write(telling, f"the jail cannot be set up: {error!r}".encode())
        finally:
            os._exit(127)
    os.close(telling)
    failure = os.read(told, 4096)
    os.close(told)
    if failure:
        os.waitpid(pid, 0)
        raise StepFailed(failure.decode())
    return pid


def enter(request: dict[str, Any]) -> None:
    """Give up everything that the program must not have. Nothing here works partly: a step that fails ends it."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and the program would inherit it
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.setsid()
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # if memory runs out, this program goes first
    ruleset = landlock_rules(request)
    for limit, value in request["rlimits"]:
        set_limit(limit, value)
    # The kernel counts the threads of a user. Without a user of its own, the program shares the count with the engine.
    threads = request["processes"] + (0 if request["uid"] is not None else own_threads())
    set_limit(resource.RLIMIT_NPROC, threads)
    os.umask(0o077)
    if request["uid"] is not None:
        change_user(request["uid"], keep_search=needs_search(request))
    check("prctl(NO_NEW_PRIVS)", libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    check("prctl(PDEATHSIG)", libc.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    check("Landlock", libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.chdir(request["folder"])
    check("close_range", libc.syscall(_CLOSE_RANGE, 3, 0xFFFFFFFF, 4))  # 4: when the program starts
    load_filter(request["filter"])


def set_limit(limit: int, value: int) -> None:
    """Set a limit, or leave the lower one that this process has."""
    most = resource.getrlimit(limit)[1]
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(limit, (value, value))


def landlock_rules(request: dict[str, Any]) -> int:
    """Return the descriptor of the rules on files, and of the scopes of signals and sockets."""
    abi: int = request["landlock"]
    if abi < 1:
        raise StepFailed("Landlock failed: this kernel does not have it, or it is switched off")
    every = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}.get(abi, (1 << 16) - 1)
    connections = 0 if request["network"] or abi < 4 else 3
    scopes = 3 if abi >= 6 else 0
    attributes = struct.pack("=QQQ", every, connections, scopes)[: 8 if abi < 4 else 16 if abi < 6 else 24]
    ruleset: int = libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    check("Landlock", ruleset)
    reads = 0b1101  # execute, read files, read folders
    for paths, rights in ((request["readable"], reads), (request["writable"], every), (request["devices"], 0b110)):
        for path in paths:
            try:
                place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            allowed = rights if stat.S_ISDIR(os.fstat(place).st_mode) else rights & _FILE_RIGHTS
            rule = struct.pack("=Qi", allowed & every, place)
            check(f"Landlock for {path}", libc.syscall(_ADD_RULE, ruleset, 1, rule, 0))
            os.close(place)
    return ruleset


def needs_search(request: dict[str, Any]) -> bool:
    """Whether other users cannot reach a folder that the program reads, such as an interpreter below /root."""
    for path in (*request["readable"], *request["writable"]):
        above = os.path.dirname(os.path.realpath(path))
        while True:
            with contextlib.suppress(FileNotFoundError):
                if not os.stat(above).st_mode & stat.S_IXOTH:
                    return True
            if above == "/":
                break
            above = os.path.dirname(above)
    return False


def own_threads() -> int:
    """Return the number of threads of this process's user."""
    count, user = 0, os.getuid()
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == user:
                count += int(_text(f"/proc/{name}/stat").rpartition(b")")[2].split()[17])
    return count


def change_user(uid: int, *, keep_search: bool) -> None:
    """Become a user who owns nothing. With `keep_search`, keep the right to reach folders: Landlock decides on them."""
    try:
        libc.prctl(_SET_KEEPCAPS, int(keep_search), 0, 0, 0)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    except OSError as error:
        raise StepFailed(f"the process may not change its user: {error.strerror}") from None
    if keep_search:
        kept = 1 << _DAC_READ_SEARCH
        check(
            "capset", libc.capset(struct.pack("=Ii", _CAPABILITIES, 0), struct.pack("=6I", kept, kept, kept, 0, 0, 0))
        )
        check("prctl(CAP_AMBIENT)", libc.prctl(_AMBIENT, _RAISE, _DAC_READ_SEARCH, 0, 0))


def keep_effective(capability: int) -> None:
    """Take a capability back into use that this process may have."""
    header, data = struct.pack("=Ii", _CAPABILITIES, 0), ctypes.create_string_buffer(24)
    check("capget", libc.capget(header, data))
    effective, permitted, *rest = struct.unpack("=6I", data.raw)
    effective |= permitted & 1 << capability
    check("capset", libc.capset(header, struct.pack("=6I", effective, permitted, *rest)))


def load_filter(program: bytes) -> None:
    """Install the filter of system calls. Nothing can remove it."""

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]

    loaded = Program(len(program) // 8, program)
    check("seccomp", libc.prctl(_SET_SECCOMP, 2, ctypes.byref(loaded), 0, 0))


def check(what: str, result: int) -> None:
    """Raise if a system call failed."""
    if result < 0:
        code = ctypes.get_errno()
        missing = " (this kernel does not have it, or it is switched off)"
        absent = code in (errno.ENOSYS, errno.EOPNOTSUPP)
        raise StepFailed(f"{what} failed: {os.strerror(code)}{missing if absent else ''}")


def watch(pid: int, request: dict[str, Any], begun: float) -> tuple[str | None, int, dict[str, float]]:
    """Wait for the program, and kill it with all its processes when it has ended or passes a limit."""
    ended = os.pidfd_open(pid)
    until = None if request["seconds"] is None else begun + request["seconds"]
    reason, peak, look = None, 0, Look(pid, request)

    def notice(*_: object) -> None:
        reap_orphans(pid)

    signal.signal(signal.SIGCHLD, notice)
    poll = select.poll()
    poll.register(CONTROL, select.POLLIN)
    poll.register(ended, select.POLLIN)
    while reason is None:
        left = LOOK if until is None else min(LOOK, until - time.monotonic())
        found = dict(poll.poll(max(0.0, 1000 * left)))
        if ended in found:
            break
        if CONTROL in found:
            reason = "stopped"
        elif until is not None and time.monotonic() >= until:
            reason = "time"
        else:
            reason, used = look.passed_limit()
            peak = max(peak, used)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    kill_group(pid)
    status = 0
    with contextlib.suppress(ChildProcessError):
        while True:  # the orphans of the program are children of this process
            one, how = os.waitpid(-1, 0)
            if one == pid:
                status = how
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        reason,
        os.waitstatus_to_exitcode(status),
        {
            "cpu": used.ru_utime + used.ru_stime,
            "memory": max(peak, used.ru_maxrss * 1024),
        },
    )


def reap_orphans(pid: int) -> None:
    """Take notice of the end of orphans while the program runs: until then, they count as its processes."""
    with contextlib.suppress(ChildProcessError):
        while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if found.si_pid == pid:  # its end is for `watch`, which ends the others, too
                break
            os.waitpid(found.si_pid, 0)


def kill_group(pid: int) -> None:
    """Kill all processes of the program: none can leave its group. Its id is taken until it has been waited for."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


class Look:
    """What the processes of a program use together. Each look replaces the one before."""

    def __init__(self, pid: int, request: dict[str, Any]) -> None:
        self._pid = pid
        self._request = request
        self._folder = os.fsencode(os.path.realpath(request["folder"]) + "/")
        self._written = self._gone = 0  # bytes that processes wrote: those that are there, and those that are gone
        self._hidden = set[int]()  # processes that could not be looked into
        self._hides = False

    def passed_limit(self) -> tuple[str | None, int]:
        """Return the limit that is passed, and the memory in use. What cannot be looked into passes its limit."""
        request = self._request
        with as_user(request["uid"]):
            memory, count, written, deleted = self._add_up()
        self._gone += max(0, self._written - written)  # a parent takes over what its child wrote, or nobody does
        self._written = written
        if memory > request["memory"]:
            return "memory", memory
        if count > request["processes"]:
            return "processes", memory
        if request["space"] is not None:
            files, space = size_of(request["folder"], request["files"])
            if files > request["files"]:
                return "files", memory
            if self._hides or space + deleted > request["space"] or written + self._gone > WRITTEN * request["space"]:
                return "disk", memory
        return None, memory

    def _add_up(self) -> tuple[int, int, int, int]:
        memory = count = written = 0
        deleted: dict[tuple[int, int, int | None], int] = {}
        hidden = set[int]()
        for each in tree(self._pid):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                status = _text(f"/proc/{each}/status")
                if b"\nState:\tZ" in status:  # it has ended, and only its parent has not looked
                    continue
                count += 1
                memory += memory_of(status)
                if self._request["space"] is None:
                    continue
                try:
                    written += written_by(_text(f"/proc/{each}/io"))
                    deleted |= deleted_files(each, self._folder)
                except PermissionError:
                    hidden.add(each)
        self._hides = bool(hidden & self._hidden)  # a process that is about to end cannot be looked into, either
        self._hidden = hidden
        held = {key[:2] for key in deleted if key[2] is None}
        space = sum(size for key, size in deleted.items() if key[2] is None or key[:2] not in held)
        return memory, count, written, space


def written_by(io: bytes) -> int:
    """Return the bytes that a process wrote: by calls, or by storing into memory that is a file."""
    fields = dict(line.split(b": ") for line in io.splitlines())
    return max(int(fields[b"wchar"]), int(fields[b"write_bytes"]))


def deleted_files(pid: int, folder: bytes) -> dict[tuple[int, int, int | None], int]:
    """Return the space of the files that a process has deleted and still holds, by device, number and place in memory.

    Files as memory count as far as they are mapped. Those that are open have no place.
    """
    found: dict[tuple[int, int, int | None], int] = {}
    for line in _text(f"/proc/{pid}/maps").splitlines():
        if line.endswith(b" (deleted)") and folder in line:
            place, _, offset, device, inode, *_ = line.split()
            first, last = (int(each, 16) for each in place.split(b"-"))
            major, minor = (int(each, 16) for each in device.split(b":"))
            found[os.makedev(major, minor), int(inode), int(offset, 16)] = last - first
    for thread in os.listdir(f"/proc/{pid}/task"):  # a thread can have descriptors of its own
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for entry in os.scandir(f"/proc/{pid}/task/{thread}/fd"):
                with contextlib.suppress(FileNotFoundError):
                    held = entry.stat()
                    if held.st_nlink == 0 and stat.S_ISREG(held.st_mode):
                        found[held.st_dev, held.st_ino, None] = held.st_blocks * 512
    return found


def memory_of(status: bytes) -> int:
    """Return the bytes that belong to a process: its own pages, those that it shares, and the tables that list them."""
    counted = (b"RssAnon:", b"RssShmem:", b"VmSwap:", b"VmPTE:")
    return sum(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(counted))


@contextlib.contextmanager
def as_user(uid: int | None) -> Generator[None]:
    """Look with the rights of the program's user: what processes write is shown to their user only."""
    if uid is not None:
        libc.setfsuid(uid)
        libc.setfsgid(uid)
        keep_effective(_DAC_READ_SEARCH)  # the kernel shows a process to those who may do all that it may
    try:
        yield
    finally:
        if uid is not None:
            libc.setfsuid(0)
            libc.setfsgid(0)


def tree(pid: int) -> Iterator[int]:
    """Yield a process, its descendants, and the orphans that this process has adopted."""
    left = {pid, *_children(os.getpid())}
    while left:
        one = left.pop()
        yield one
        left |= _children(one)


def _children(pid: int) -> set[int]:
    found = set[int]()
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            found |= {int(child) for child in _text(f"/proc/{pid}/task/{thread}/children").split()}
    return found


def _text(path: str) -> bytes:
    with open(path, "rb") as file:  # a process can have any bytes as its name
        return file.read()


def size_of(folder: str, most: int) -> tuple[int, int]:
    """Return the number of files below a folder and the space that they take. Stop soon after `most` files.

    A folder that cannot be looked into, such as one whose path is too long, counts as more.
    """
    files = space = 0
    left = [folder]
    while left and files <= most:
        try:
            with os.scandir(left.pop()) as found:
                for entry in found:
                    files += 1
                    with contextlib.suppress(FileNotFoundError):
                        space += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            left.append(entry.path)
                    if files > most:
                        break
        except (FileNotFoundError, NotADirectoryError):  # the program has removed it
            continue
        except OSError:
            return most + 1, space
    return files, space


def remove_folder(folder: str) -> None:
    """Remove a folder and everything in it, however deep: folders in folders are moved up, so no path gets long."""
    with contextlib.suppress(FileNotFoundError):
        os.chmod(folder, 0o700)
        while entries := list(os.scandir(folder)):
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    os.unlink(entry.path)
                    continue
                os.chmod(entry.path, 0o700)
                for inner in os.scandir(entry.path):
                    if inner.is_dir(follow_symlinks=False):
                        os.chmod(inner.path, 0o700)  # a folder that is moved must be writable
                        os.rename(inner.path, f"{folder}/{os.urandom(16).hex()}")
                    else:
                        os.unlink(inner.path)
                os.rmdir(entry.path)
        os.rmdir(folder)


if __name__ == "__main__":
    main()
