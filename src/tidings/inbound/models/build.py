"""A mind out of the settings: the model with the rules below it, or the rules alone."""

from __future__ import annotations

from collections.abc import Mapping

from ...kernel.clock import Clock
from ...store.port import Store
from ..language.shift_words import DEFAULTS as SHIFTS
from ..words import Mind
from .ladder import Ladder
from .line import Line
from .mind import ModelMind
from .prompt import load
from .settings import ModelSettings


def build(
    settings: ModelSettings | None,
    rules: Mind,
    store: Store,
    clock: Clock,
    *,
    shifts: Mapping[str, tuple[str, str]] = SHIFTS,
) -> Mind:
    """Raises Misconfigured for prompts that cannot be used, or a model that may not be called."""
    if settings is None:
        return rules
    prompts = load(settings.prompts)
    line = Line(settings, store, clock)
    return Ladder(ModelMind(settings, prompts, line, shifts=shifts), rules, closing=line)
