"""The composition root: the only package that names concrete classes and wires them together.

composition: builds the application (`App`) from its settings.
store_wiring: the store, the read replica and the encryption keys.
channel_wiring: channels with their lanes, callbacks, broadcasts and events.
source_wiring: sources, workflows and the shift calendar.
fleet_wiring: process roles, dispatchers and transports.
"""

from .composition import App, build
from .fleet_wiring import TransportProcess, build_transport
from .store_wiring import open_store

__all__ = ["App", "TransportProcess", "build", "build_transport", "open_store"]
