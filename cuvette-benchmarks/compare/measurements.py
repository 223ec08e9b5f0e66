"""Turns the programs' lines into measurements, and several rounds of them into one figure each."""
import json
import os
from dataclasses import dataclass

# Memory is not luck: of its figures the worst counts.
MEMORY = ("ratio", "heapBytesPerLaunch", "heapBytesPerGraph")

# Metric: what it is called in the table, and whether less is better.
METRICS = {
    "nsPerPair": ("ns a pair", True),
    "nsPerCall": ("ns a call", True),
    "nsPerLaunch": ("ns a launch", True),
    "heapBytesPerLaunch": ("bytes of heap a launch", True),
    "nsPerGraph": ("ns a graph of 100 kernels", True),
    "heapBytesPerGraph": ("bytes of heap a graph of 100 kernels", True),
    "nsPerOperation": ("ns an operation", True),
    "pairsPerSecond": ("pairs a second", False),
    "gigabytesPerSecond": ("GB/s", False),
    "teraflops": ("TFLOP/s", False),
    "ratio": ("bytes held ÷ bytes live", True),
}


@dataclass(frozen=True)
class Key:
    anchor: str
    work: str
    metric: str


def parse_lines(text):
    """The JSON objects of a program's output; other lines (a library's chatter) are left out."""
    lines = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                lines.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return lines


def normalise(line):
    """The command line's lines (`bench`, `replay`) in the form of the anchors'; the others as they are."""
    if "anchor" in line:
        return line
    named = dict(line)
    pool = line.get("pool", "memory")
    named["anchor"] = "cuvette" if pool in ("memory", "pinned") else "cuvette-" + pool
    if "trace" in line and "work" not in line:
        named["work"] = "replay-" + os.path.basename(str(line["trace"])).split(".")[0]
    return named


def collect(lines):
    """{Key: [values]} of the lines that measure something."""
    found = {}
    for line in map(normalise, lines):
        for metric in METRICS:
            value = line.get(metric)
            if "work" in line and isinstance(value, (int, float)) and not isinstance(value, bool):
                found.setdefault(Key(line["anchor"], line["work"], metric), []).append(value)
    return found


def best(values, metric):
    """The best of the rounds; of memory the worst."""
    less_is_better = METRICS[metric][1]
    return min(values) if less_is_better and metric not in MEMORY else max(values)
