"""The house theme of every figure, and the one door to Altair."""

from typing import Any

from psidp.errors import MissingExtraError
from psidp.escaping import one_line
from psidp.present.palette import LIGHT

__all__ = ["Chart", "altair", "colours", "data", "finished", "word"]

Chart = Any
"""An Altair chart of any kind."""
Rows = list[dict[str, Any]]

SIZE = {"width": 360, "height": 300}


def altair() -> Any:
    """The altair module, or the line that installs it."""
    try:
        import altair as module
        import vl_convert  # noqa: F401
    except ImportError as missing:
        raise MissingExtraError("altair and vl-convert-python", "plot") from missing
    return module


def word(value: Any) -> str:
    """A name or a value from data as a figure shows it.

    Control characters would end the program that draws. A backslash looks like one and is none: Vega-Lite writes titles
    into expressions, where it would escape what follows.
    """
    return "NULL" if value is None else one_line(str(value)).replace("\\", "\N{SET MINUS}")


def data(rows: Rows) -> Any:
    """Rows as the data of a chart, inside the chart itself."""
    safe = [{name: word(cell) if isinstance(cell, str) else cell for name, cell in row.items()} for row in rows]
    return altair().Data(values=safe)


def colours(names: dict[str, str], title: str | None = None, **encoding: Any) -> Any:
    """A colour encoding from labels to the palette's concepts, in the given order."""
    alt = altair()
    scale = alt.Scale(domain=list(map(word, names)), range=[LIGHT.get(concept, concept) for concept in names.values()])
    return alt.Color("kind:N", title=title, scale=scale, **encoding)


def finished(chart: Chart, title: str, *subtitle: str) -> Chart:
    """The chart with its title and the house's looks."""
    alt = altair()
    title = word(title)
    words = alt.TitleParams(title, subtitle=list(map(word, subtitle))) if subtitle else alt.TitleParams(title)
    return styled(chart.properties(title=words))


def stacked(charts: list[Chart]) -> Chart:
    """Finished charts below each other, each with its own title and colours."""
    alt = altair()
    if len(charts) == 1:
        return charts[0]
    for chart in charts:
        chart.config = alt.Undefined  # only the whole has looks
    return styled(alt.vconcat(*charts).resolve_scale(color="independent"))


def styled(chart: Chart) -> Chart:
    """The chart with the house's looks."""
    text = {"labelColor": LIGHT["quiet"], "titleColor": LIGHT["ink"], "labelFontSize": 11, "titleFontSize": 12}
    return (
        chart.configure(font="sans-serif", background="white", padding=10)
        .configure_view(stroke=LIGHT["line"], continuousWidth=SIZE["width"], continuousHeight=SIZE["height"])
        .configure_axis(gridColor=LIGHT["line"], domainColor=LIGHT["quiet"], titleFontWeight="normal", **text)
        .configure_legend(orient="bottom", labelLimit=400, columns=2, symbolStrokeWidth=3, symbolOpacity=1, **text)
        .configure_title(anchor="start", fontSize=14, color=LIGHT["ink"], subtitleColor=LIGHT["quiet"], offset=12)
    )
