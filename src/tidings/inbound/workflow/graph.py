"""The workflow graph as data (nodes and edges), with a plain runner and one by LangGraph (extra `graph`).

extract → nothing | clarify | withdraw | read → validate → nothing | refuse | clarify | confirm | execute

Nodes have two ports: an interpreter and a reader of calendar days. No port writes: a run returns a plan, and
the pipeline commits it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ...model.errors import Misconfigured
from ..domain import CalendarDay, Interpreter
from . import plans
from .plans import GraphState, WorkflowPlan
from .validation import commands, is_day, validate_requests

START = "extract"
Node = Callable[[GraphState], Awaitable[GraphState]]
ReadDay = Callable[[str], Awaitable[CalendarDay]]

NEXT: Mapping[str, Callable[[GraphState], str] | str] = {
    "extract": plans.after_extract,
    "read": "validate",
    "validate": plans.after_validate,
}
"""The successor of a node, or the function that chooses it. A node that is missing here is terminal."""

BRANCHES: Mapping[str, tuple[str, ...]] = {
    "extract": ("withdraw", "nothing", "clarify", "read"),
    "validate": ("clarify", "confirm", "execute", "nothing", "refuse"),
}
"""The nodes that a function of NEXT may choose."""

_ENDS: Mapping[str, Callable[[GraphState], WorkflowPlan]] = {
    "withdraw": plans.withdraw,
    "nothing": plans.nothing,
    "clarify": plans.clarify,
    "confirm": plans.confirm,
    "execute": plans.execute,
    "refuse": plans.refuse,
}


def nodes(interpreter: Interpreter, read_day: ReadDay) -> dict[str, Node]:
    """Build all nodes on these two ports."""

    async def extract(state: GraphState) -> GraphState:
        return plans.understood(state, await interpreter.extract(state["context"]))

    async def read(state: GraphState) -> GraphState:
        dates = {each.date for each in commands(state["wants"]) if each and is_day(each.date)}
        known = {day.date: day for day in state["context"].days}
        return {"days": known | {date: await read_day(date) for date in sorted(dates - known.keys())}}

    async def validate(state: GraphState) -> GraphState:
        context, flow = state["context"], state["flow"]
        found = validate_requests(
            state["wants"], state["days"], context.speaker, flow.squad, state["policy"], state["now"]
        )
        return {"findings": found}

    def end(make: Callable[[GraphState], WorkflowPlan]) -> Node:
        async def node(state: GraphState) -> GraphState:
            return {"plan": make(state)}

        return node

    made = {name: end(make) for name, make in _ENDS.items()}
    return {"extract": extract, "read": read, "validate": validate, **made}


class PlainRunner:
    """Runs the graph once per message, without LangGraph: node after node until a terminal one."""

    def __init__(self, interpreter: Interpreter, read_day: ReadDay) -> None:
        self._nodes = nodes(interpreter, read_day)

    async def run(self, state: GraphState) -> WorkflowPlan:
        name: str | None = START
        while name is not None:
            state = {**state, **await self._nodes[name](state)}
            onward = NEXT.get(name)
            name = onward(state) if callable(onward) else onward
        return state["plan"]


class LangGraphRunner:
    """Runs the graph with LangGraph, without a checkpointer."""

    def __init__(self, interpreter: Interpreter, read_day: ReadDay) -> None:
        from langgraph.graph import END, StateGraph

        graph: Any = StateGraph(GraphState)
        made = nodes(interpreter, read_day)
        for name, node in made.items():
            graph.add_node(f"{name}_node", node)
        graph.set_entry_point(f"{START}_node")
        for name in made:
            onward = NEXT.get(name)
            if onward is None:
                graph.add_edge(f"{name}_node", END)
            elif isinstance(onward, str):
                graph.add_edge(f"{name}_node", f"{onward}_node")
            else:
                targets = {target: f"{target}_node" for target in BRANCHES[name]}
                graph.add_conditional_edges(f"{name}_node", onward, targets)
        self._graph = graph.compile()

    async def run(self, state: GraphState) -> WorkflowPlan:
        ended: GraphState = await self._graph.ainvoke(state)
        return ended["plan"]


def make_runner(choice: str, interpreter: Interpreter, read_day: ReadDay) -> PlainRunner | LangGraphRunner:
    """Build the configured runner; `auto` uses LangGraph if it is installed. Raises Misconfigured."""
    if choice == "plain":
        return PlainRunner(interpreter, read_day)
    try:
        return LangGraphRunner(interpreter, read_day)
    except ImportError:
        if choice == "auto":
            return PlainRunner(interpreter, read_day)
        raise Misconfigured(
            "inbound.runner is 'langgraph', which is not installed",
            remedy="pip install 'tidings[graph]', or set runner = \"plain\"",
            field="inbound.runner",
        ) from None
