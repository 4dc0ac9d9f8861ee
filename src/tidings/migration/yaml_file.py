"""Strict YAML for job files: plain values, no duplicate keys, no aliases. Needs tidings[yaml]."""

from __future__ import annotations

from typing import Any

from ..model.errors import Invalid


def parse_yaml(text: str) -> Any:
    """Parse a document; ValueError if it is not YAML, or uses duplicate keys or aliases."""
    try:
        import yaml
    except ImportError:
        remedy = "install tidings[yaml], or use TOML"
        raise Invalid("YAML support is not installed", field="file", remedy=remedy) from None

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # the library has no types
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                line = self.peek_event().start_mark.line + 1
                raise ValueError(f"line {line} has an alias (*): write the value out")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[str] = set()
            for key, _ in node.value:
                if str(key.value) in seen:
                    raise ValueError(f"line {key.start_mark.line + 1} repeats the key {key.value!r}")
                seen.add(str(key.value))
            return super().construct_mapping(node, deep=deep)

    try:
        return yaml.load(text, Loader)  # a SafeLoader: plain values only
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
