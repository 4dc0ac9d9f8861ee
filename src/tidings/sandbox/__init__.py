"""The sandbox: pretend providers with faults on demand, an honest ledger and a page with a phone.

It stands in for the outside world on a laptop, in tests and in crash drills. It shares no state with the
engine: what it saw is in its own ledger, so the engine's books can be checked against it.
"""

from .app import create_sandbox, sandbox_routes
from .ledger import Entry, content_hash, read_ledger
from .server import serve
from .world import World

__all__ = ["Entry", "World", "content_hash", "create_sandbox", "read_ledger", "sandbox_routes", "serve"]
