"""Prompt files: Markdown with front matter, validated at startup and identified by a hash.

A file has four parts: front matter between +++ lines (name, version, role, max_tokens, temperature, tools),
the headings Instructions and Material, and the JSON schema under Answer. Against prompt injection, variables
from the chat are allowed only in the material.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ...model.errors import Misconfigured
from ...wire.placeholders import names
from . import json_schema as schemas

TRUSTED_VARIABLES = frozenset({"squads", "today", "timezone", "shifts"})  # from the settings and the clock
UNTRUSTED_VARIABLES = frozenset({"speaker", "message", "thread", "open", "asked", "days"})  # from the chat
NEEDED: Mapping[str, frozenset[str]] = {
    "intent": frozenset({"message"}),
    "relate": frozenset({"message", "thread"}),
    "extract": frozenset({"message", "thread"}),
}
TOOLS = frozenset({"read_day"})

_FORM = re.compile(
    r"\+\+\+\n(?P<front>.*?)\n\+\+\+\n\s*# Instructions\n(?P<instructions>.*?)\n# Material\n(?P<material>.*?)"
    r"\n# Answer\n\s*```json\n(?P<schema>.*?)\n```\s*",
    re.DOTALL,
)
_FRONT = frozenset({"name", "version", "role", "max_tokens", "temperature", "tools"})


class ModelRole(StrEnum):
    """The role of a configured model."""

    SMALL = "small"
    LARGE = "large"


class Prompt(NamedTuple):
    """A validated prompt. `hash` covers everything that may change an answer."""

    name: str
    version: int
    role: ModelRole
    max_tokens: int
    temperature: float
    tools: tuple[str, ...]
    instructions: str
    material: str
    schema: Mapping[str, Any]

    @property
    def hash(self) -> str:
        """The hash of name, version, text, settings and schema."""
        return digest(self._asdict())


def digest(value: object) -> str:
    """Return a short hash of the canonical JSON of a value."""
    return sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def load_prompts(folder: Path | None = None) -> Mapping[str, Prompt]:
    """Load the built-in prompts, overridden by those in `folder`; raises Misconfigured for an invalid one."""
    built_in = files(__package__) / "prompts"
    texts = {name: (built_in / f"{name}.md").read_text(encoding="utf-8") for name in NEEDED}
    own = {name: parse_prompt(name, text, f"the built-in prompt {name}") for name, text in texts.items()}
    if folder is None:
        return own
    if not folder.is_dir():
        raise _refused(f"{folder} is not a folder", "Set prompts to a folder with prompt files, or remove it")
    brought = {path.stem: _bring(path, own) for path in sorted(folder.glob("*.md"))}
    return {**own, **brought}


def parse_prompt(name: str, text: str, where: str) -> Prompt:
    """Parse and validate a prompt file; raises Misconfigured."""
    form = _FORM.fullmatch(text.replace("\r\n", "\n"))
    if form is None:
        raise _refused(
            f"{where} is not a valid prompt file",
            "Write front matter between +++ lines, then the headings # Instructions, # Material and "
            "# Answer with a JSON schema in a json block",
        )
    front = _front(form["front"], name, where)
    prompt = Prompt(
        name,
        front["version"],
        ModelRole(front["role"]),
        front["max_tokens"],
        front.get("temperature", 0),
        tuple(front.get("tools", ())),
        form["instructions"].strip(),
        form["material"].strip(),
        _schema(form["schema"], where),
    )
    _check_placeholders(prompt, where)
    return prompt


def _bring(path: Path, own: Mapping[str, Prompt]) -> Prompt:
    """Load a user's prompt; its schema must contain all fields of the built-in one."""
    if path.stem not in own:
        close = get_close_matches(path.stem, own, 1)
        hint = f"Did you mean {close[0]}.md?" if close else f"Prompts are {', '.join(f'{n}.md' for n in own)}"
        raise _refused(f"{path} is not a known prompt", hint)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not a text file"
        raise _refused(f"{path} cannot be read ({why})", "Check its permissions") from None
    prompt = parse_prompt(path.stem, text, str(path))
    wanted = own[path.stem].schema["properties"]
    for field, inner in wanted.items():
        if prompt.schema.get("properties", {}).get(field) != inner:
            raise _refused(f"{path} changes {field!r} in its schema", f"Keep it as: {inner}")
    return prompt


def _front(text: str, name: str, where: str) -> dict[str, Any]:
    try:
        front = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _refused(f"the front matter of {where} is not TOML: {error}", "Correct that line") from None
    if unknown := sorted(set(front) - _FRONT):
        raise _refused(
            f"{where} has the unknown key {unknown[0]!r} in its front matter",
            f"Known keys: {', '.join(sorted(_FRONT))}",
        )
    heat, tools = front.get("temperature", 0), front.get("tools", [])
    is_heat = type(heat) in (int, float) and 0 <= heat <= 2
    is_version = _is_whole(front.get("version"), 1, 1_000_000)
    for key, is_valid, remedy in (
        ("name", front.get("name") == name, f'Write name = "{name}", the name of the file'),
        ("version", is_version, "Write a whole number, and increase it whenever you change the prompt"),
        ("role", front.get("role") in tuple(ModelRole), 'Write role = "small" or "large"'),
        ("max_tokens", _is_whole(front.get("max_tokens"), 1, 100_000), "Write a whole number up to 100000"),
        ("temperature", is_heat, "Write a number from 0 to 2; 0 is the most deterministic"),
        ("tools", isinstance(tools, list) and set(tools) <= TOOLS, f"Known tools: {', '.join(sorted(TOOLS))}"),
    ):
        if not is_valid:
            raise _refused(f"{where} has an invalid {key} ({front.get(key)!r})", remedy)
    return front


def _is_whole(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _schema(text: str, where: str) -> Mapping[str, Any]:
    try:
        schema: Mapping[str, Any] = orjson.loads(text)
        schemas.check_schema(schema)
    except (ValueError, re.error) as error:
        raise _refused(f"the schema of {where} is invalid: {error}", "Correct it") from None
    return schema


def _check_placeholders(prompt: Prompt, where: str) -> None:
    """Check that placeholders are known, are in an allowed section, and that required ones are present."""
    try:
        instructions, material = set(names(prompt.instructions)), set(names(prompt.material))
    except ValueError as error:
        raise _refused(f"{where}: {error}", "Write placeholders as {%message%}") from None
    if theirs := sorted(instructions & UNTRUSTED_VARIABLES):
        raise _refused(
            f"{where} has {{%{theirs[0]}%}} in its instructions",
            "Move it below # Material: text from the chat must not be in the instructions",
        )
    if unknown := sorted((instructions | material) - TRUSTED_VARIABLES - UNTRUSTED_VARIABLES):
        close = get_close_matches(unknown[0], TRUSTED_VARIABLES | UNTRUSTED_VARIABLES, 1)
        hint = (
            f"Did you mean {{%{close[0]}%}}?"
            if close
            else f"Known placeholders: {', '.join(sorted(TRUSTED_VARIABLES | UNTRUSTED_VARIABLES))}"
        )
        raise _refused(f"{where} has the unknown placeholder {{%{unknown[0]}%}}", hint)
    if missing := sorted(NEEDED[prompt.name] - material):
        raise _refused(
            f"{where} is missing the placeholder {{%{missing[0]}%}}", f"Add {{%{missing[0]}%}} below # Material"
        )


def _refused(problem: str, remedy: str) -> Misconfigured:
    return Misconfigured(problem, remedy=remedy, field="inbound.model.prompts")
