"""HTML and SVG that escape by construction: text is escaped when it enters an element, and only elements nest.

Letters that act without being seen, such as those that turn the order of others, are spelled out (`visible`).
"""

from base64 import b64encode
from hashlib import sha256
from html import escape

from psidp.escaping import visible

__all__ = ["Element", "element", "source_hash"]


class Element(str):
    """Finished markup; anything else that enters an element is text and gets escaped."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str | float) -> Element:
    """One element; a trailing underscore in an attribute's name is dropped, other underscores become hyphens.

    Examples:
        >>> element("p", "1 < 2", class_="note")
        '<p class="note">1 &lt; 2</p>'
        >>> element("ul", element("li", "<script>"))
        '<ul><li>&lt;script&gt;</li></ul>'
    """
    named = {name.removesuffix("_").replace("_", "-"): str(value) for name, value in attributes.items()}
    opened = "".join(f' {name}="{escape(visible(value), quote=True)}"' for name, value in named.items())
    inside = "".join(child if isinstance(child, Element) else escape(visible(child)) for child in children)
    return Element(f"<{tag}{opened}>{inside}</{tag}>")


def source_hash(source: str) -> str:
    """The hash by which a Content-Security-Policy allows one inline script or style and no other.

    Examples:
        >>> source_hash("")
        "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    return f"'sha256-{b64encode(sha256(source.encode()).digest()).decode()}'"
