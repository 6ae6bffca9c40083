"""Presentations (.pptx, .pptm, .potx, .ppsx): one section a slide, "\\f" between slides.

Of each slide the title first, then every shape in the order of the file: text, tables, groups, the values of
charts, the words of diagrams, and the speaker's notes. Source: ECMA-376 part 1, PresentationML and DrawingML.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rlm_core.readers.formats.packages import Package, attribute, child, local
from rlm_core.readers.formats.pages import PageNumbers
from rlm_core.readers.output import Output, Unreadable

_MOST_SLIDES: Final = 20_000
# Placeholders that repeat what stands on every slide, and the picture of the slide on its notes page.
_REPEATED: Final = frozenset({"dt", "ftr", "hdr", "sldNum", "sldImg"})


def read(path: str, out: Output) -> None:
    """Read the presentation at `path` into `out`; see `rlm_core.readers.output`."""
    with Package(path) as package:
        main = package.main_part()
        root = package.xml(main)
        if local(root) != "presentation":
            raise Unreadable("is not a presentation, whatever its name says")
        relations = package.related(main)
        ids = [_relation(entry) for slides in root if local(slides) == "sldIdLst" for entry in slides]
        if not ids:
            raise Unreadable("a presentation without slides")
        if len(ids) > _MOST_SLIDES:
            raise Unreadable(f"has {len(ids):,} slides: split it and add the parts")
        pages = PageNumbers("slide", len(ids))
        for number, identity in enumerate(ids, 1):
            target = relations.get(identity, ("", ""))[1]
            _slide(package, target, number, pages, out)
        pages.finish(out)


def _relation(element: Any) -> str:
    """The id of the relation that an element refers to (its `r:id`, not its own `id`)."""
    found = (value for key, value in element.items() if key.endswith("}id"))
    return str(next(found, ""))


def _slide(package: Package, target: str, number: int, pages: PageNumbers, out: Output) -> None:
    out.end_section()
    if number > 1:
        out.write("\f")
    out.section("slide", str(number))
    if not target:
        pages.broken(number)
        return
    try:
        root = package.xml(target)
        text = "".join(f"{line}\n" for line in _lines(package, target, root) if line.strip())
    except Unreadable:
        pages.broken(number)
        return
    out.write(text)
    if not text:
        pages.empty(number)
    if attribute(root, "show") in ("0", "false"):
        pages.hidden(number)


def _lines(package: Package, target: str, slide: Any) -> Iterator[str]:
    relations = package.related(target)
    shapes = list(_shapes(_tree(slide)))
    titles = [shape for shape in shapes if _placeholder(shape) in ("title", "ctrTitle")]
    for shape in [*titles, *(shape for shape in shapes if shape not in titles)]:
        if _placeholder(shape) not in _REPEATED:
            yield from _text(shape)
            yield from _related_text(package, relations, shape)
    for kind, name in relations.values():
        if kind == "notesSlide":
            shapes = list(_shapes(_tree(package.xml(name))))
            noted = [shape for shape in shapes if _placeholder(shape) not in _REPEATED]
            notes = "\n".join(line for shape in noted for line in _text(shape) if line.strip())
            yield f"Notes: {notes}" if notes else ""


def _tree(slide: Any) -> Any:
    """The tree of shapes of a slide or notes page."""
    common = child(slide, "cSld")
    tree = None if common is None else child(common, "spTree")
    return () if tree is None else tree


def _shapes(tree: Any) -> Iterator[Any]:
    """Every shape, those of groups in the place of the group; of two forms of one shape the first."""
    for element in tree:
        name = local(element)
        if name == "grpSp":
            yield from _shapes(element)
        elif name == "AlternateContent":
            yield from _shapes(next(iter(element), ()))
        elif name in ("sp", "graphicFrame", "cxnSp", "pic"):
            yield element


def _placeholder(shape: Any) -> str:
    """title, body, ftr ...; "" for a shape that is no placeholder."""
    for properties in shape:
        if local(properties).startswith("nv"):
            found = next((e for e in properties.iter() if local(e) == "ph"), None)
            return "" if found is None else attribute(found, "type") or "body"
    return ""


def _text(element: Any) -> Iterator[str]:
    """The paragraphs and tables of a shape."""
    for inner in element:
        name = local(inner)
        if name == "p":
            yield "".join(_runs(inner))
        elif name == "tr":
            cells = (cell for cell in inner if local(cell) == "tc")
            yield "\t".join(" ".join(" ".join(_text(cell)).split()) for cell in cells)
        else:
            yield from _text(inner)


def _runs(paragraph: Any) -> Iterator[str]:
    for inner in paragraph:
        name = local(inner)
        if name == "t":
            yield inner.text or ""
        elif name == "br":
            yield "\n"
        elif name == "tab":
            yield "\t"
        elif not name.endswith("Pr"):
            yield from _runs(inner)


def _related_text(package: Package, relations: dict[str, tuple[str, str]], shape: Any) -> Iterator[str]:
    """What stands in parts of their own: the values of a chart, the words of a diagram (SmartArt)."""
    for element in shape.iter():
        name = local(element)
        if name == "chart" and (target := relations.get(_relation(element), ("", ""))[1]):
            yield from _chart(package.xml(target))
        elif name == "relIds":
            data = next((value for key, value in element.items() if key.endswith("}dm")), "")
            if target := relations.get(data, ("", ""))[1]:
                yield from _text(package.xml(target))


def _chart(root: Any) -> Iterator[str]:
    """The title, then one line a series: its name and its values; before them the categories."""
    categories: list[str] | None = None
    for element in root.iter():
        name = local(element)
        if name == "title":
            yield from _text(element)
        elif name == "ser":
            parts = {local(inner): inner for inner in element}
            found = _values(parts.get("cat", parts.get("xVal")))
            if found != categories:
                categories = found
                yield "\t".join(["", *found])
            yield "\t".join(
                [" ".join(_values(parts.get("tx"))), *_values(parts.get("val", parts.get("yVal")))]
            )


def _values(element: Any) -> list[str]:
    """The stored values of one reference of a chart."""
    if element is None:
        return []
    return [inner.text or "" for inner in element.iter() if local(inner) == "v"]
