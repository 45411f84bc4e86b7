"""Names and values from data, made safe for where they are shown: one function for each kind of document.

Letters that act without being seen, such as escape sequences of terminals or marks that turn the order of others, are
spelled out everywhere. HTML and SVG escape in `psidp.present.markup`, on top of `visible`.
"""

import re
from unicodedata import category

__all__ = ["json_text", "latex", "markdown", "one_line", "visible"]

PUNCTUATION = re.compile(r"[\\`*_{}\[\]<>#|~&$@^]")
"""What Markdown and its common extensions act on, anywhere in a line."""

LINK = re.compile(r"(?<=[A-Za-z]):(?=//)|(?<=www)\.", re.IGNORECASE)
"""What makes an address in plain text a link."""

START = re.compile(r"^(?:[-+](?=[-+\s]|$)|[=:]|\d+(?=[.)](?:\s|$)))")
"""What begins a list, a rule or a heading of Markdown where it begins a line."""

TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\char34{}", "`": r"\textasciigrave{}", "[": "{[}", "]": "{]}", "*": "{*}",
}  # fmt: skip
"""[ and * stand in braces: a line that begins with them would be an option of the line before."""


def visible(text: str) -> str:
    """Text in which what has no shape of its own, or turns the order of others, is spelled out; line breaks stay.

    Examples:
        >>> print(visible("bob\\x1b[2J\\u202etxt"))
        bob\\x1b[2J\\u202etxt
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" or category(c) == "Zs" else _spelled(c) for c in text)


def one_line(text: str) -> str:
    """The same with line breaks spelled out, for a value from data: it cannot begin a line of its own.

    Examples:
        >>> print(one_line("North\\nIt cost nothing."))
        North\\nIt cost nothing.
    """
    return visible(text).replace("\n", "\\n")


def markdown(text: str) -> str:
    """Text that Markdown shows as it is, in a line or a cell.

    Examples:
        >>> print(markdown("a|b <i> [x](http://y)"))
        a\\|b \\<i\\> \\[x\\](http\\://y)
    """
    escaped = LINK.sub(r"\\\g<0>", PUNCTUATION.sub(r"\\\g<0>", one_line(text)))
    begun = START.sub(lambda m: f"\\{m[0]}" if not m[0].isdigit() else f"{m[0]}\\", escaped)
    return re.sub(r"^[ \t]+|[ \t]+$", lambda m: "&#32;" * len(m[0]), begun)


def latex(text: str) -> str:
    """Text that LaTeX shows as it is, in a paragraph or a cell.

    Examples:
        >>> print(latex("[5%] a_b^2"))
        {[}5\\%{]} a\\_b\\textasciicircum{}2
    """
    return "".join(TEX.get(letter, letter) for letter in one_line(text)).replace("--", "-{}-")


def json_text(text: str) -> str:
    """JSON in which letters that act unseen are escaped, so that a terminal can show it; it is read as before.

    Examples:
        >>> print(json_text('{"who": "\\u202eAnn\\x9b"}'))
        {"who": "\\u202eAnn\\u009b"}
    """
    return "".join(c if c.isprintable() or c == "\n" or category(c) == "Zs" else _in_json(c) for c in text)


def _spelled(letter: str) -> str:
    """A letter by its number."""
    return letter.encode("unicode_escape").decode()


def _in_json(letter: str) -> str:
    """A letter as JSON escapes it: above U+FFFF by two halves."""
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
