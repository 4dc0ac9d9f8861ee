"""A worker process of a drill: `tidings serve --role worker`, with its pid in the receiver's URL."""

from __future__ import annotations

import json
import os
import runpy
import sys

from .parent_watch import end_with_parent
from .workload import CHANNEL, SETTINGS_FILE

if __name__ == "__main__":
    end_with_parent()
    port = json.loads(sys.argv[1])["port"]
    os.environ[f"TIDINGS_CHANNELS__{CHANNEL.upper()}__URL"] = f"http://127.0.0.1:{port}/from/{os.getpid()}"
    sys.argv = ["tidings", "serve", "--role", "worker", "--config", SETTINGS_FILE, "--log-format", "json"]
    runpy.run_module("tidings.cli", run_name="__main__")
