import marshal
import os
import signal
import socket
import struct
import sys


def launch(address: str) -> None:
    """Ask for the command, pass signals on to it, and end as it ends."""
    server = socket.socket(socket.AF_UNIX)
    server.connect(address)
    body = marshal.dumps((os.getcwd(), sys.argv[1:], dict(os.environ), "", 0))
    socket.send_fds(server, [struct.pack("!I", len(body))], [0, 1, 2])
    server.sendall(body)
    (pid,) = struct.unpack("!i", server.recv(4, socket.MSG_WAITALL))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    answer = server.recv(4, socket.MSG_WAITALL)
    (code,) = struct.unpack("!i", answer) if answer else (70,)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    os._exit(code)


ADDRESS: str  # assigned in the line that the launcher puts above this file
launch(ADDRESS)  # noqa: F821
