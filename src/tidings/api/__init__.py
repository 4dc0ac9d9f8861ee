"""The HTTP face: parse, call one function, answer."""

from .build import create_api

__all__ = ["create_api"]
