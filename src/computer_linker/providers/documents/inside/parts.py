"""Which document a ZIP package is, by its content types or its `mimetype` part."""

from computer_linker.providers.documents.inside.base import Refused
from computer_linker.providers.documents.inside.markup import relations, tree
from computer_linker.providers.documents.inside.package import Package

_OOXML = {"wordprocessingml": "word", "spreadsheetml": "excel", "presentationml": "powerpoint"}
_BY_MIMETYPE = {
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/vnd.oasis.opendocument.presentation": "odp",
    "application/vnd.oasis.opendocument.graphics": "odp",
    "application/epub+zip": "epub",
}


def kind_of(package: Package) -> tuple[str, str]:
    """The kind, and the name of the main part of an OOXML document; `zip` for any other archive."""
    if "mimetype" in package:
        stated = package.read("mimetype", 1 << 16).decode("ascii", "replace").strip()
        kind = _BY_MIMETYPE.get(stated.removesuffix("-template"), "zip")
        if kind != "zip":
            return kind, ""
    if "[Content_Types].xml" not in package:
        return "zip", ""
    main = next((part for part in relations(package, "").values() if part in package and _is_main(part)), "")
    types = tree(package.read("[Content_Types].xml"))
    for node in types.find_all("Override"):
        name, stated = node.attributes.get("PartName", "").lstrip("/"), node.attributes.get("ContentType", "")
        if stated.endswith("main+xml") and name in package and (not main or name == main):
            for word, kind in _OOXML.items():
                if (
                    word in stated
                    or (kind != "word" and f"ms-{kind}" in stated)
                    or (kind == "word" and "ms-word" in stated)
                ):
                    return kind, name
    if any(name.endswith(".bin") and "workbook" in name for name in package.infos):
        raise Refused("invalid_request", "A binary workbook (.xlsb) is not read; save it as .xlsx.")
    return "zip", ""


def _is_main(part: str) -> bool:
    return part.endswith(".xml") and "docProps" not in part and "customXml" not in part
