"""One colour per concept, everywhere: figures, card and explorer; safe for colour-blind eyes (after Okabe and Ito)."""

__all__ = ["DARK", "LIGHT"]

LIGHT = {
    "psi": "#a0358a",
    "tangent": "#00775a",
    "with": "#0066a3",
    "without": "#c04d00",
    "tp": "#0072b2",
    "fn": "#56b4e9",
    "fp": "#d55e00",
    "tn": "#e69f00",
    "audit": "#111111",
    "ink": "#1b1d22",
    "quiet": "#565b66",
    "line": "#d7dae0",
    "bad": "#b3261e",
}
"""What is true has a hue (blue: in the data, orange: not), what the attack says its strength."""

DARK = {
    "psi": "#f08fdc",
    "tangent": "#4fd6ab",
    "with": "#6cc0f5",
    "without": "#ff9a57",
    "tp": "#3a9fe0",
    "fn": "#8fd0f5",
    "fp": "#f07f2f",
    "tn": "#f2bd4b",
    "audit": "#ffffff",
    "ink": "#eceef2",
    "quiet": "#a9b0bd",
    "line": "#3a3f49",
    "bad": "#ff9d94",
}
