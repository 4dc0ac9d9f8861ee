"""Sandbox: simulated providers with fault injection, a ledger of every request, and a simulated phone.

It shares no state with the engine, so its ledger can be compared with the engine's records.

access: Host and Origin checks, the sandbox key, and the hosts that callbacks may go to.
affinity_data: records of the simulated Affinity.
app: the ASGI application.
attio_routes: routes of the simulated Attio.
attio_schema: attributes of the simulated Attio, and the values they accept.
attio_workspace: records of the simulated Attio, with Attio's rules.
callbacks: webhooks sent by the simulated providers.
control_routes: routes for the ledger, conversations, faults, callbacks and messages of people.
conversations: messages per recipient, as the phone shows them.
duplicate_counts: counts of requests, refusals and duplicates.
environment: clock, randomness and sleep, replaceable in tests.
faults: fault injection: which fault a request meets. Pure.
group_chats: messages that people write in simulated chats.
ledger: the append-only log of every request.
live_feed: live updates for open pages.
phone_page: the web page with the phone.
provider_endpoint: the ASGI endpoint that all providers share.
receipts: delivery receipts with signatures, as the real providers send them.
responses: reads request bodies; answers, delays or cuts a connection as the fault says.
server: the sandbox as a server of its own.
sessions: states of simulated WhatsApp sessions.
simulator: the shared state of all simulated providers.
waha_payloads: messages, events, lids and chat ids of the simulated WAHA.
whatsapp_webhooks: bodies of the webhooks that Meta sends for WhatsApp.
providers: see there.
"""

from .app import create_sandbox, sandbox_routes
from .ledger import SandboxEntry, content_hash, read_ledger
from .server import serve
from .simulator import SandboxSimulator

__all__ = [
    "SandboxEntry",
    "SandboxSimulator",
    "content_hash",
    "create_sandbox",
    "read_ledger",
    "sandbox_routes",
    "serve",
]
