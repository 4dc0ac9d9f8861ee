"""Builds the interpreter from the settings: the model with the rules as fallback, or the rules alone."""

from __future__ import annotations

from collections.abc import Mapping

from ...kernel.clock import Clock
from ...store.port import Store
from ..domain import Interpreter
from ..language.shift_words import DEFAULTS as SHIFTS
from .fallback import FallbackInterpreter
from .model_client import ModelClient
from .model_interpreter import ModelInterpreter
from .prompt import load_prompts
from .settings import ModelSettings


def build_interpreter(
    settings: ModelSettings | None,
    rules: Interpreter,
    store: Store,
    clock: Clock,
    *,
    shifts: Mapping[str, tuple[str, str]] = SHIFTS,
) -> Interpreter:
    """Build the interpreter; raises Misconfigured for invalid prompts or a forbidden endpoint."""
    if settings is None:
        return rules
    prompts = load_prompts(settings.prompts)
    line = ModelClient(settings, store, clock)
    return FallbackInterpreter(ModelInterpreter(settings, prompts, line, shifts=shifts), rules, closing=line)
