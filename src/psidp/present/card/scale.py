"""The card's scale: from a coin, nothing can be learnt, to certainty, no protection; in right guesses out of 1,000."""

from psidp.present.card.front import Mark
from psidp.present.formatting import per_thousand
from psidp.present.markup import Element, element
from psidp.present.palette import LIGHT

__all__ = ["in_one_line", "scale_picture"]

WIDE, LEFT, AXIS = 640, 20, 62
ROOM = WIDE - 2 * LEFT
LETTER = 5.6
"""Width of a letter of the scale, on average."""


def right(mark: Mark) -> str:
    """Right guesses out of 1,000, never below."""
    return per_thousand((1.0 + mark.advantage) / 2.0)


def in_one_line(marks: tuple[Mark, ...]) -> str:
    """The scale in words, for formats without pictures.

    Examples:
        >>> in_one_line((Mark("this release", 0.2),))
        '500 (nothing can be learnt) ... 600 (this release) ... 1,000 (no protection)'
    """
    ordered = sorted(marks, key=lambda mark: mark.advantage)
    inner = " ... ".join(f"{right(mark)} ({mark.name})" for mark in ordered)
    return f"500 (nothing can be learnt) ... {inner} ... 1,000 (no protection)"


def scale_picture(marks: tuple[Mark, ...]) -> Element:
    """The scale as an SVG with every mark and its number of right guesses."""
    parts = [
        element("line", x1=LEFT, x2=LEFT + ROOM, y1=AXIS, y2=AXIS, stroke=LIGHT["ink"], stroke_width=3),
        *(_tick(guesses) for guesses in range(500, 1001, 100)),
        element("text", "nothing can be learnt", x=LEFT, y=AXIS + 34, class_="end"),
        element("text", "no protection", x=LEFT + ROOM, y=AXIS + 34, text_anchor="end", class_="end"),
        element(
            "text", "right guesses in 1,000, at most", x=WIDE / 2, y=AXIS + 34, text_anchor="middle", class_="unit"
        ),
    ]
    drawn = [_drawn(i, mark) for i, mark in enumerate(marks)]
    parts += [part for stem, circle, _ in drawn for part in (stem, circle)]
    parts += [words for _, _, words in drawn]  # upon all lines
    label = f"Right guesses out of 1,000: {in_one_line(marks)}"
    named = {"role": "img", "aria_label": label, "viewBox": f"0 0 {WIDE} {AXIS + 40}", "class_": "scale"}
    return element("svg", *parts, xmlns="http://www.w3.org/2000/svg", **named)


def _tick(guesses: int) -> Element:
    x = LEFT + ROOM * (guesses - 500) / 500
    line = element("line", x1=x, x2=x, y1=AXIS - 5, y2=AXIS + 5, stroke=LIGHT["ink"])
    anchor = "start" if guesses == 500 else "end" if guesses == 1000 else "middle"
    inner = "inner" if 500 < guesses < 1000 else "outer"
    return element("g", line, element("text", f"{guesses:,}", x=x, y=AXIS + 18, text_anchor=anchor, class_=inner))


def _drawn(i: int, mark: Mark) -> tuple[Element, Element, Element]:
    """A mark: the first, the release, is full, the others hollow; each on a line of its own."""
    x = LEFT + ROOM * min(mark.advantage, 1.0)
    y = AXIS - 18 - 20 * i
    words = f"{mark.name[:40]}: {right(mark)}"
    left = x + 8 + LETTER * len(words) > WIDE
    text = element(
        "text", words, x=x - 8 if left else x + 8, y=y, text_anchor="end" if left else "start", class_="mark"
    )
    stem = element("line", x1=x, x2=x, y1=AXIS, y2=y - 8, stroke=LIGHT["psi"], stroke_width=1.5)
    fill = LIGHT["psi"] if i == 0 else "#ffffff"
    circle = element("circle", cx=x, cy=AXIS, r=7, fill=fill, stroke=LIGHT["psi"], stroke_width=2.5)
    return stem, circle, text
