"""Spending over time as bars in an SVG: each bar is a day, a month or a year, whichever reads well."""

from fractions import Fraction

from psidp.present.formatting import up
from psidp.present.markup import Element, element
from psidp.present.palette import LIGHT

__all__ = ["bars", "stretches"]

MOST = 62
WIDTH, HEIGHT, LEFT, BELOW = 640.0, 160.0, 48.0, 34.0


def stretches(days: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """psi of each day; of each month or year where days would be too many. psi^2 adds up.

    Examples:
        >>> stretches([("2026-01-01", 3.0), ("2026-01-02", 4.0)])
        [('2026-01-01', 3.0), ('2026-01-02', 4.0)]
        >>> stretches([(f"2026-{month:02}-{day:02}", 1.0) for month in (1, 2) for day in range(1, 37)])
        [('2026-01', 6.0), ('2026-02', 6.0)]
    """
    for letters in (10, 7, 4):
        squares: dict[str, Fraction] = {}
        for day, psi in days:
            squares[day[:letters]] = squares.get(day[:letters], Fraction(0)) + Fraction(psi) ** 2
        if len(squares) <= MOST:
            break
    return [(name, float(square) ** 0.5) for name, square in squares.items()]


def bars(days: list[tuple[str, float]]) -> Element:
    """The picture: one bar for each stretch in which something was spent, its height psi^2, its label psi."""
    found = stretches(days)
    top = max(psi for _, psi in found) ** 2 or 1.0
    step = (WIDTH - LEFT) / len(found)
    every = max(1, len(found) // 8)
    drawn = []
    for i, (name, psi) in enumerate(found):
        height, x = (HEIGHT - 12.0) * psi**2 / top, LEFT + i * step
        told = element("title", f"{name}: psi {up(psi)}")
        drawn.append(
            element("rect", told, x=f"{x + step * 0.1:.1f}", y=f"{HEIGHT - height:.1f}", width=f"{step * 0.8:.1f}",
                    height=f"{height:.1f}", fill=LIGHT["psi"])
        )  # fmt: skip
        if i % every == 0:
            drawn.append(_word(name, x + step / 2.0, HEIGHT + 16.0, "middle"))
    drawn += [_word(up(top**0.5, 3), LEFT - 6.0, 16.0, "end"), _word("0", LEFT - 6.0, HEIGHT, "end")]
    drawn.append(_word("psi, on the scale of its square", LEFT, HEIGHT + 31.0, "start"))
    axis = element("line", x1=LEFT, y1=HEIGHT, x2=WIDTH, y2=HEIGHT, stroke=LIGHT["line"])
    label = f"psi spent in {len(found)} stretches of time, at most {up(top**0.5)} in one"
    return element("svg", axis, *drawn, xmlns="http://www.w3.org/2000/svg", role="img", aria_label=label,
                   viewBox=f"0 0 {WIDTH:g} {HEIGHT + BELOW:g}")  # fmt: skip


def _word(text: str, x: float, y: float, anchor: str) -> Element:
    return element("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, font_size=11, fill=LIGHT["quiet"])
