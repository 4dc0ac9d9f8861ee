"""The allowed subset of Jinja, checked when a template is saved.

Anything not listed is rejected: no calls (neither `range` nor methods), assignments, macros, imports,
includes or powers. Loops, concatenations and searches are rewritten into steps that spend from the render
budget.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches

from jinja2 import nodes

from ...model.errors import Invalid
from .variables import CONTACT_FIELDS, MAX_NUMBER, RESERVED, is_variable_name

EACH_STEP, JOIN_STEP, SEARCH_STEP = "for each", "joined with ~", "with in"  # not valid filter names
LOOP_FIELDS = ("index", "index0", "first", "last", "length")
TESTS = ("defined", "undefined")
MAX_NODES = 2000
MAX_WORDS = 10_000  # tokens, without whitespace
MAX_DEPTH = 60
MAX_LOOP_DEPTH = 3

_EXPRESSIONS = (
    nodes.Name, nodes.Const, nodes.TemplateData, nodes.Getattr, nodes.Getitem, nodes.Filter, nodes.Test,
    nodes.CondExpr, nodes.Compare, nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.Pos, nodes.Add, nodes.Sub,
    nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Concat, nodes.List, nodes.Tuple,
)  # fmt: skip
_ALLOWED = frozenset({nodes.Template, nodes.Output, nodes.If, nodes.For, nodes.Operand, *_EXPRESSIONS})
_INSTEAD: Mapping[type[nodes.Node], tuple[str, str]] = {
    nodes.Call: ("calls such as range() are not allowed", "use a variable or a filter"),
    nodes.Pow: ("powers (**) are not allowed", "multiply instead"),
    nodes.Assign: ("{% set %} is not allowed", "declare a variable with a default"),
    nodes.AssignBlock: ("{% set %} is not allowed", "declare a variable with a default"),
    nodes.Scope: (
        "{% autoescape %} is not allowed",
        "leave it out: values are escaped for the channel, except with | safe",
    ),
    nodes.Include: ("{% include %} is not allowed", "write the text itself"),
    nodes.Slice: ("slices are not allowed", "use the filter truncate, first or last"),
    nodes.Keyword: ("named filter arguments are not allowed", "write the value alone"),
}


class TemplateGrammar:
    """Checks one template against its variables and the allowed filters."""

    def __init__(self, variables: Collection[str], filters: Collection[str]) -> None:
        self._variables = variables
        self._filters = filters
        self._loops = self._words = self._nodes = 0
        self.uses_contact = False

    def read(self, words: Iterable[tuple[int, str, str]], place: str) -> None:
        """Raise Invalid for a source with too many tokens, before it is parsed."""
        for line, kind, _word in words:
            self._words += kind != "whitespace"
            if self._words > MAX_WORDS:
                raise Invalid(
                    f"{place}, line {line}: the template has more than {MAX_WORDS:,} tokens",
                    field=place,
                    remedy="shorten it",
                )

    def admit(self, tree: nodes.Template, place: str) -> nodes.Template:
        """Check the tree and rewrite it for the budget; raises Invalid with place and line."""
        self._bound(tree, place)
        self._statements(tree.body, frozenset(), place)
        return tree

    def _bound(self, tree: nodes.Template, place: str) -> None:
        """Check node types, number and depth, without recursion."""
        level: list[nodes.Node] = [tree]
        for _ in range(MAX_DEPTH):
            for node in level:
                if type(node) not in _ALLOWED:
                    raise _not_here(node, place)
            self._nodes += len(level)
            if self._nodes > MAX_NODES:
                raise _refused(tree, place, f"the template has more than {MAX_NODES:,} nodes", "shorten it")
            level = [child for node in level for child in node.iter_child_nodes()]
            if not level:
                return
        raise _refused(level[0], place, "it is nested too deeply", f"use at most {MAX_DEPTH} levels")

    def _statements(self, body: list[nodes.Node], local: frozenset[str], place: str) -> None:
        for node in body:
            if isinstance(node, nodes.Output):
                node.nodes = [self._expression(child, local, place) for child in node.nodes]
            elif isinstance(node, nodes.If):
                node.test = self._expression(node.test, local, place)
                self._statements([*node.body, *node.elif_, *node.else_], local, place)
            else:
                assert isinstance(node, nodes.For)
                self._loop(node, local, place)

    def _loop(self, node: nodes.For, local: frozenset[str], place: str) -> None:
        """Check a loop and make its list spend the cost of all iterations first."""
        targets = _targets(node.target)
        for name in targets:
            if name in self._variables or name in RESERVED or not is_variable_name(name):
                raise _refused(
                    node, place, f"the loop variable {name!r} is already used or reserved", "use another name"
                )
        if node.recursive:
            raise _refused(node, place, "a loop is recursive", "leave that out")
        self._loops += 1
        if self._loops > MAX_LOOP_DEPTH:
            raise _refused(node, place, "loops are nested too deeply", f"use at most {MAX_LOOP_DEPTH}")
        cost = sum(1 for _ in _walk(node))
        inner = local | targets | {"loop"}
        node.iter = _step(EACH_STEP, self._expression(node.iter, local, place), [nodes.Const(cost, lineno=node.lineno)])
        if node.test is not None:
            node.test = self._expression(node.test, inner, place)
        self._statements(node.body, inner, place)
        self._loops -= 1
        self._statements(node.else_, local, place)

    def _expression(self, node: nodes.Node, local: frozenset[str], place: str) -> nodes.Expr:
        """Check an expression after its parts; rewrites concatenations and searches for the budget."""
        for name, value in list(node.iter_fields()):
            if isinstance(value, nodes.Expr):
                setattr(node, name, self._expression(value, local, place))
            elif isinstance(value, list):
                setattr(node, name, [self._part(part, local, place) for part in value])
        assert isinstance(node, nodes.Expr)
        self._look(node, local, place)
        if isinstance(node, nodes.Concat):
            return _step(JOIN_STEP, nodes.List(node.nodes, lineno=node.lineno), [])
        if isinstance(node, nodes.Compare) and any(part.op in ("in", "notin") for part in node.ops):
            return _searched(node, place)
        return node

    def _part(self, part: nodes.Node, local: frozenset[str], place: str) -> nodes.Node:
        if isinstance(part, nodes.Operand):
            part.expr = self._expression(part.expr, local, place)
            return part
        return self._expression(part, local, place)

    def _look(self, node: nodes.Expr, local: frozenset[str], place: str) -> None:
        """Check the names, filters and fields of an expression."""
        match node:
            case nodes.Name():
                self._name(node, local, place)
            case nodes.Const(value=int() | float() as number) if abs(number) > MAX_NUMBER:
                raise _refused(node, place, "a number is too large", f"use at most {MAX_NUMBER:,}")
            case nodes.Filter() if node.name not in self._filters:
                raise _unknown(node, place, "filter", node.name, self._filters)
            case nodes.Test() if node.name not in TESTS:
                raise _unknown(node, place, "test", node.name, TESTS)
            case nodes.Getattr(node=nodes.Name(name="contact")) if node.attr not in CONTACT_FIELDS:
                raise _unknown(node, place, "field of a contact", node.attr, CONTACT_FIELDS)
            case nodes.Getattr(node=nodes.Name(name="loop")) if node.attr not in LOOP_FIELDS:
                raise _unknown(node, place, "field of a loop", node.attr, LOOP_FIELDS)

    def _name(self, node: nodes.Name, local: frozenset[str], place: str) -> None:
        name = node.name
        self.uses_contact |= name == "contact"
        if name in local or name in self._variables or name in ("contact", "recipient"):
            return
        close = get_close_matches(name, [*self._variables, *local, "contact", "recipient"], 1, cutoff=0.7)
        raise _refused(
            node,
            place,
            f"the variable {name[:60]!r} is not declared",
            f"did you mean {close[0]!r}?"
            if close
            else f'declare it: --declare {name[:60]}, or "variables": {{"{name[:60]}": "text"}}',
        )


def _not_here(node: nodes.Node, place: str) -> Invalid:
    kind = type(node).__name__.lower()
    unknown = f"{kind!r} is not allowed", "use variables, {% if %}, {% for %} and filters"
    problem, remedy = _INSTEAD.get(type(node), unknown)
    return _refused(node, place, problem, remedy)


def _walk(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    for child in node.iter_child_nodes():
        yield from _walk(child)


def _targets(target: nodes.Node) -> frozenset[str]:
    names = target.items if isinstance(target, nodes.Tuple) else [target]
    return frozenset(name.name for name in names if isinstance(name, nodes.Name))


def _step(name: str, node: nodes.Expr, args: list[nodes.Expr]) -> nodes.Filter:
    return nodes.Filter(node, name, args, [], None, None, lineno=node.lineno)


def _searched(node: nodes.Compare, place: str) -> nodes.Expr:
    if len(node.ops) > 1:
        raise _refused(node, place, "`in` cannot be chained", "combine comparisons with `and`")
    found = _step(SEARCH_STEP, node.expr, [node.ops[0].expr])
    return found if node.ops[0].op == "in" else nodes.Not(found, lineno=node.lineno)


def _unknown(node: nodes.Node, place: str, what: str, name: str, known: Collection[str]) -> Invalid:
    close = get_close_matches(name, known, 1, cutoff=0.7)
    remedy = f"did you mean {close[0]!r}?" if close else f"use one of: {', '.join(sorted(known))}"
    return _refused(node, place, f"unknown {what} {name[:60]!r}", remedy)


def _refused(node: nodes.Node, place: str, problem: str, remedy: str) -> Invalid:
    return Invalid(f"{place}, line {node.lineno}: {problem}", field=place, remedy=remedy)
