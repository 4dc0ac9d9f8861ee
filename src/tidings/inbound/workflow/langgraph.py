"""The workflow graph run by LangGraph, if installed (extra `graph`). No checkpointer."""

from __future__ import annotations

from typing import Any

from ...model.errors import Misconfigured
from ..domain import Interpreter
from .graph import BRANCHES, NEXT, START, PlainRunner, ReadDay, WorkflowRunner, nodes
from .plans import GraphState, WorkflowPlan

CHOICES = ("auto", "plain", "langgraph")


class LangGraphRunner:
    """A compiled graph; one run per message turns the stored state into a plan."""

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
        """Run the graph and return the plan of its terminal node."""
        ended: GraphState = await self._graph.ainvoke(state)
        return ended["plan"]


def make_runner(choice: str, interpreter: Interpreter, read_day: ReadDay) -> WorkflowRunner:
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
