"""One measurement, one fresh process: a function called across a process boundary by its own signature.

`serve` turns a module's functions into a command line (`python -m bench.ours drain_sqlite --path q --n 9`)
that prints one JSON line; `call` runs such a command and reads that line. Memory, event loops and SQLite
libraries of two measurements therefore never meet.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from .resident import peak_mb

ROOT = Path(__file__).resolve().parent.parent


class MeasurementFailed(Exception):
    """A measurement did not end well; the text is the last thing it said."""


def call(
    module: str, function: str, *, python: str = sys.executable, timeout: float = 900, **arguments: Any
) -> dict[str, Any]:
    """Run one function in a fresh process and give back what it printed."""
    command = [python, "-m", module, function, *_flags(arguments)]
    # A process group of its own, so that whatever it started can be ended with it.
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    ) as child:
        try:
            out, err = child.communicate(timeout=timeout)
        except BaseException as problem:
            os.killpg(child.pid, 9)
            if isinstance(problem, subprocess.TimeoutExpired):
                raise MeasurementFailed(f"{function}: not finished after {timeout:.0f} s") from None
            raise
    if child.returncode:
        raise MeasurementFailed(f"{function}: {_last_words(err) or f'exit code {child.returncode}'}")
    try:
        answer: dict[str, Any] = json.loads(_last_words(out))
    except ValueError:
        raise MeasurementFailed(f"{function}: printed no JSON line") from None
    return answer


def serve(functions: Sequence[Callable[..., Any]], argv: Sequence[str] | None = None) -> None:
    """Call the named function with the flags given; a plain number is printed as {"per_s": number}."""
    named = {function.__name__: function for function in functions}
    arguments = vars(_parser(named).parse_args(argv))
    function = named[arguments.pop("function")]
    result = function(**arguments)
    if inspect.isawaitable(result):
        result = _run(result)
    answer = dict(result) if isinstance(result, Mapping) else {"per_s": round(float(result), 1)}
    print(json.dumps(answer | {"process": _process()}))


def _parser(named: Mapping[str, Callable[..., Any]]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="function", required=True)
    for name, function in named.items():
        command = commands.add_parser(name, help=(function.__doc__ or "").partition("\n")[0])
        types = get_type_hints(function)
        for parameter in inspect.signature(function).parameters.values():
            flag = "--" + parameter.name.replace("_", "-")
            required = parameter.default is parameter.empty
            if types[parameter.name] is bool:
                command.add_argument(flag, action="store_true")
            else:
                default = None if required else parameter.default
                command.add_argument(flag, type=types[parameter.name], required=required, default=default)
    return parser


def _flags(arguments: Mapping[str, Any]) -> list[str]:
    flags: list[str] = []
    for name, value in arguments.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            flags.append(flag)
        elif value is not False and value is not None:
            flags += [flag, str(value)]
    return flags


def _run(awaitable: Any) -> Any:
    async def main() -> Any:
        return await awaitable

    try:
        import uvloop
    except ImportError:
        return asyncio.run(main())
    return uvloop.run(main())


def _process() -> dict[str, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"peak_mb": peak_mb(), "cpu_s": round(used.ru_utime + used.ru_stime, 2)}


def _last_words(text: str) -> str:
    """The last line that says something: groups of exceptions end with a drawn frame."""
    return next((line for line in reversed(text.splitlines()) if any(map(str.isalnum, line))), "").strip()
