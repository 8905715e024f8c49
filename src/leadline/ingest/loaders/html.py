"""HTML pages: what a reader sees of them, in reading order.

Knows which elements are blocks, which are chrome (navigation, forms, scripts) and which are hidden. Rows of a table
become lines `Name: value; Name: value` where the table has a header. Runs no script and fetches nothing.
"""

import re
from collections import Counter
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

from leadline.drafts import FieldValue
from leadline.errors import UnreadableFile
from leadline.ingest.extracted import Extracted, Kind, Limits, TextBuilder, check_chars
from leadline.ingest.loaders.rows import row_text, tidy
from leadline.ingest.text import clean, decode

_SILENT = (
    "script style noscript template head svg canvas iframe object embed audio video map "
    "button select option input textarea dialog"
)
SILENT = frozenset(_SILENT.split())
CHROME = frozenset({"nav", "footer", "aside"})
CHROME_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "complementary"})
CHROME_CLASSES = frozenset({"noprint", "navbox", "mw-editsection"})
_BLOCKS = (
    "address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer form header "
    "hr legend li main nav ol p pre section summary table caption tbody td tfoot th thead tr ul h1 h2 h3 h4 h5 h6"
)
BLOCKS = frozenset(_BLOCKS.split())
HEADINGS = {f"h{level}": level for level in range(1, 7)}
_HIDING = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*0(?:\.0+)?(?:px|pt|em|rem|%)?\s*(?:;|!|$)"
    r"|opacity\s*:\s*0(?:\.0+)?\s*(?:;|!|$)",
    re.IGNORECASE,
)
MAX_DEPTH = 1_000
_NESTING = re.compile(
    r"<(?P<close>/?)(?P<name>div|span|table|ul|ol|dl|section|article|blockquote|font|b|i|u|em|strong|small|big|form|svg"
    r"|select|center|fieldset|details|main|nav|aside|header|footer|figure|pre|code)\b",
    re.IGNORECASE,
)
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)", re.IGNORECASE)
_HEAD_BYTES = 4096
_BREAK = "\ue00b"
"""Stands for <br> until the text is laid out: a private character that no font shows."""
MENU_LINKS, MENU_SHARE = 15, 0.95
MIN_MAIN_SHARE = 0.25
"""A <main> or <article> is taken for the page when it holds at least this share of the page's text."""


def load_html(data: bytes, limits: Limits, charset: str | None = None) -> Extracted:
    """Headings, paragraphs, list items, table rows. `charset` is what a server says, which goes before the page's own.

    Raises UnreadableFile for what no parser can read.
    """
    stated = _META_CHARSET.search(data[:_HEAD_BYTES])
    decoded = decode(data, charset or (stated[1].decode("ascii", "ignore") if stated else None))
    check_chars(len(decoded.text), limits)
    _check_depth(decoded.text)
    tree = LexborHTMLParser(decoded.text)
    if tree.body is None:
        raise UnreadableFile("The file has no HTML body.", hint="Check that it is an HTML page.")
    page = _Page(TextBuilder(limits))
    page.walk(_main(tree.body))
    if not page.builder.blocks:
        page.menus = 0
        page.walk(tree.body, chrome=True)
    named = tree.css_first("title")
    title = tidy(named.text()) if named is not None else ""
    metadata: dict[str, FieldValue] = {"title": clean(title)[0]} if title else {}
    notes = list(decoded.notes)
    notes += sorted(page.cleaned - set(notes))
    if page.hidden:
        notes.append(f"Hidden elements left out ({page.hidden}): a reader of the page doesn't see them.")
    if page.menus:
        notes.append(f"Lists of nothing but links left out ({page.menus}): they were taken for navigation.")
    return Extracted(page.builder.text, tuple(page.builder.blocks), metadata, tuple(notes), decoded.encoding)


def _check_depth(source: str) -> None:
    """Refuses markup nested endlessly: the time to parse it grows with the square of its depth."""
    depth: Counter[str] = Counter()
    total = 0
    for match in _NESTING.finditer(source):
        name, step = match["name"].lower(), -1 if match["close"] else 1
        if depth[name] + step < 0:
            continue
        depth[name] += step
        total += step
        if total > MAX_DEPTH:
            raise UnreadableFile(f"The page nests its elements more than {MAX_DEPTH:,} deep.", hint="Save it as text.")


def _main(body: LexborNode) -> LexborNode:
    """The element that holds the page's own text, else the body."""
    candidates = body.css("main, [role=main], article")
    if not candidates:
        return body
    best = max(candidates, key=_text_length)
    return best if _text_length(best) >= MIN_MAIN_SHARE * _text_length(body) else body


def _text_length(node: LexborNode) -> int:
    return len(node.text())


class _Page:
    """One walk over the tree, with a stack of its own: a page may be nested ten thousand deep."""

    def __init__(self, builder: TextBuilder) -> None:
        self.builder = builder
        self.hidden = 0
        self.menus = 0
        self.cleaned: set[str] = set()
        self._inline: list[str] = []

    def walk(self, root: LexborNode, *, chrome: bool = False) -> None:
        stack: list[tuple[LexborNode, bool]] = [(root, False)]
        while stack:
            node, leaving = stack.pop()
            if leaving:
                self._flush(node)
            elif node.is_text_node:
                self._inline.append(node.text_content or "")
            elif node.is_element_node and not self._skip(node, chrome):
                stack += self._enter(node)
        self._flush(root)

    def _skip(self, node: LexborNode, chrome: bool) -> bool:
        tag, attributes = node.tag or "", node.attributes
        if tag in SILENT:
            return True
        if _is_hidden(attributes):
            self.hidden += bool(node.text().strip())
            return True
        if chrome:
            return False
        if tag in {"ul", "ol"} and _is_menu(node):
            self.menus += 1
            return True
        return _is_chrome(tag, attributes)

    def _enter(self, node: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
        """What to visit next, last first."""
        tag = node.tag or ""
        if tag == "br":
            self._inline.append(_BREAK)
        if tag not in BLOCKS:
            return iter([*_children(node)])
        self._flush(node.parent or node)
        if tag == "table" and _is_data_table(node):
            self._table(node)
            return iter(())
        return iter([(node, True), *_children(node)])

    def _flush(self, node: LexborNode) -> None:
        # Character references may name what `clean` has taken out of the source.
        text, notes = clean("".join(self._inline))
        self._inline = []
        self.cleaned.update(notes)
        tag = node.tag or ""
        if tag != "pre":
            text = "\n".join(filter(None, map(tidy, text.split(_BREAK))))
        text = text.replace(_BREAK, "\n")
        if tag in HEADINGS:
            self.builder.add_heading(HEADINGS[tag], text)
        else:
            self.builder.add(_kind(tag), text)

    def _table(self, table: LexborNode) -> None:
        header: list[str] = []
        for row in table.css("tr"):
            if _is_hidden(row.attributes):
                self.hidden += 1
                continue
            cells = [cell for cell in _children_of(row) if cell.tag in {"td", "th"}]
            texts = [self._cell(cell) for cell in cells]
            if len(cells) > 1 and all(cell.tag == "th" for cell in cells):
                header = texts
            elif len(cells) == 2 and cells[0].tag == "th" and not header:
                self.builder.add("row", ": ".join(filter(None, texts)))
            else:
                self.builder.add("row", row_text(header, texts, " | "))

    def _cell(self, cell: LexborNode) -> str:
        inner = _Page(TextBuilder(Limits()))
        inner.walk(cell)
        self.hidden += inner.hidden
        self.cleaned |= inner.cleaned
        return tidy(inner.builder.text)


def _children_of(node: LexborNode) -> list[LexborNode]:
    return list(node.iter(include_text=True))


def _children(node: LexborNode) -> list[tuple[LexborNode, bool]]:
    return [(child, False) for child in reversed(_children_of(node))]


def _kind(tag: str) -> Kind:
    if tag == "pre":
        return "code"
    return "list_item" if tag in {"li", "dd", "dt"} else "paragraph"


def _is_hidden(attributes: dict[str, str | None]) -> bool:
    return "hidden" in attributes or bool(_HIDING.search(attributes.get("style") or ""))


def _is_chrome(tag: str, attributes: dict[str, str | None]) -> bool:
    classes = (attributes.get("class") or "").split()
    return tag in CHROME or attributes.get("role") in CHROME_ROLES or not CHROME_CLASSES.isdisjoint(classes)


def _is_menu(node: LexborNode) -> bool:
    """A long list of nothing but links."""
    links = node.css("a")
    linked = sum(len(tidy(link.text())) for link in links)
    return len(links) >= MENU_LINKS and linked >= MENU_SHARE * len(tidy(node.text()).replace(" ", ""))


def _is_data_table(table: LexborNode) -> bool:
    """A table of data and not of layout: no table inside it, and several cells in a row."""
    if any(inner.mem_id != table.mem_id for inner in table.css("table")):
        return False
    return any(len([c for c in _children_of(row) if c.tag in {"td", "th"}]) > 1 for row in table.css("tr"))
