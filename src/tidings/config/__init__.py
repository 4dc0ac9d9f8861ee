"""Configuration: one frozen Settings; unknown or invalid input stops the start.

loader: reads the TOML file, the environment and the flags.
parsers: parsers of single values: durations, sizes, URLs, keys.
secret_references: resolves env:NAME and file:/path; rejects secrets in world-readable files.
secrets: Secret, and masking of secrets in values and URLs.
settings: Settings: every setting with its default and description.
"""

from .loader import PREFIX, load
from .secrets import Secret, mask_url
from .settings import ChannelSettings, InboundSettings, Settings

__all__ = ["PREFIX", "ChannelSettings", "InboundSettings", "Secret", "Settings", "load", "mask_url"]
