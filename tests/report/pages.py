"""A rendered page taken apart: elements, attributes and text, with every tag closed that was opened."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "wbr", "br"}


class Page(HTMLParser):
    """The page's elements in order; `closed` says whether each tag was closed in its turn."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.pieces: list[str] = []
        self.problems: list[str] = []
        self.headings: list[tuple[int, str]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        self.problems += [f"<{tag}> is not closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("style", "title"):
            self.pieces.append(data)
            for tag in reversed(self._open):
                if re.fullmatch("h[1-6]", tag) and self.headings:
                    level, text = self.headings[-1]
                    self.headings[-1] = (level, text + data)
                    break

    @property
    def text(self) -> str:
        """All text, white space folded."""
        return " ".join("".join(self.pieces).split())
