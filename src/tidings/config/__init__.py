"""Configuration: one frozen Settings; whatever is not understood stops the start."""

from .reading import PREFIX, load
from .secrets import Secret, mask_url
from .settings import ChannelSettings, InboundSettings, Settings

__all__ = ["PREFIX", "ChannelSettings", "InboundSettings", "Secret", "Settings", "load", "mask_url"]
