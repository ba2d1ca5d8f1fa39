"""`tokentrie inspect --regex --svg`: a small automaton as a drawing, states from left to right."""

from __future__ import annotations

from html import escape
from pathlib import Path

from tokentrie.cli import console
from tokentrie.cli.inspecting import automaton
from tokentrie.cli.inspecting.automaton import Automaton
from tokentrie.cli.inspecting.inspect_svg import STYLE
from tokentrie.files import replacing

# Pixels, and characters of a label.
RADIUS, ROW, GAP, LETTER, LONGEST = 16, 84, 76, 7.3, 18
OWN = (
    "path{fill:none;stroke:#8a97a4;stroke-width:1.3}circle{fill:#eef3f8;stroke:#1b6ca8;stroke-width:1.5}"
    "circle.end{stroke:#2f8f56}circle.ring{fill:none}.arrow{fill:#8a97a4;stroke:none}.mid{text-anchor:middle}"
    ".label{font-size:12px;text-anchor:middle;paint-order:stroke;stroke:#fff;stroke-width:4px}"
    "@media(prefers-color-scheme:dark){circle{fill:#22303c}.label{stroke:#16191d}}"
)
ARROW = '<marker id="to" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
ARROW += '<path class="arrow" d="M0 0L8 4L0 8z"/></marker>'

Place = tuple[float, float]


def save(path: Path, table: Automaton, title: str) -> None:
    """The file appears whole or not at all."""
    with replacing(path) as partial:
        partial.write_text(picture(table, title), encoding="utf-8")


def picture(table: Automaton, title: str) -> str:
    """Columns are lengths of the shortest beginnings; two circles are states where a text may end."""
    layers = table.layers()
    labels = [[(_label(ranges), after) for ranges, after in ways] for _, ways in table.table]
    column = GAP + LETTER * max((len(text) for ways in labels for text, _ in ways), default=0)
    tallest = max(map(len, layers))
    middle = 72 + tallest * ROW / 2
    places: dict[int, Place] = {}
    for number, layer in enumerate(layers):
        for row, state in enumerate(layer):
            places[state] = (56 + number * column, middle + (row - (len(layer) - 1) / 2) * ROW)
    parts = [f"<defs>{ARROW}</defs>", _text(16, 30, title or '""', "head"), _path(_entry(places[0]))]
    names = []
    for state, ways in enumerate(labels):
        for text, after in ways:
            curve, at = _way(places[state], places[after], column)
            parts.append(_path(curve))
            names.append(_text(*at, text, "label mono"))
    for state, (end, _) in enumerate(table.table):
        x, y = places[state]
        kind = ' class="end"' if end else ""
        parts.append(f'<circle{kind} cx="{x:.0f}" cy="{y:.0f}" r="{RADIUS}"/>')
        if end:
            parts.append(f'<circle class="end ring" cx="{x:.0f}" cy="{y:.0f}" r="{RADIUS - 4}"/>')
        parts.append(_text(x, y + 4, str(state), "mid"))
    # Above all curves.
    parts += names
    # Curves between states of one column stand out to the right, and their labels.
    beside = 56 + (tallest - 1) * ROW / 8 + (LETTER * LONGEST / 2 if tallest > 1 else 0)
    width = max(56 + (len(layers) - 1) * column + beside, 40 + 9 * len(title))
    return _document(width, middle + tallest * ROW / 2 + 8, title, parts)


def _label(ranges: automaton.Ranges) -> str:
    text = automaton.ranges_text(ranges)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _way(start: Place, end: Place, column: float) -> tuple[str, Place]:
    """A curve between two states, and the place of its label."""
    (x, y), (to_x, to_y) = start, end
    if start == end:
        top = y - RADIUS
        curve = f"M{x - 8:.0f} {top + 2:.0f}C{x - 26:.0f} {top - 34:.0f} {x + 26:.0f} {top - 34:.0f} "
        return curve + f"{x + 8:.0f} {top + 2:.0f}", (x, top - 30)
    if to_x == x:
        middle = (x + 24 + abs(to_y - y) * 0.25, (y + to_y) / 2)
    else:
        # Straight to the next column; a curve that goes further, or back, bends away from the states between.
        bend = 0.0 if 0 < to_x - x <= column * 1.01 else abs(to_x - x) * 0.2 + 8
        middle = ((x + to_x) / 2, (y + to_y) / 2 + bend)
    (from_x, from_y), (into_x, into_y) = _edge(start, middle), _edge(end, middle)
    # The label is nearer to the start of the curve: many curves may have the same end.
    label = (from_x * 0.4 + middle[0] * 0.5 + into_x * 0.1, from_y * 0.4 + middle[1] * 0.5 + into_y * 0.1 - 4)
    return f"M{from_x:.0f} {from_y:.0f}Q{middle[0]:.0f} {middle[1]:.0f} {into_x:.0f} {into_y:.0f}", label


def _edge(centre: Place, towards: Place) -> Place:
    """Returns the point at which the line between them leaves the circle."""
    across, down = towards[0] - centre[0], towards[1] - centre[1]
    length = max((across**2 + down**2) ** 0.5, 1)
    return centre[0] + across * RADIUS / length, centre[1] + down * RADIUS / length


def _entry(first: Place) -> str:
    return f"M{first[0] - RADIUS - 22:.0f} {first[1]:.0f}L{first[0] - RADIUS:.0f} {first[1]:.0f}"


def _path(curve: str) -> str:
    return f'<path d="{curve}" marker-end="url(#to)"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    shown = escape(console.printable(text), quote=False)
    return f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}" xml:space="preserve">{shown}</text>'


def _document(width: float, height: float, title: str, parts: list[str]) -> str:
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    title = f"<title>{escape(console.printable(title), quote=False)}</title>"
    return "\n".join([head, title, f"<style>{STYLE}{OWN}</style>", *parts, "</svg>\n"])
