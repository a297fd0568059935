"""The content of an XMP sidecar: our keywords, and everything that was in it before.

Our keywords are also listed under a namespace of ours, so that a later export can replace them and
nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from xml.dom import minidom
from xml.parsers import expat
from xml.sax.saxutils import escape

from nouncut.errors import InputError

_KEYWORD = "nouncut"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_XMLNS = "http://www.w3.org/2000/xmlns/"
_OURS = ("nouncut", "urn:nouncut:keywords:1.0/")
# Properties that hold keywords: prefix, namespace, name, and the kind of list.
SUBJECT = ("dc", "http://purl.org/dc/elements/1.1/", "subject", "Bag")
HIERARCHY = ("lr", "http://ns.adobe.com/lightroom/1.0/", "hierarchicalSubject", "Bag")
TAGS = ("digiKam", "http://www.digikam.org/ns/1.0/", "TagsList", "Seq")
_PROPERTIES = (SUBJECT, HIERARCHY, TAGS)
_MAX_DEPTH = 100
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Property = tuple[str, str, str, str]
Keywords = dict[Property, list[str]]


def keywords_of(
    name: str, fallback: str, above: Sequence[str] = (), *, digikam: bool = True
) -> Keywords:
    """Return the keyword ``nouncut`` and, below it, the groups above and a name."""
    cleaned = [" ".join(_NOT_XML.sub("", one).replace("|", "-").split()) for one in (*above, name)]
    cleaned[-1] = cleaned[-1] or fallback
    path = [_KEYWORD, *(one for one in cleaned if one)]
    found = {SUBJECT: list(dict.fromkeys(path)), HIERARCHY: ["|".join(path)]}
    if digikam:
        found[TAGS] = ["/".join(one.replace("/", "-") for one in path)]
    return found


def new_sidecar(keywords: Keywords) -> bytes:
    """Return a sidecar with nothing but keywords."""
    ours = {(*_OURS, name, kind): values for (_, _, name, kind), values in keywords.items()}
    every = keywords | ours
    spaces = {f'xmlns:{prefix}="{uri}"' for prefix, uri, _, _ in every}
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<x:xmpmeta xmlns:x="adobe:ns:meta/" x:xmptk="nouncut">',
        f' <rdf:RDF xmlns:rdf="{_RDF}">',
        '  <rdf:Description rdf:about=""',
        *(f"    {space}" for space in sorted(spaces)),
        "  >",
    ]
    for (prefix, _, name, kind), values in every.items():
        items = [f"     <rdf:li>{escape(value)}</rdf:li>" for value in values]
        lines += [f"   <{prefix}:{name}>", f"    <rdf:{kind}>", *items]
        lines += [f"    </rdf:{kind}>", f"   </{prefix}:{name}>"]
    lines += ["  </rdf:Description>", " </rdf:RDF>", "</x:xmpmeta>", ""]
    return "\n".join(lines).encode()


def merged_sidecar(existing: bytes, keywords: Keywords) -> bytes | None:
    """Return a sidecar with our keywords replaced and all else kept; None if nothing else remains.

    An `InputError` says why a sidecar cannot be changed safely.
    """
    document = _parse(existing)
    packet = _Packet(document)
    ours = {one: packet.values((*_OURS, *one[2:])) for one in _PROPERTIES}
    theirs = {
        one: [value for value in packet.values(one) if value not in ours[one]]
        for one in _PROPERTIES
    }
    wanted = _with_flat(keywords, theirs)
    added = {one: _without(wanted.get(one, []), theirs[one]) for one in _PROPERTIES}
    if all(
        added[one] == ours[one] and set(packet.values(one)) >= set(added[one])
        for one in _PROPERTIES
    ):
        return existing
    for one in _PROPERTIES:
        packet.remove((*_OURS, *one[2:]), ours[one])
        packet.remove(one, ours[one])
    if packet.is_empty():
        return new_sidecar(keywords) if keywords else None
    for one, values in added.items():
        packet.add(one, values)
        packet.add((*_OURS, *one[2:]), values)
    content: bytes = document.toxml(encoding="UTF-8")
    return content


def _with_flat(keywords: Keywords, theirs: Keywords) -> Keywords:
    """Add flat keywords to hierarchies that are ours alone.

    Programs that find a hierarchy do not read the flat keywords (seen in darktable 4.2).
    """
    return {
        one: [*values, *theirs[SUBJECT]] if one != SUBJECT and not theirs[one] else values
        for one, values in keywords.items()
    }


def _without(values: list[str], others: list[str]) -> list[str]:
    return [value for value in values if value not in others]


class _Packet:
    """The lists of values in a parsed sidecar."""

    def __init__(self, document: minidom.Document) -> None:
        self._document = document
        roots = document.getElementsByTagNameNS(_RDF, "RDF")
        if len(roots) != 1:
            raise InputError("it has no XMP that nouncut knows")
        self._root = roots[0]
        self._descriptions = _children(self._root, _RDF, "Description")
        if not self._descriptions:
            raise InputError("it has no XMP that nouncut knows")
        for description in self._descriptions:
            if any(description.hasAttributeNS(uri, name) for _, uri, name, _ in _PROPERTIES):
                raise InputError("its keywords are not lists")

    def values(self, one: Property) -> list[str]:
        return [_text(item) for item in self._items(one)]

    def remove(self, one: Property, values: list[str]) -> None:
        """Remove values, and the property if none are left."""
        for item in self._items(one):
            if _text(item) in values:
                _remove(item)
        for element in self._elements(one):
            if not _children(self._list(element), _RDF, "li"):
                _remove(element)

    def add(self, one: Property, values: list[str]) -> None:
        if not values:
            return
        elements = self._elements(one)
        place = self._list(elements[0]) if elements else self._new_list(one)
        for value in values:
            item = place.appendChild(self._new("li"))
            item.appendChild(self._document.createTextNode(value))

    def is_empty(self) -> bool:
        """Return whether nothing but the frame is left."""
        nodes = [node for one in self._descriptions for node in one.childNodes]
        attributes = [pair for one in self._descriptions for pair in one.attributes.items()]
        is_bare = all(name.startswith("xmlns") or not value for name, value in attributes)
        return is_bare and all(n.nodeType == n.TEXT_NODE and not n.data.strip() for n in nodes)

    def _elements(self, one: Property) -> list[Any]:
        _, uri, name, _ = one
        return [found for part in self._descriptions for found in _children(part, uri, name)]

    def _items(self, one: Property) -> list[Any]:
        lists = [self._list(element) for element in self._elements(one)]
        return [item for place in lists for item in _children(place, _RDF, "li")]

    def _list(self, element: Any) -> Any:
        lists = [
            found for kind in ("Bag", "Seq", "Alt") for found in _children(element, _RDF, kind)
        ]
        if len(lists) != 1:
            raise InputError("its keywords are not lists")
        return lists[0]

    def _new_list(self, one: Property) -> Any:
        prefix, uri, name, kind = one
        element = self._document.createElementNS(uri, f"{prefix}:{name}")
        element.setAttributeNS(_XMLNS, f"xmlns:{prefix}", uri)
        self._descriptions[0].appendChild(element)
        return element.appendChild(self._new(kind))

    def _new(self, name: str) -> Any:
        prefix = f"{self._root.prefix}:" if self._root.prefix else ""
        return self._document.createElementNS(_RDF, f"{prefix}{name}")


def _parse(content: bytes) -> minidom.Document:
    """Parse XML without document types, which could define entities, and without deep nesting."""
    depth = 0

    def refuse(*_: object) -> None:
        raise InputError("it has a document type, which no sidecar needs")

    def enter(*_: object) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH:
            raise InputError("it is nested too deeply")

    def leave(*_: object) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = enter, leave
    try:
        parser.Parse(content, True)
        return minidom.parseString(content)
    except InputError:
        raise
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise InputError("it is not well-formed XML") from error


def _children(element: Any, uri: str, name: str) -> list[Any]:
    return [
        node
        for node in element.childNodes
        if node.nodeType == node.ELEMENT_NODE and (node.namespaceURI, node.localName) == (uri, name)
    ]


def _text(element: Any) -> str:
    kinds = (element.TEXT_NODE, element.CDATA_SECTION_NODE)
    return "".join(node.data for node in element.childNodes if node.nodeType in kinds).strip()


def _remove(node: Any) -> None:
    """Remove a node and the white space before it."""
    before = node.previousSibling
    if before is not None and before.nodeType == before.TEXT_NODE and not before.data.strip():
        node.parentNode.removeChild(before)
    node.parentNode.removeChild(node)
