"""A fork server: loads the program once, then forks for each command or module. One thread only."""

from __future__ import annotations

import contextlib
import marshal
import os
import resource
import runpy
import selectors
import signal
import socket
import struct
import sys
from typing import NoReturn

LENGTH = struct.Struct("!I")


def main(address: str, *modules: str) -> None:
    """Load the program and these modules, then serve until standard input ends."""
    _load(modules)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(64)
    wakes, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    watch = selectors.DefaultSelector()
    for source in (0, wakes, listening):
        watch.register(source, selectors.EVENT_READ)
    running: dict[int, socket.socket] = {}
    print("ready", flush=True)
    while True:
        for key, _ in watch.select():
            if key.fd == 0:
                for pid in running:
                    os.kill(pid, signal.SIGKILL)
                return
            if key.fd == wakes:
                os.read(wakes, 4096)
                _reap(running, watch)
            elif key.fileobj is listening:
                caller, _ = listening.accept()
                running[_fork(caller)] = caller
                watch.register(caller, selectors.EVENT_READ)
            else:  # the launcher was killed
                watch.unregister(key.fileobj)
                for pid, caller in running.items():
                    if caller is key.fileobj:
                        os.kill(pid, signal.SIGKILL)


def _load(modules: tuple[str, ...]) -> None:
    import importlib

    import apsw
    import asyncpg
    import uvloop

    import tidings.api
    import tidings.app
    import tidings.cli.program as commands
    import tidings.cli.server_process
    import tidings.dashboard
    import tidings.sandbox.app
    import tidings.store.postgres  # noqa: F401

    commands.full_program()
    assert apsw and asyncpg and uvloop
    for name in modules:
        importlib.import_module(name)


def _reap(running: dict[int, socket.socket], watch: selectors.BaseSelector) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        caller = running.pop(pid)
        with contextlib.suppress(KeyError):
            watch.unregister(caller)
        with contextlib.suppress(OSError):
            caller.sendall(struct.pack("!i", os.waitstatus_to_exitcode(status)))
        caller.close()


def _fork(caller: socket.socket) -> int:
    head, streams, _, _ = socket.recv_fds(caller, LENGTH.size, 3)
    body = b""
    while len(body) < LENGTH.unpack(head)[0]:
        body += caller.recv(1 << 20)
    pid = os.fork()
    if not pid:
        _become(body, streams)
    for stream in streams:
        os.close(stream)
    caller.sendall(struct.pack("!i", pid))
    return pid


def _become(body: bytes, streams: list[int]) -> NoReturn:
    """Run in the child as the caller asked: its folder, environment and streams; a module, or the program."""
    folder, words, settings, module, files = marshal.loads(body)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 256)
    if files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(settings)
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))
    sys.argv = ["tidings", *words]
    code: object = 1
    try:
        from tidings.cli import main as run
        from tidings.kernel import crash_points

        crash_points.arm(settings.get("TIDINGS_CRASH_AT"))
        if module:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        else:
            run()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        import traceback

        traceback.print_exc()
    for output in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            output.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


main(*sys.argv[1:])
