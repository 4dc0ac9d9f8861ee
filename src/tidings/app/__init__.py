"""The composition root: the only package that names concrete classes and wires them together."""

from .engine import App, build
from .fleet import Carrier, build_carrier
from .storing import open_store

__all__ = ["App", "Carrier", "build", "build_carrier", "open_store"]
