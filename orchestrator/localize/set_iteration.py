"""Where a program walks through a set: read from its source, since no trace can show what a set's order decides. Pure.

hash() of strings, and so the order of a set that holds them, is another in each process unless PYTHONHASHSEED is fixed
(https://docs.python.org/3/reference/datamodel.html#object.__hash__).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

MAKES = ("set", "frozenset", "WeakSet")
OF_SETS = ("union", "intersection", "difference", "symmetric_difference", "copy")
# They hand the order of what they are given on; sorted, len, sum of whole numbers, min, max and set do not.
WALKS = ("list", "tuple", "enumerate", "iter", "next", "zip", "map", "filter", "reversed", "islice", "array", "chain")
METHODS = ("join", "fromkeys", "extend", "from_iterable", "pop")


def lines(source: Sequence[str], near: int) -> list[int]:
    """Lines (from 1) of a file in which a set is walked through: those before line ``near`` first, the nearest first.

    A set is what a display, a comprehension, set() or an operation of such makes, or a name or an attribute that such a
    value is given, or handed as an argument, somewhere in the file. A file that cannot be parsed has none.
    """
    try:
        tree = ast.parse("\n".join(source))
    except (SyntaxError, ValueError, RecursionError):
        return []
    named = _names(tree)
    found = {walked.lineno for walked in _walks(tree) if _is_set(walked, named)}
    return sorted(found, key=lambda line: (line > near, abs(line - near)))


def _names(tree: ast.AST) -> set[str]:
    """Names and attributes that are given a set, to the end of chains of names."""
    arguments = [(node.arg, node.annotation) for node in ast.walk(tree) if isinstance(node, ast.arg)]
    named = {name for name, of in arguments if of is not None and ast.unparse(of).startswith(("set", "frozenset"))}
    functions = {n.name: n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))}
    size = -1
    while size != len(named):
        size = len(named)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                named |= {name for name, value in _handed(node, functions) if _is_set(value, named)}
            for target, value in _given(node):
                if _is_set(value, named) and (name := _name(target)):
                    named.add(name)
    return named


def _given(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from zip(target.elts, node.value.elts, strict=False)
            yield target, node.value
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        yield node.target, node.value


def _handed(call: ast.Call, functions: dict[str, Any]) -> Iterator[tuple[str, ast.expr]]:
    """What a call hands to a function of the same file, by the names of its parameters."""
    method = isinstance(call.func, ast.Attribute)
    function = functions.get(call.func.attr if isinstance(call.func, ast.Attribute) else _name(call.func))
    if function is None:
        return
    given = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    if method and given[:1] in (["self"], ["cls"]):
        given = given[1:]
    yield from zip(given, call.args, strict=False)
    yield from ((word.arg, word.value) for word in call.keywords if word.arg)


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else f".{node.attr}" if isinstance(node, ast.Attribute) else ""


def _is_set(node: ast.expr, named: set[str]) -> bool:
    if isinstance(node, (ast.Set, ast.SetComp)):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr, ast.BitXor, ast.Sub)):
        return any(_is_set(side, named) or _is_view(side) for side in (node.left, node.right))
    if isinstance(node, ast.IfExp):
        return _is_set(node.body, named) or _is_set(node.orelse, named)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id in MAKES
        if not isinstance(node.func, ast.Attribute):
            return False
        return node.func.attr in MAKES or (node.func.attr in OF_SETS and _is_set(node.func.value, named))
    return bool(name := _name(node)) and name in named


def _is_view(node: ast.expr) -> bool:
    """Whether it is a dict's keys or items: in the order of insertion, and with &, | or - a set."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "items")


def _walks(tree: ast.AST) -> Iterator[ast.expr]:
    """Expressions whose order decides something."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            yield node.iter
        elif isinstance(node, (ast.ListComp, ast.DictComp)):
            yield from (part.iter for part in node.generators)
        elif isinstance(node, ast.Starred):
            yield node.value
        elif isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name in WALKS or name in METHODS:
                yield from node.args
            if name == "pop" and isinstance(node.func, ast.Attribute) and not node.args:
                yield node.func.value
