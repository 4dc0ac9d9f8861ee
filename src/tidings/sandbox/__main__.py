"""`python -m tidings.sandbox`: the pretend phone on its own."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tidings.model.errors import TidingsError

from .server import HOST, PORT, serve


def main() -> int:
    """Parse, serve, and turn an error into one sentence and an exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tidings.sandbox",
        description="Pretend providers with faults on demand, an honest ledger and a page with a phone.",
    )
    parser.add_argument("--host", default=HOST, help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port", default=PORT, type=int, help="port, 0 for any free one (default: %(default)s)"
    )
    parser.add_argument("--mail-port", type=int, help="port of the mail server (default: the next one)")
    parser.add_argument("--ledger", type=Path, help="JSONL file that gets one line per request")
    parser.add_argument("--key-file", type=Path, help="file with the key that others must show")
    parser.add_argument(
        "--callback-host", action="append", default=[], help="host that may be called back; repeatable"
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
        pass  # the server has already stopped in order
    except TidingsError as error:
        print(f"error: {error}.", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
