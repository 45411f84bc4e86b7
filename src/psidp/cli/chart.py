"""Chart: a line over time, drawn with blocks on a terminal."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from psidp.present.formatting import up

__all__ = ["draw"]

BLOCKS = " ▁▂▃▄▅▆▇█"


def draw(points: Sequence[tuple[datetime, float]], width: int = 60, height: int = 6) -> list[str]:
    """The lines of a chart of a quantity that steps up over time; its scale on the left, first and last day below.

    Examples:
        >>> day = datetime(2026, 1, 1)
        >>> print("\\n".join(draw([(day, 0.0), (day.replace(month=3), 1.0), (day.replace(month=4), 2.0)], 8, 2)))
        2 |       █
        0 |     ███
          2026-01-01 to 2026-04-01
    """
    if not points:
        return []
    columns = _columns(points, width)
    top = max(columns) or 1.0
    labels = [up(top, 3), *[""] * (height - 2), "0"]
    margin = max(map(len, labels))
    lines = []
    for row in range(height - 1, -1, -1):
        cells = "".join(BLOCKS[min(8, max(0, round(8 * (height * value / top - row))))] for value in columns)
        lines.append(f"{labels[height - 1 - row]:>{margin}} |{cells}".rstrip())
    first, last = points[0][0], points[-1][0]
    return [*lines, f"{'':>{margin}} {_stretch(first, last)}"]


def _stretch(first: datetime, last: datetime) -> str:
    """From when to when: with the time of the day where that is what tells them apart."""
    if last - first >= timedelta(days=3):
        return f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"
    end = "%H:%M:%S" if first.date() == last.date() else "%Y-%m-%d %H:%M:%S"
    return f"{first:%Y-%m-%d %H:%M:%S} to {last:{end}}" if first < last else f"{first:%Y-%m-%d %H:%M:%S}"


def _columns(points: Sequence[tuple[datetime, float]], width: int) -> list[float]:
    """The value at the end of each of so many equal stretches of time."""
    first, last = points[0][0], points[-1][0]
    columns, at = [], 0
    for column in range(width):
        end = first + (last - first) * ((column + 1) / width)
        while at + 1 < len(points) and (points[at + 1][0] <= end or column == width - 1):
            at += 1
        columns.append(points[at][1])
    return columns
