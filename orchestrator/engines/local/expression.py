"""Boolean expressions of Argo: `depends`, `when`, and `retryStrategy.expression`.

A tokenizer and a recursive-descent parser; the parsed form evaluates itself against names and tags. Values of
`{{tags}}` enter as values, never as text of the expression, so that no value can change what is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

DEPENDS = "depends"
WHEN = "when"
RETRY = "retryStrategy.expression"

Names = Mapping[str, Any]
Tags = Callable[[str], str]
_Evaluate = Callable[[Names, Tags], Any]

_TASK_NAME = r"[A-Za-z0-9][-A-Za-z0-9_]*(?:\.[A-Za-z]+)?"
_BARE_WORD = r"[A-Za-z_][\w.:/-]*"
_DOTTED = r"[A-Za-z_]\w*(?:\.\w+)*"
_NUMBER = r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?"
_OPERATOR = r"\|\||&&|==|!=|<=|>=|=~|!~|[-+*/%<>!(),\[\]]"
_TAG = r"\{\{.*?\}\}"
_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_WORDS = {"and": "&&", "or": "||", "not": "!"}
_COMPARISONS = {"==", "!=", "<", "<=", ">", ">=", "=~", "!~", "in", "contains", "startsWith", "endsWith", "matches"}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "asInt": lambda value: int(value),
    "asFloat": lambda value: float(value),
    "int": lambda value: int(value),
    "float": lambda value: float(value),
    "string": lambda value: str(value),
}


class ExpressionError(ValueError):
    """An expression is wrong; the text shows the expression and the position."""


@dataclass(frozen=True)
class _Token:
    kind: str  # name, number, string, tag, operator, end
    text: str
    position: int


@dataclass(frozen=True)
class Expression:
    """A parsed expression: its text, the names it uses in order of appearance, and its tags."""

    text: str
    names: tuple[str, ...]
    tags: tuple[str, ...]
    run: _Evaluate

    def evaluate(self, names: Names, tags: Tags | None = None) -> bool:
        """Return the truth of the expression; raises ExpressionError when it is none."""
        try:
            result = self.run(names, tags or _no_tags)
        except (TypeError, ValueError, ArithmeticError, re.error) as error:
            if isinstance(error, ExpressionError):
                raise
            raise ExpressionError(f"{self.text!r} cannot be evaluated: {error}") from error
        if not isinstance(result, bool):
            raise ExpressionError(f"{self.text!r} gives {result!r}, neither true nor false")
        return result


def _no_tags(tag: str) -> str:
    raise ExpressionError(f"{{{{{tag}}}}} has no value here")


def parse(text: str, dialect: str) -> Expression:
    """Parse an expression of one dialect: DEPENDS, WHEN or RETRY. Raises ExpressionError."""
    parser = _Parser(text, dialect)
    run = parser.whole()
    return Expression(text, tuple(dict.fromkeys(parser.names)), tuple(dict.fromkeys(parser.tags)), run)


def _tokens(text: str, dialect: str) -> Iterator[_Token]:
    word = {DEPENDS: _TASK_NAME, WHEN: _BARE_WORD, RETRY: _DOTTED}[dialect]
    numbers = "" if dialect == DEPENDS else rf"(?P<number>{_NUMBER})|"
    pattern = re.compile(
        rf"\s*(?:(?P<tag>\{{\{{.*?\}}\}})|(?P<string>{_STRING})|{numbers}(?P<name>{word})|(?P<operator>{_OPERATOR}))",
        re.S,
    )
    position = 0
    while text[position:].strip():
        match = pattern.match(text, position)
        if match is None:
            start = position + len(text[position:]) - len(text[position:].lstrip())
            raise ExpressionError(f"{text!r}: cannot read {text[start : start + 10]!r} at position {start}")
        kind = str(match.lastgroup)
        position = match.end()
        yield _Token(kind, match[kind], match.start(kind))
    yield _Token("end", "", len(text))


class _Parser:
    def __init__(self, text: str, dialect: str) -> None:
        self.text = text
        self.dialect = dialect
        self.names: list[str] = []
        self.tags: list[str] = []
        self.queue = list(_tokens(text, dialect))

    def fail(self, token: _Token, expected: str) -> ExpressionError:
        found = repr(token.text) if token.text else "the end"
        return ExpressionError(f"{self.text!r}: expected {expected}, found {found} at position {token.position}")

    def peek(self) -> str:
        """Return the next token as an operator, or an empty string."""
        token = self.queue[0]
        if token.kind == "operator":
            return token.text
        if token.kind == "name" and self.dialect != DEPENDS:
            return _WORDS.get(token.text, token.text if token.text in _COMPARISONS else "")
        return ""

    def take(self) -> _Token:
        return self.queue.pop(0)

    def expect(self, operator: str) -> None:
        token = self.take()
        if token.text != operator:
            raise self.fail(token, repr(operator))

    def whole(self) -> _Evaluate:
        run = self.either()
        if self.queue[0].kind != "end":
            raise self.fail(self.queue[0], "an operator or the end")
        return run

    def either(self) -> _Evaluate:
        left = self.both()
        while self.peek() == "||":
            self.take()
            left = _logic(left, self.both(), any_of=True)
        return left

    def both(self) -> _Evaluate:
        left = self.comparison()
        while self.peek() == "&&":
            self.take()
            left = _logic(left, self.comparison(), any_of=False)
        return left

    def comparison(self) -> _Evaluate:
        left = self.sum()
        operator, negate = self.peek(), False
        if operator == "!" and self.queue[1].text == "in":
            self.take()
            operator, negate = "in", True
        if operator not in _COMPARISONS:
            return left
        self.take()
        right = self.sum()

        def run(names: Names, tags: Tags) -> bool:
            return _compare(left(names, tags), operator, right(names, tags)) is not negate

        return run

    def sum(self) -> _Evaluate:
        left = self.product()
        while (operator := self.peek()) in ("+", "-"):
            self.take()
            left = _arithmetic(left, operator, self.product())
        return left

    def product(self) -> _Evaluate:
        left = self.unary()
        while (operator := self.peek()) in ("*", "/", "%"):
            self.take()
            left = _arithmetic(left, operator, self.unary())
        return left

    def unary(self) -> _Evaluate:
        if self.peek() != "!":
            return self.primary()
        self.take()
        inner = self.unary()
        return lambda names, tags: not _truth(inner(names, tags))

    def primary(self) -> _Evaluate:
        token = self.take()
        if token.text == "(":
            inner = self.either()
            self.expect(")")
            return inner
        if token.text == "-" and self.queue[0].kind == "number":
            number = _number(self.take().text)
            return lambda names, tags: -number
        if token.text == "[":
            return self.array()
        if token.kind == "number":
            value = _number(token.text)
            return lambda names, tags: value
        if token.kind == "string":
            return self.string(token.text[1:-1])
        if token.kind == "tag":
            tag = token.text[2:-2].strip()
            self.tags.append(tag)
            return lambda names, tags: _literal(tags(tag))
        if token.kind == "name":
            return self.name(token)
        raise self.fail(token, "a value")

    def string(self, raw: str) -> _Evaluate:
        parts = re.split(r"\{\{(.*?)\}\}", re.sub(r"\\(.)", r"\1", raw), flags=re.S)
        self.tags.extend(part.strip() for part in parts[1::2])
        return lambda names, tags: "".join(tags(p.strip()) if i % 2 else p for i, p in enumerate(parts))

    def name(self, token: _Token) -> _Evaluate:
        name = token.text
        if self.dialect == WHEN:
            # As in Argo, a bare word of `when` is a string: `{{x}} == heads`.
            return lambda names, tags: _literal(name)
        if self.dialect == RETRY:
            if name in ("true", "false", "nil"):
                return lambda names, tags: {"true": True, "false": False, "nil": None}[name]
            if self.peek() == "(":
                if name not in _FUNCTIONS:
                    raise ExpressionError(f"{self.text!r}: no function {name!r} (position {token.position})")
                self.take()
                argument = self.either()
                self.expect(")")
                return lambda names, tags: _FUNCTIONS[name](argument(names, tags))
        self.names.append(name)

        def run(names: Names, tags: Tags) -> Any:
            if name not in names:
                raise ExpressionError(f"{self.text!r}: unknown name {name!r} at position {token.position}")
            return names[name]

        return run

    def array(self) -> _Evaluate:
        items: list[_Evaluate] = []
        while self.queue[0].text != "]":
            items.append(self.either())
            if self.queue[0].text != "]":
                self.expect(",")
        self.take()
        return lambda names, tags: [item(names, tags) for item in items]


def _number(text: str) -> int | float:
    return int(text) if text.isdigit() else float(text)


def _literal(text: str) -> Any:
    """Return what a bare piece of text means: a number, a boolean, or itself."""
    if text in ("true", "false"):
        return text == "true"
    return _number(text) if re.fullmatch(_NUMBER, text) else text


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def _logic(left: _Evaluate, right: _Evaluate, *, any_of: bool) -> _Evaluate:
    def run(names: Names, tags: Tags) -> bool:
        first = _truth(left(names, tags))
        return first if first is any_of else _truth(right(names, tags))

    return run


def _compare(left: Any, operator: str, right: Any) -> bool:
    if operator in ("==", "!="):
        # Python holds True == 1; Argo does not.
        equal = left == right and isinstance(left, bool) == isinstance(right, bool)
        return equal is (operator == "==")
    if operator == "in":
        return right is not None and left in right
    if operator in ("=~", "!~", "matches"):
        return (re.search(str(right), str(left)) is not None) is (operator != "!~")
    if operator in ("contains", "startsWith", "endsWith"):
        text, part = str(left), str(right)
        return {"contains": part in text, "startsWith": text.startswith(part), "endsWith": text.endswith(part)}[
            operator
        ]
    return bool({"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator])


def _arithmetic(left: _Evaluate, operator: str, right: _Evaluate) -> _Evaluate:
    def run(names: Names, tags: Tags) -> Any:
        a, b = left(names, tags), right(names, tags)
        if operator == "+":
            return a + b
        if operator == "-":
            return a - b
        if operator == "*":
            return a * b
        return a / b if operator == "/" else a % b

    return run
