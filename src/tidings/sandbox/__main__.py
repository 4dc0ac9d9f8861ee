"""`python -m tidings.sandbox`: the sandbox as a separate server."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tidings.model.errors import TidingsError

from .server import HOST, PORT, serve


def main() -> int:
    """Parse the options, serve, and turn an error into a message and an exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tidings.sandbox",
        description="Simulated providers with fault injection, a ledger and a web page with a phone.",
    )
    parser.add_argument("--host", default=HOST, help="address to listen on (default: %(default)s)")
    parser.add_argument("--port", default=PORT, type=int, help="port, 0 for any free (default: %(default)s)")
    parser.add_argument("--mail-port", type=int, help="port of the mail server (default: the next port)")
    parser.add_argument("--ledger", type=Path, help="JSONL file to append every request to")
    parser.add_argument("--key-file", type=Path, help="file with the key that clients must send")
    parser.add_argument(
        "--callback-host", action="append", default=[], help="host that may receive callbacks; repeatable"
    )
    options = parser.parse_args()
    try:
        serve(
            options.ledger,
            host=options.host,
            port=options.port,
            mail_port=options.mail_port,
            key_file=options.key_file,
            callback_hosts=tuple(options.callback_host),
        )
    except KeyboardInterrupt:
        pass  # the server has already shut down gracefully
    except TidingsError as error:
        print(f"error: {error}.", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
