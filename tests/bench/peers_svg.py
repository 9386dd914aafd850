#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws how many times as fast pted is as other engines, from the ratios of peers.py.

A ratio of peers.py is pted's time over the peer's; a bar is the inverse of it. By itself the
program takes the first table with a column of each of PEERS from docs/project/figures.md.

usage: peers_svg.py docs/project/figures.md OUT.svg
"""
import re
import sys
from pathlib import Path

PEERS = ["ExecuTorch", "ONNX Runtime", "OpenVINO f32"]
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 860, 340, 44, 64, 74
BAR, STEP_MIN = 13, 0.5
STYLE = """\
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .title { font-size: 16px; font-weight: 600 }
    .axis { stroke: #d1d9e0 }
    .even { stroke: #1f2328; stroke-width: 1.5 }
    .p0 { fill: #0a5cc2 } .p1 { fill: #1a7f37 } .p2 { fill: #9a6700 }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc }
      .axis { stroke: #3d444d }
      .even { stroke: #f0f6fc }
      .p0 { fill: #6cb0ff } .p1 { fill: #4ac26b } .p2 { fill: #d4a72c }
    }
"""


def draw(rows, peers):
    """|rows|: (name, ratios of |peers|, None where there is none). Returns the picture's text."""
    most = max(1 / ratio for _, ratios in rows for ratio in ratios if ratio)
    top = STEP_MIN * (int(most / STEP_MIN) + 1)
    floor = HEIGHT - BOTTOM

    def place(value):
        return floor - value / top * (floor - TOP)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" '
           f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
           "  <title>How many times as fast pted is as other engines</title>",
           f"  <style>\n{STYLE}  </style>",
           '  <text class="title" x="8" y="22">pted is so many times as fast '
           "(above the line: faster)</text>"]
    for i, peer in enumerate(peers):
        x = 8 + i * 170
        out.append(f'  <rect class="p{i}" x="{x}" y="36" width="12" height="12"/>'
                   f'<text x="{x + 18}" y="47">as {peer.removesuffix(" f32")}</text>')
    for i in range(int(top / STEP_MIN) + 1):
        value = i * STEP_MIN
        kind = "even" if value == 1 else "axis"
        out.append(f'  <path class="{kind}" d="M{LEFT} {place(value):.1f} H{WIDTH - 8}"/>'
                   f'<text x="8" y="{place(value) + 4:.1f}">{value:.1f}</text>')
    pitch = (WIDTH - LEFT - 8) / len(rows)
    for i, (name, ratios) in enumerate(rows):
        begin = LEFT + (i + 0.5) * pitch
        for k, ratio in enumerate(ratios):
            if ratio:
                x, y = begin + (k - len(ratios) / 2) * BAR, place(1 / ratio)
                out.append(f'  <rect class="p{k}" x="{x:.1f}" y="{y:.1f}" width="{BAR - 1}" '
                           f'height="{floor - y:.1f}"><title>{name}: {1 / ratio:.2f} times as fast '
                           f"as {peers[k]}</title></rect>")
        out.append(f'  <text transform="translate({begin + 6:.1f} {floor + 16}) rotate(-30)" '
                   f'text-anchor="end">{name}</text>')
    return "\n".join([*out, "</svg>", ""])


def read_table(page):
    """The rows of the table, as draw() takes them."""
    head = r"^\| network \| pted ms \| " + r" \| ".join(PEERS) + r" \|.*\n\|[- |]+\n((?:\|.*\n)+)"
    found = re.search(head, page, re.MULTILINE)
    if not found:
        sys.exit(f"expected a table with columns {', '.join(PEERS)}")
    rows = []
    for line in found[1].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        ratios = [re.match(r"\d+\.\d+", cell) for cell in cells[2:2 + len(PEERS)]]
        rows.append((cells[0], [float(ratio[0]) if ratio else None for ratio in ratios]))
    return rows


def main():
    page, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.write_text(draw(read_table(page.read_text(encoding="utf-8")), PEERS), encoding="utf-8")


if __name__ == "__main__":
    main()
