"""Plots the bandwidth of copies over their size as SVG, a line for each kind of host memory of each program."""
import os
import re

from plot import BOTTOM, COLOURS, HEIGHT, LEFT, RIGHT, TOP, WIDTH, grid_line, step, text

WORK = re.compile(r"transfer-(pinned|heap|direct|mapped)-(h2d|d2h)-(\d+)(KiB|MiB|GiB)")
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
TITLES = {"h2d": "to the device", "d2h": "to the host"}
LEGEND = 150  # pixels at the right


def lines(figures):
    """{way: {(anchor, kind): [(bytes, GB/s), ...]}} of what was measured of copies."""
    found = {}
    for key, value in figures.items():
        match = WORK.fullmatch(key.work)
        if match and key.metric == "gigabytesPerSecond":
            kind, way, count, unit = match.groups()
            if key.anchor == "c" and kind == "direct":
                continue  # the same as heap: C has one kind of pageable memory
            points = found.setdefault(way, {}).setdefault((key.anchor, kind), [])
            points.append((int(count) * UNITS[unit], value))
    return {way: {name: sorted(some[name]) for name in sorted(some)} for way, some in found.items()}


def name_of(size):
    unit = next(name for name in ("GiB", "MiB", "KiB") if size >= UNITS[name])
    return f"{size // UNITS[unit]} {unit}"


def svg(way, plotted):
    """The plot of one direction; sizes are apart as the steps between them are, not as they are large."""
    sizes = sorted({size for points in plotted.values() for size, _ in points})
    most = max(value for points in plotted.values() for _, value in points) or 1
    right = WIDTH - RIGHT - LEGEND
    x = lambda size: LEFT + (right - LEFT) * sizes.index(size) / max(1, len(sizes) - 1)  # noqa: E731
    y = lambda value: TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / most)  # noqa: E731
    marks = [text(LEFT, 16, f"Copies {TITLES[way]}", size=13), text(LEFT - 5, TOP - 8, "GB/s", "end")]
    distance = step(most)
    for i in range(int(most / distance) + 1):
        marks += grid_line(y(i * distance), f"{i * distance:g}", right)
    marks += [text(x(size), HEIGHT - BOTTOM + 16, name_of(size), "middle") for size in sizes]
    drawn, at = [], TOP + 8
    for ((anchor, kind), points), colour in zip(plotted.items(), COLOURS * len(plotted)):
        path = "M" + "L".join(f"{x(size):.1f},{y(value):.1f}" for size, value in points)
        drawn.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        drawn.append(text(right + 10, at, f"{anchor}, {kind}", colour=colour))
        at += 16
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
            f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif">')
    label = f"<title>Bandwidth of copies {TITLES[way]} over their size, by program and kind of host memory</title>"
    back = f'<path d="M0,0H{WIDTH}V{HEIGHT}H0Z" fill="#fff"/>'
    return "\n".join([head, label, back, *marks, *drawn, "</svg>", ""])


def write(figures, folder):
    """Writes a plot for each direction that was measured; returns the names of the files."""
    names = []
    for way, plotted in sorted(lines(figures).items()):
        names.append(f"transfers-{way}.svg")
        with open(os.path.join(folder, names[-1]), "w", encoding="utf-8") as file:
            file.write(svg(way, plotted))
    return names
