"""Conditions and derived columns as text: tokens and grammar. One pass over the text, and no look at any table's rows.

    age >= 18 and ward in ('A', 'B')        visited between 2026-01-01 and 2026-03-31 or note is null
    not (name like 'Mc%')                   month(visited) = 3
    case when cost < 100 then 'small' else 'large' end as size

The words are SQL's, and so is what binds tighter: NOT, then AND, then OR. What a word means, a column or a value, is
decided by who knows the columns.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

__all__ = [
    "Between",
    "Call",
    "Case",
    "Compared",
    "Joined",
    "Like",
    "Listed",
    "Missing",
    "Node",
    "Not",
    "Word",
    "parse",
    "shorten",
]

LONGEST_TEXT = 10_000
"""Letters of a text."""

LONGEST_SHOWN = 200
"""Letters of it that a refusal repeats."""

DEEPEST = 50
"""How deep brackets, calls, CASE and NOT may lie in each other."""

INSTANT = r"[0-9]{4}-[0-9]{2}-[0-9]{2} +[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]*)?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
PIECES = (
    r"""(?P<blank>\s++)|(?P<text>'(?:[^']|'')*+')|(?P<quoted>"(?:[^"]|"")*+")"""
    rf"|(?P<word>{INSTANT}|[\w.+:/-]++)|(?P<sign>>=|<=|!=|<>|==|=|>|<|\(|\)|,)"
)
PLAIN = re.compile(r"[\w.+:/-]+")
SAME = {"==": "=", "<>": "!="}
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Word:
    """A name or a value: bare, or what stood between `quote` and `quote`."""

    text: str
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """A function of some arguments, such as month(visited)."""

    name: str
    arguments: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """left operator right."""

    left: "Node"
    operator: str
    right: "Node"


@dataclass(frozen=True, slots=True)
class Listed:
    """value IN (options)."""

    value: "Node"
    options: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Between:
    """value BETWEEN low AND high, both included."""

    value: "Node"
    low: "Node"
    high: "Node"


@dataclass(frozen=True, slots=True)
class Missing:
    """value IS NULL."""

    value: "Node"


@dataclass(frozen=True, slots=True)
class Like:
    """value LIKE pattern."""

    value: "Node"
    pattern: "Node"


@dataclass(frozen=True, slots=True)
class Joined:
    """Parts joined by and, or by or."""

    word: str
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """NOT part."""

    part: "Node"


@dataclass(frozen=True, slots=True)
class Case:
    """CASE WHEN condition THEN result ... ELSE otherwise END."""

    branches: tuple[tuple["Node", "Node"], ...]
    otherwise: "Node | None"


Node = Word | Call | Compared | Listed | Between | Missing | Like | Joined | Not | Case


def parse(text: str, columns: Sequence[str], role: str) -> tuple[Node, str]:
    """The tree of a text, and the name that stands behind AS, if one does.

    Args:
        columns: names of the table's columns; those of odd letters may stand without quotes. role: what the text is,
            for refusals, such as "where".
    """
    if not len(text) <= LONGEST_TEXT:
        raise ValueError(f"{role} must have at most {LONGEST_TEXT:,} letters, got {len(text):,}.")
    return _Parser(role, text, _tokens(text, columns, role)).whole()


def shorten(text: str) -> str:
    """The beginning of a text."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int


def _tokens(text: str, columns: Sequence[str], role: str) -> list[_Token]:
    """Words, quoted texts and signs, in their order."""
    odd = sorted((name for name in columns if name and not PLAIN.fullmatch(name)), key=len, reverse=True)
    spelled = {f'"{name}"': name for name in odd if '"' in name} | {name: name for name in odd}
    names = "|".join(rf"{re.escape(name)}(?!\w)" for name in spelled)
    pattern = re.compile(rf"(?P<name>{names})|{PIECES}" if names else PIECES)
    found, at = [], 0
    while at < len(text):
        piece = pattern.match(text, at)
        if piece is None or piece.end() == at:
            _refuse(role, text, at)
        if piece.lastgroup != "blank":
            found.append(_Token(str(piece.lastgroup), spelled.get(piece[0], piece[0]), at))
        at = piece.end()
    return found


def _refuse(role: str, text: str, at: int) -> NoReturn:
    """The refusal of a text that breaks off from the grammar at a place."""
    rest, before = shorten(text[at:].strip()), shorten(text[:at].strip()[-40:])
    raise ValueError(
        f"{role} must be column, comparison and value, such as \"age >= 18 and ward in ('A', 'B')\", with text in "
        f"single quotes and odd names in double ones, got {rest or 'nothing'!r}{f' after {before!r}' * bool(before)}. "
        "Arithmetic, casts and other functions are not read: have them as columns of the table."
    )


@dataclass(slots=True)
class _Parser:
    """Recursive descent; each token is looked at a fixed number of times."""

    role: str
    text: str
    tokens: list[_Token]
    at: int = 0
    depth: int = field(default=0)

    def whole(self) -> tuple[Node, str]:
        node = self._or()
        name = ""
        if self._take("as"):
            made = self._name()
            name = made.text
        if self.at < len(self.tokens):
            self._refuse()
        return node, name

    def _refuse(self) -> NoReturn:
        _refuse(self.role, self.text, self.tokens[self.at].start if self.at < len(self.tokens) else len(self.text))

    def _peek(self) -> str:
        """The next keyword or sign, in small letters; nothing at the end or before quotes."""
        if not self.at < len(self.tokens):
            return ""
        token = self.tokens[self.at]
        return token.text.lower() if token.kind in ("word", "sign") else ""

    def _take(self, *words: str) -> bool:
        """Whether the next tokens are these; then they are behind us."""
        start = self.at
        for word in words:
            if self._peek() != word:
                self.at = start
                return False
            self.at += 1
        return True

    def _need(self, word: str) -> None:
        if not self._take(word):
            self._refuse()

    def _deeper(self, part: Callable[[], Node]) -> Node:
        """A part that lies within another."""
        self.depth += 1
        if not self.depth <= DEEPEST:
            raise ValueError(f"{self.role} must not nest deeper than {DEEPEST} brackets.")
        made = part()
        self.depth -= 1
        return made

    def _or(self) -> Node:
        return self._chain("or", lambda: self._chain("and", self._not))

    def _chain(self, word: str, part: Callable[[], Node]) -> Node:
        parts = [part()]
        while self._take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Joined(word, tuple(parts))

    def _not(self) -> Node:
        if self._take("not"):
            return Not(self._deeper(self._not))
        return self._predicate()

    def _predicate(self) -> Node:
        value = self._operand()
        sign = SAME.get(self._peek(), self._peek())
        if sign in COMPARISONS:
            self.at += 1
            return Compared(value, sign, self._operand())
        if self._take("is"):
            negated = self._take("not")
            self._need("null")
            return Not(Missing(value)) if negated else Missing(value)
        negated = self._take("not")
        if self._take("in"):
            made: Node = Listed(value, self._list())
        elif self._take("between"):
            low = self._operand()
            self._need("and")
            made = Between(value, low, self._operand())
        elif self._take("like"):
            made = Like(value, self._operand())
        elif negated:
            self._refuse()
        else:
            return value
        return Not(made) if negated else made

    def _list(self) -> tuple[Node, ...]:
        self._need("(")
        found = [self._operand()]
        while self._take(","):
            found.append(self._operand())
        self._need(")")
        return tuple(found)

    def _operand(self) -> Node:
        if self._take("("):
            made = self._deeper(self._or)
            self._need(")")
            return made
        if self._take("case"):
            return self._deeper(self._case)
        word = self._name()
        if not word.quote and self._peek() == "(" and PLAIN.fullmatch(word.text):
            return self._deeper(lambda: Call(word.text.lower(), self._list()))
        return word

    def _case(self) -> Node:
        branches = []
        while self._take("when"):
            condition = self._or()
            self._need("then")
            branches.append((condition, self._operand()))
        if not branches:
            self._refuse()
        otherwise = self._operand() if self._take("else") else None
        self._need("end")
        return Case(tuple(branches), otherwise)

    def _name(self) -> Word:
        """A word, a quoted text or a name of odd letters."""
        if not self.at < len(self.tokens) or self.tokens[self.at].kind == "sign":
            self._refuse()
        token = self.tokens[self.at]
        self.at += 1
        if token.kind == "name":
            return Word(token.text, '"')
        if token.kind == "word":
            return Word(token.text)
        quote = token.text[0]
        return Word(token.text[1:-1].replace(2 * quote, quote), quote)
