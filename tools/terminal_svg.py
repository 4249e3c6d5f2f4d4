#!/usr/bin/env python3
"""Draws captured terminal output as an SVG whose text is text.

usage: COMMAND | tools/terminal_svg.py TITLE > docs/images/NAME.svg

The title is the command shown after the prompt. Colours come from the escape
sequences in the output (tmux capture-pane -e, or --color always).
"""

import re
import sys
from html import escape

CELL_W, CELL_H, PAD, BAR = 8.43, 19.0, 18.0, 30.0
FONT = 'ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace'
# A palette of its own on a ground of its own: the picture looks the same on
# light and on dark pages.
GROUND, EDGE, TEXT, DIM = "#1b1f27", "#3a404c", "#d7dae0", "#8b93a1"
COLOURS = ["#5c6370", "#ef7d85", "#98c379", "#e5c07b", "#6cb6ff", "#c995e8", "#5bc8d6", "#d7dae0"]
SGR = re.compile(r"\x1b\[([0-9;]*)m")
OTHER_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-HJ-Zf-l]|\x1b[()][A-Z0-9]|\r")


class Pen:
    """What the escape sequences up to here have set."""

    def __init__(self):
        self.colour, self.bold, self.dim, self.inverse = None, False, False, False

    def apply(self, codes):
        codes = [int(c or 0) for c in codes.split(";")]
        # The first colours of the large palette are those of the small one.
        if codes[:2] == [38, 5] and codes[2] < 8:
            codes = [30 + codes[2]]
        for code in codes:
            if code == 0:
                self.__init__()
            elif code == 7:
                self.inverse = True
            elif code == 1:
                self.bold = True
            elif code == 2:
                self.dim = True
            elif code == 22:
                self.bold = self.dim = False
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.colour = COLOURS[code % 10]
            elif code == 39:
                self.colour = None

    def attributes(self):
        fill = self.colour or (DIM if self.dim else TEXT)
        fill = GROUND if self.inverse else fill
        return f'fill="{fill}"' + (' font-weight="600"' if self.bold else "")


def runs(line, pen):
    """(column, text, attributes) of every piece of a line in one style."""
    column = 0
    for n, part in enumerate(SGR.split(line)):
        if n % 2:
            pen.apply(part)
        elif part:
            yield column, part, pen.attributes(), pen.inverse
            column += len(part)


def text_at(column, row, text, attributes):
    """The words of a piece, each group at its own place: blanks in a row are one to a browser."""
    y = BAR + PAD + row * CELL_H
    for words in re.finditer(r"\S+(?: \S+)*", text):
        x = PAD + (column + words.start()) * CELL_W
        # The width is fixed, so that columns stand in line in whatever font there is.
        yield (
            f'<text x="{x:.1f}" y="{y:.1f}" textLength="{len(words[0]) * CELL_W:.1f}" '
            f'lengthAdjust="spacingAndGlyphs" {attributes}>{escape(words[0])}</text>'
        )


def main():
    title = sys.argv[1]
    lines = [OTHER_ESCAPES.sub("", line) for line in sys.stdin.read().rstrip().split("\n")]
    lines = ["\x1b[32m$\x1b[0m \x1b[1m" + title + "\x1b[0m"] + lines
    columns = max(len(SGR.sub("", line)) for line in lines)
    width = 2 * PAD + columns * CELL_W
    height = BAR + PAD + len(lines) * CELL_H
    body, pen = [], Pen()
    for row, line in enumerate(lines):
        for column, text, style, inverse in runs(line, pen):
            if inverse:
                x, y = PAD + column * CELL_W, BAR + PAD + row * CELL_H - 14
                bar = f'x="{x:.1f}" y="{y:.1f}" width="{len(text) * CELL_W:.1f}"'
                body.append(f'<rect {bar} height="{CELL_H:.0f}" fill="{TEXT}"/>')
            body += text_at(column, row, text, style)
    print(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="{escape(title)}" '
        f"font-family='{FONT}' font-size=\"14\" xml:space=\"preserve\">"
    )
    print(
        f'<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8" '
        f'fill="{GROUND}" stroke="{EDGE}"/>'
    )
    for n, colour in enumerate(["#ff5f57", "#febc2e", "#28c840"]):
        print(f'<circle cx="{PAD + n * 18:.0f}" cy="16" r="5.5" fill="{colour}"/>')
    print("\n".join(piece for piece in body if piece))
    print("</svg>")


main()
