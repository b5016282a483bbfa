"""Take away from Python what it lacks on Windows, then run a command of ``stateyard``.

``python -m tests.acceptance.windows_like up --port 0`` is the server without modules, functions and
signals that POSIX alone has. Python's own library keeps its imports: on Windows it has others. What
it looks up late, such as ``select.epoll`` of its event loop, has to stay.
"""

from __future__ import annotations

import asyncio
import builtins
import multiprocessing.pool  # noqa: F401 - it looks for what is taken away when it is imported
import os
import select
import signal
import socket
import subprocess  # noqa: F401 - as above
import sysconfig
from functools import partial
from typing import Any

MODULES = frozenset(
    {
        *("crypt", "curses", "fcntl", "grp", "nis", "posix", "pty", "pwd", "readline"),
        *("resource", "spwd", "syslog", "termios", "tty", "uvloop"),
    }
)
"""Modules that Windows has not, or that are not published for it."""
OF_OS = frozenset(
    {
        *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "chown", "fchdir", "fchown"),
        *("fdatasync", "fork", "forkpty", "getegid", "geteuid", "getgid", "getgroups"),
        *("getloadavg", "getpgid", "getpgrp", "getsid", "getuid", "killpg", "lchown", "mkfifo"),
        *("nice", "openpty", "pathconf", "posix_spawn", "posix_spawnp", "pread", "preadv"),
        *("pwrite", "pwritev", "register_at_fork", "sched_getaffinity", "sched_setaffinity"),
        *("sched_yield", "sendfile", "setpgid", "setsid", "setuid", "statvfs", "sync", "sysconf"),
        *("ttyname", "uname", "wait", "wait3", "wait4", "waitid"),
    }
)
OF_SIGNAL = frozenset(
    {
        *("ITIMER_PROF", "ITIMER_REAL", "SIGALRM", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGKILL"),
        *("SIGPIPE", "SIGPROF", "SIGQUIT", "SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGUSR1"),
        *("SIGUSR2", "SIGVTALRM", "SIGWINCH", "alarm", "getitimer", "pause", "pthread_kill"),
        *("pthread_sigmask", "setitimer", "siginterrupt", "sigwait"),
    }
)
OF_SELECT = frozenset({"devpoll", "kqueue", "poll"})
_HAVE_ANOTHER_WAY = ("django.core.files.locks",)
"""Modules that ask ``os.name`` and do the same there by other means."""
_LIBRARY = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))


def _may_have(importing: dict[str, Any]) -> bool:
    """Return whether a module is Python's own, which imports something else on Windows."""
    name, file = str(importing.get("__name__", "")), str(importing.get("__file__") or "")
    if not file:
        return name != "__main__"  # frozen, as Python's own loader is
    return name in _HAVE_ANOTHER_WAY or (file.startswith(_LIBRARY) and "site-packages" not in file)


def be_like_windows() -> None:
    """Take all of it away from this process."""
    import_module = builtins.__import__

    def checked_import(name: str, globals: Any = None, *more: Any, **named: Any) -> Any:  # noqa: A002
        if name.partition(".")[0] in MODULES and not _may_have(globals or {}):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return import_module(name, globals, *more, **named)

    builtins.__import__ = checked_import
    for module, names in ((os, OF_OS), (signal, OF_SIGNAL), (select, OF_SELECT)):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    socket.socketpair = partial(socket.socketpair, socket.AF_UNIX)
    del socket.AF_UNIX
    # the loop of Windows takes no handlers of signals
    loops: Any = asyncio.SelectorEventLoop
    loops.add_signal_handler = loops.remove_signal_handler = _refuse


def _refuse(*_: Any) -> None:
    raise NotImplementedError


if __name__ == "__main__":
    be_like_windows()
    from console.command_line import main

    main()
