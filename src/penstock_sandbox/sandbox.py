"""Confines a process that decodes hostile bytes: Landlock, seccomp and limits, as far as the kernel has them.

Only for Linux on x86_64 and aarch64. Elsewhere `confine` sets the limits and reports that the rest is missing.
All knowledge of system calls is in this module. docs/decisions/0033 says when to replace it by a library.
"""

import ctypes
import functools
import json
import os
import platform
import socket
import struct
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from errno import ENOSYS, ENOTTY, EPERM
from pathlib import Path
from typing import Any, Final

# -- system calls: name, number on x86_64, and number on aarch64 if the call exists there


def _read_table(text: str) -> dict[str, tuple[int, ...]]:
    rows = (row.split() for row in text.split(","))
    return {name: tuple(int(number) for number in numbers if number != "-") for name, *numbers in rows}


COMPUTING: Final = _read_table("""
    read 0 63, write 1 64, close 3 57, fstat 5 80, lseek 8 62, mmap 9 222, mprotect 10 226, munmap 11 215,
    brk 12 214, rt_sigaction 13 134, readv 19 65, rt_sigprocmask 14 135, rt_sigreturn 15 139, pread64 17 67,
    writev 20 66, sched_yield 24 124, mremap 25 216, madvise 28 233, dup 32 23, getpid 39 172, nanosleep 35 101,
    exit 60 93, uname 63 160, getcwd 79 17, gettimeofday 96 169, getrusage 98 165, sysinfo 99 179,
    times 100 153, getuid 102 174, getgid 104 176, geteuid 107 175, getegid 108 177, getppid 110 173,
    sigaltstack 131 132, gettid 186 178, futex 202 98, sched_getaffinity 204 123, set_tid_address 218 96,
    restart_syscall 219 128, clock_gettime 228 113, clock_getres 229 114, clock_nanosleep 230 115,
    exit_group 231 94, newfstatat 262 79, set_robust_list 273 99, getrandom 318 278, membarrier 324 283,
    rseq 334 293, poll 7 -, ppoll 271 73, statx 332 291
""")
"""System calls for decoding an open file. None reaches another process, the network or a path's content."""
OPENING: Final = _read_table("""
    open 2 -, stat 4 -, lstat 6 -, access 21 -, readlink 89 -, openat 257 56, getdents64 217 61, readlinkat 267 78,
    faccessat 269 48, faccessat2 439 439
""")
"""System calls for a late import, allowed only where Landlock restricts the files."""
DANGEROUS: Final = _read_table("""
    socket 41 198, connect 42 203, accept 43 202, bind 49 200, listen 50 201, socketpair 53 199, accept4 288 242,
    execve 59 221, execveat 322 281, ptrace 101 117, process_vm_readv 310 270, process_vm_writev 311 271,
    kill 62 129, tkill 200 130, pidfd_open 434 434, pidfd_getfd 438 438, pidfd_send_signal 424 424,
    io_uring_setup 425 425, io_uring_enter 426 426, io_uring_register 427 427, bpf 321 280,
    perf_event_open 298 241, userfaultfd 323 282, keyctl 250 219, add_key 248 217, request_key 249 218,
    unshare 272 97, setns 308 268, mount 165 40, umount2 166 39, pivot_root 155 41, chroot 161 51,
    open_by_handle_at 304 265, init_module 175 105, finit_module 313 273, fork 57 -, vfork 58 -,
    kexec_load 246 104, syslog 103 116, sethostname 170 161
""")
"""System calls that no engine needs. All others are allowed."""
CLONE: Final = (56, 220)
CLONE3: Final = (435, 435)
IOCTL: Final = (16, 29)
CLONE_THREAD: Final = 0x00010000
MACHINES: Final = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}
"""By machine: the column of the tables, the kernel's name of the architecture, and the call `seccomp`."""
X32_BIT: Final = 0x40000000
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
SECCOMP_SET_MODE_FILTER, SECCOMP_GET_ACTION_AVAIL = 1, 2
ALLOW, KILL, REFUSE = 0x7FFF0000, 0x80000000, 0x00050000

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
CHANGES: Final = 0b11111_11110000
"""Landlock's first version: remove and make entries of every kind."""
REFER, TRUNCATE, IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
BIND_TCP, CONNECT_TCP = 1, 2
SCOPES: Final = 0b11
"""From version 6 on: no abstract sockets and no signals of processes outside."""

SYSTEM_LIBRARIES: Final = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
SURVEY_SECONDS: Final = 60.0
O_PATH: Final = getattr(os, "O_PATH", 0)


@dataclass(frozen=True, slots=True)
class Confinement:
    """The walls around a process. `landlock` is its version, 0 for none."""

    landlock: int
    seccomp: bool
    no_new_privileges: bool

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the absent walls."""
        walls = {"Landlock": self.landlock > 0, "seccomp": self.seccomp, "no_new_privs": self.no_new_privileges}
        return tuple(name for name, stands in walls.items() if not stands)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits of a process. `cpu_seconds` is exact, as a new process starts at zero."""

    cpu_seconds: int
    memory_bytes: int
    file_bytes: int = 0
    open_files: int = 64


NOTHING: Final = Confinement(0, seccomp=False, no_new_privileges=False)


@functools.cache
def survey() -> Confinement:
    """Return the walls that this kernel offers, found by a process started for that.

    A filter around this process, such as a service manager's, may kill a process for asking.
    """
    command = [sys.executable, "-P", "-m", "penstock_sandbox.sandbox"]
    try:
        found = subprocess.run(command, capture_output=True, timeout=SURVEY_SECONDS, check=True).stdout  # noqa: S603  ours
        return Confinement(**json.loads(found))
    except (OSError, ValueError, subprocess.SubprocessError):
        return NOTHING


def survey_forked() -> Confinement:
    """Like `survey`, but in a fork of this process, which must have no threads."""
    answers, answer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(answer, json.dumps(asdict(look_around())).encode())
        os._exit(0)
    os.close(answer)
    with os.fdopen(answers, "rb") as pipe:
        found = pipe.read()
    _, status = os.waitpid(child, 0)
    return Confinement(**json.loads(found)) if status == 0 else NOTHING


def look_around() -> Confinement:
    """Return the walls that this kernel offers. A filter around this process may kill it for asking."""
    machine = _machine()
    if machine is None:
        return NOTHING
    wanted = ctypes.c_uint(REFUSE)
    seccomp = _call(machine[2], SECCOMP_GET_ACTION_AVAIL, 0, ctypes.byref(wanted)) == 0
    return Confinement(_landlock_version(), seccomp, no_new_privileges=True)


def confine(offered: Confinement, *, readable: Iterable[str], threads: bool) -> Confinement:
    """Confine this process for good to computing on its open files, and to reading below the paths.

    Without Landlock it can open no file at all, so all imports must come before.
    """
    machine = _machine()
    if machine is None or not offered.no_new_privileges:
        return NOTHING
    no_new_privileges = _prctl(PR_SET_NO_NEW_PRIVS, 1) == 0
    _prctl(PR_SET_DUMPABLE, 0)
    landlock = _restrict_files(readable, writable=()) if offered.landlock else 0
    if not offered.seccomp:
        return Confinement(landlock, seccomp=False, no_new_privileges=no_new_privileges)
    column, architecture, _ = machine
    calls = COMPUTING | (OPENING if landlock else {})
    rules = [_Rule(number, ALLOW) for number in _numbers(calls, column)]
    rules += [_Rule(IOCTL[column], REFUSE | ENOTTY), _Rule(CLONE3[column], REFUSE | ENOSYS)]
    rules += [_Rule(CLONE[column], ALLOW, CLONE_THREAD)] if threads else []
    seccomp = _filter(machine, _assemble(architecture, rules, REFUSE | EPERM))
    return Confinement(landlock, seccomp, no_new_privileges)


def restrain(offered: Confinement, *, readable: Iterable[str], writable: Iterable[str]) -> Confinement:
    """Cut an engine's process off from the network, other programs and files that are not its own."""
    machine = _machine()
    if machine is None or not offered.no_new_privileges:
        return NOTHING
    no_new_privileges = _prctl(PR_SET_NO_NEW_PRIVS, 1) == 0
    landlock = _restrict_files(readable, writable) if offered.landlock else 0
    if not offered.seccomp:
        return Confinement(landlock, seccomp=False, no_new_privileges=no_new_privileges)
    column, architecture, _ = machine
    rules = [_Rule(number, REFUSE | EPERM) for number in _numbers(DANGEROUS, column)]
    rules += [_Rule(CLONE3[column], REFUSE | ENOSYS), _Rule(CLONE[column], ALLOW, CLONE_THREAD)]
    rules += [_Rule(CLONE[column], REFUSE | EPERM)]
    seccomp = _filter(machine, _assemble(architecture, rules, ALLOW))
    return Confinement(landlock, seccomp, no_new_privileges)


def keep_privileges() -> bool:
    """Give up gaining privileges through setuid programs. Return whether the kernel agreed."""
    return _machine() is not None and _prctl(PR_SET_NO_NEW_PRIVS, 1) == 0


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent ends, where it can."""
    if _machine() is not None:
        _prctl(PR_SET_PDEATHSIG, 9)


def limit(limits: Limits, *, threads: bool) -> None:
    """Set the limits of this process, as far as the platform has them."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415  not on every platform

    wanted = {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": limits.cpu_seconds,
        "RLIMIT_AS": limits.memory_bytes,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": limits.open_files,
        **({} if threads else {"RLIMIT_NPROC": 0}),  # it counts threads, too
    }
    for name, most in wanted.items():
        with suppress(ValueError, OSError, AttributeError):  # a lower one is set, or the platform has none
            hard = (
                most + 1 if name == "RLIMIT_CPU" else most
            )  # the soft limit's signal names the reason, the hard one's does not
            resource.setrlimit(getattr(resource, name), (most, hard))


def library_folders(*more: str) -> list[str]:
    """Return the folders of the interpreter's and this package's code, and `more`, for `readable`."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    variables = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    own = [sysconfig.get_path(name) for name in names] + [sysconfig.get_path(name, vars=variables) for name in names]
    return sorted({*own, *SYSTEM_LIBRARIES, str(Path(__file__).parent), *more})


def try_out() -> dict[str, bool]:
    """Try, inside a confined process, to get out. Return which ways are closed."""
    return {
        "files": _is_refused(lambda: os.close(os.open("/", os.O_RDONLY))),
        "network": _is_refused(lambda: socket.socket().close()),
        "processes": _is_refused(lambda: os.execv(sys.executable, [sys.executable, "-V"])),  # noqa: S606  it is refused
    }


def _is_refused(attempt: Callable[[], None]) -> bool:
    try:
        attempt()
    except PermissionError:
        return True
    return False


# -- Landlock


def _landlock_version() -> int:
    return max(0, _call(LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1)))


def _restrict_files(readable: Iterable[str], writable: Iterable[str]) -> int:
    """Apply Landlock. Return the version in force, 0 for none."""
    version = _landlock_version()
    if version == 0:
        return 0
    changing = WRITE_FILE | CHANGES | (REFER if version >= 2 else 0) | (TRUNCATE if version >= 3 else 0)
    handled = EXECUTE | READ_FILE | READ_DIR | changing | (IOCTL_DEVICE if version >= 5 else 0)
    attributes = [handled]
    attributes += [BIND_TCP | CONNECT_TCP] if version >= 4 else []
    attributes += [SCOPES] if version >= 6 else []
    packed = struct.pack(f"={len(attributes)}Q", *attributes)
    ruleset = _call(LANDLOCK_CREATE, packed, ctypes.c_size_t(len(packed)), ctypes.c_uint32(0))
    if ruleset < 0:
        return 0
    try:
        for path in readable:
            _allow(ruleset, path, READ_FILE | READ_DIR)
        for path in writable:
            _allow(ruleset, path, READ_FILE | READ_DIR | changing)
        return version if _call(LANDLOCK_RESTRICT, ruleset, ctypes.c_uint32(0)) == 0 else 0
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    """Allow access below a path. An absent path needs no rule."""
    with suppress(OSError):
        place = os.open(path, O_PATH | os.O_CLOEXEC)
        try:
            is_folder = Path(path).is_dir()
            access &= ~0 if is_folder else READ_FILE | WRITE_FILE | TRUNCATE
            _call(LANDLOCK_ADD, ruleset, ctypes.c_int(1), struct.pack("=Qi", access, place), ctypes.c_uint32(0))
        finally:
            os.close(place)


# -- seccomp


def _numbers(calls: Mapping[str, tuple[int, ...]], column: int) -> list[int]:
    return sorted(numbers[column] for numbers in calls.values() if column < len(numbers))


@dataclass(frozen=True, slots=True)
class _Rule:
    """An action for a system call. With `bits`, only where its first argument has one of them."""

    number: int
    action: int
    bits: int = 0


_LOAD, _RETURN, _EQUAL, _AT_LEAST, _ANY_BIT = 0x20, 0x06, 0x15, 0x35, 0x45
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16


def _assemble(architecture: int, rules: Sequence[_Rule], otherwise: int) -> list[tuple[int, int, int, int]]:
    """Return the rules as a filter program for the kernel: (code, jump if true, jump if false, constant)."""
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, X32_BIT),  # another call table on x86_64, which could evade the rules
        (_RETURN, 0, 0, REFUSE | EPERM),
    ]
    for rule in rules:
        if rule.bits:
            program += [
                (_EQUAL, 0, 4, rule.number),
                (_LOAD, 0, 0, _FIRST_ARGUMENT),
                (_ANY_BIT, 0, 1, rule.bits),
                (_RETURN, 0, 0, rule.action),
                (_LOAD, 0, 0, _NUMBER),
            ]
        else:
            program += [(_EQUAL, 0, 1, rule.number), (_RETURN, 0, 0, rule.action)]
    return [*program, (_RETURN, 0, 0, otherwise)]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def _filter(machine: tuple[int, int, int], program: Sequence[tuple[int, int, int, int]]) -> bool:
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in program))
    whole = _Program(len(program), ctypes.cast(code, ctypes.c_void_p))
    return _call(machine[2], SECCOMP_SET_MODE_FILTER, 0, ctypes.byref(whole)) == 0


# -- the C library


def _machine() -> tuple[int, int, int] | None:
    if sys.platform != "linux" or sys.maxsize < 2**32 or sys.byteorder != "little":
        return None
    return MACHINES.get(platform.machine())


@functools.cache
def _c_library() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def _call(number: int, *args: Any) -> int:
    """Return the result of a system call, or -1. A seccomp filter around us may refuse any of them."""
    return _c_library().syscall(ctypes.c_long(number), *args)


def _prctl(option: int, value: int) -> int:
    zero = ctypes.c_ulong(0)
    return _c_library().prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(look_around())))
