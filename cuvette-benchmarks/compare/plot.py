"""Plots live and held memory over the operations of a trace as SVG, a line for each allocator.

As a program it reads lines of JSON from standard input, such as those of `cuvette replay --json --timeline 300`,
and writes one file for each trace: python3 plot.py FOLDER
"""
import os
import sys

import measurements

WIDTH, HEIGHT = 720, 330
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 46, 34
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8c564b", "#666666", "#000000")
TITLES = {"cuvette": "MemoryPool", "cuvette-elastic": "ElasticMemoryPool", "cuvette-async": "AsyncMemoryPool",
          "cuvette-direct": "direct"}


def timelines(lines):
    """{trace: {anchor: [[operation, live bytes, held bytes], ...]}} of the lines that have one."""
    found = {}
    for line in map(measurements.normalise, lines):
        points = line.get("timeline")
        if points and str(line.get("work", "")).startswith("replay-"):
            found.setdefault(line["work"][len("replay-"):], {})[line["anchor"]] = points
    return found


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def step(largest):
    """The distance of lines that are 1, 2 or 5 times a power of ten apart, of which 4 to 10 fit."""
    power = 10 ** len(str(int(largest)))
    for part in (1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005):
        if largest / (power * part) >= 4:
            return power * part
    return largest or 1


def unit(most_bytes):
    """The binary unit in which the axis has numbers that are neither tiny nor huge."""
    for name, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if most_bytes >= 4 * size:
            return name, size
    return "bytes", 1


def path(points, value, x, y):
    """An SVG path through the points; those on a straight line with their neighbours are left out."""
    pairs = [(round(x(point[0]), 1), round(y(point[value]), 1)) for point in points]
    kept = [p for i, p in enumerate(pairs)
            if i in (0, len(pairs) - 1) or not pairs[i - 1][1] == p[1] == pairs[i + 1][1]]
    return "M" + "L".join(f"{a:g},{b:g}" for a, b in kept)


def text(x, y, content, anchor="start", size=11, colour="#333"):
    place = f'x="{x:g}" y="{y:g}" text-anchor="{anchor}"'
    return f'<text {place} font-size="{size}" fill="{colour}">{escape(content)}</text>'


def grid_line(at, label, right):
    return [f'<path d="M{LEFT},{at:g}H{right}" stroke="#ddd"/>', text(LEFT - 5, at + 4, label, "end")]


def grid(last, most, x, y):
    name, size = unit(most)
    marks = []
    distance = step(most / size)
    for i in range(int(most / size / distance) + 1):
        at = y(i * distance * size)
        marks += grid_line(at, f"{i * distance:g}", WIDTH - RIGHT)
    marks.append(text(LEFT - 5, TOP - 8, name, "end"))
    distance = step(last)
    for i in range(1, int(last / distance) + 1):
        marks.append(text(x(i * distance), HEIGHT - BOTTOM + 16, f"{i * distance:,.0f}", "middle"))
    marks.append(text(WIDTH - RIGHT, HEIGHT - 4, "operations", "end"))
    return marks


def svg(trace, lines):
    """The plot of one trace; lines: {anchor: points}."""
    some = next(iter(lines.values()))
    last = max(point[0] for points in lines.values() for point in points)
    most = max(max(point[1], point[2]) for points in lines.values() for point in points) or 1
    x = lambda operation: LEFT + (WIDTH - LEFT - RIGHT) * operation / last  # noqa: E731
    y = lambda held: TOP + (HEIGHT - TOP - BOTTOM) * (1 - held / most)  # noqa: E731
    live = path([[0, 0, 0], *some, [last, 0, 0]], 1, x, y)
    drawn = [f'<path d="{live}" fill="#ccc"/>']
    legend, at = [text(LEFT, 16, trace, size=13), text(LEFT, 32, "live", colour="#888")], LEFT + 34
    for (anchor, points), colour in zip(lines.items(), COLOURS * len(lines)):
        title = TITLES.get(anchor, anchor)
        drawn.append(f'<path d="{path(points, 2, x, y)}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        legend.append(text(at, 32, title, colour=colour))
        at += 7 * len(title) + 12
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">')
    label = f"<title>{escape(trace)}: bytes held by each allocator over the operations, and bytes live</title>"
    back = f'<path d="M0,0H{WIDTH}V{HEIGHT}H0Z" fill="#fff"/>'
    return "\n".join([head, label, back, *grid(last, most, x, y), *drawn, *legend, "</svg>", ""])


def write(found, folder):
    """Writes the plots of traces; returns the names of the files."""
    os.makedirs(folder, exist_ok=True)
    names = []
    for trace, lines in sorted(found.items()):
        names.append(f"replay-{trace}.svg")
        with open(os.path.join(folder, names[-1]), "w", encoding="utf-8") as file:
            file.write(svg(trace, lines))
    return names


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    written = write(timelines(measurements.parse_lines(sys.stdin.read())), sys.argv[1])
    print("\n".join(written) or "no line with a timeline")
