"""The same graph run by LangGraph, where that is installed (extra `graph`). No checkpointer."""

from __future__ import annotations

from typing import Any

from ...model.errors import Misconfigured
from ..words import Mind
from .graph import BRANCHES, NEXT, START, PlainRunner, ReadDay, Runner, nodes
from .planning import Plan, Sheet

CHOICES = ("auto", "plain", "langgraph")


class GraphRunner:
    """A compiled graph; one run for each message, from our stored state to a plan."""

    def __init__(self, mind: Mind, read_day: ReadDay) -> None:
        from langgraph.graph import END, StateGraph

        graph: Any = StateGraph(Sheet)
        made = nodes(mind, read_day)
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

    async def run(self, sheet: Sheet) -> Plan:
        """Run it to its end."""
        ended: Sheet = await self._graph.ainvoke(sheet)
        return ended["plan"]


def runner(choice: str, mind: Mind, read_day: ReadDay) -> Runner:
    """The runner that was chosen; `auto` takes LangGraph where it is installed."""
    if choice == "plain":
        return PlainRunner(mind, read_day)
    try:
        return GraphRunner(mind, read_day)
    except ImportError:
        if choice == "auto":
            return PlainRunner(mind, read_day)
        raise Misconfigured(
            "inbound.runner is 'langgraph', which is not installed",
            remedy="pip install 'tidings[graph]', or set runner = \"plain\"",
            field="inbound.runner",
        ) from None
