"""Writes the table: for each kind of work one row, the anchors beside Cuvette, the targets and whether they are met."""
from measurements import METRICS, Key
from targets import TARGETS

GROUPS = (
    ("Pools, one thread", "nsPerPair"),
    ("Pools, several threads", "pairsPerSecond"),
    ("Driver calls", "nsPerCall"),
    ("Launches of a kernel with four parameters", "nsPerLaunch"),
    ("Heap of a launch", "heapBytesPerLaunch"),
    ("Graphs of 100 kernels", "nsPerGraph"),
    ("Heap of a step with a graph", "heapBytesPerGraph"),
    ("Replay of recorded traces: speed", "nsPerOperation"),
    ("Replay of recorded traces: memory held at peak ÷ live at peak", "ratio"),
    ("Copies, and operations on each element", "gigabytesPerSecond"),
    ("Products of matrices", "teraflops"),
)
ORDER = ("c", "cudaMallocAsync", "cuda.core", "cupy", "torch", "torch-expandable", "lwjgl")
OURS = "cuvette"


def number(value, metric):
    if value is None:
        return "–"
    if metric == "pairsPerSecond":
        return f"{value / 1e6:,.2f} M"
    if metric == "ratio":
        return f"{value:.4f}"
    return f"{value:,.1f}"


def verdict(target, figures, work, metric):
    """The target in words with what was reached: 'yes', 'no', or '–' when a figure is missing."""
    ours = figures.get(Key(OURS, work, metric))
    theirs = figures.get(Key(target.anchor, work, metric)) if target.anchor else None
    if ours is None or (target.anchor and theirs is None):
        return f"{target.text}: –"
    reached = ""
    if target.anchor and theirs and ours:
        times = theirs / ours if METRICS[metric][1] and metric != "ratio" else ours / theirs
        reached = f" ({times:.2f} ×)"
    return f"{target.text}: **{'yes' if target.met(ours, theirs) else 'no'}**{reached}"


def best_anchor(figures, work, metric, anchors):
    """How many times as good as the best of the anchors Cuvette is, and which one that is."""
    ours = figures.get(Key(OURS, work, metric))
    known = [(figures[Key(a, work, metric)], a) for a in anchors if Key(a, work, metric) in figures]
    if not ours or not known:
        return "–"
    less = METRICS[metric][1]
    value, anchor = min(known) if less else max(known)
    return f"{(value / ours if less else ours / value):.2f} × {anchor}"


def comparison(figures):
    """One line for each figure of Cuvette that an anchor has too: the ratio to each of them, and the targets."""
    lines = []
    for key in sorted((k for k in figures if k.anchor == OURS), key=lambda k: (k.metric, k.work)):
        same = sorted(k.anchor for k in figures if (k.work, k.metric) == (key.work, key.metric) and k.anchor != OURS)
        value = figures[key]
        theirs = {anchor: figures[Key(anchor, key.work, key.metric)] for anchor in same}
        ratios = [f"{value / v:.3f} × {anchor} ({number(v, key.metric)})" for anchor, v in theirs.items() if v]
        if ratios:
            known = [t for t in TARGETS if t.applies(key.work, key.metric) and (not t.anchor or t.anchor in theirs)]
            met = [f"{t.text}: {'yes' if t.met(value, theirs.get(t.anchor)) else 'no'}" for t in known]
            lines.append(f"{key.work} {number(value, key.metric)} {METRICS[key.metric][0]}: " + "; ".join(ratios + met))
    return lines


def group_table(title, metric, figures):
    works = sorted({key.work for key in figures if key.metric == metric})
    if not works:
        return []
    present = {key.anchor for key in figures if key.metric == metric}
    ours = sorted(name for name in present if name.startswith(OURS))
    anchors = [name for name in ORDER if name in present] + sorted(present - set(ORDER) - set(ours))
    head = ["work", *anchors, *ours, "Cuvette against the best anchor", "target: met?"]
    unit, less_is_better = METRICS[metric]
    lines = ["", f"## {title}", "", f"In {unit}; {'less' if less_is_better else 'more'} is better.", ""]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for work in works:
        cells = [number(figures.get(Key(name, work, metric)), metric) for name in anchors + ours]
        targets = [verdict(each, figures, work, metric) for each in TARGETS if each.applies(work, metric)]
        row = [work, *cells, best_anchor(figures, work, metric, anchors), "<br>".join(targets) or "–"]
        lines.append("| " + " | ".join(row) + " |")
    return lines


def markdown(figures, machine, missing, rounds, plots=()):
    """The whole page. figures: {Key: value}; machine: {name: text}; missing: {part: reason}; plots: names of files."""
    lines = ["# Cuvette beside the anchors", ""]
    turns = "1 round" if rounds == 1 else f"{rounds} rounds"
    lines += [f"One run of `run-all.sh`: {turns} of all programs in turn; "
              "of each figure the best, of memory held the worst.", ""]
    lines += [f"- {name}: {text}" for name, text in machine.items()]
    for title, metric in GROUPS:
        lines += group_table(title, metric, figures)
    if plots:
        lines += ["", "## Live and held memory over time", ""] + [f"![{name}]({name})" for name in plots]
    if missing:
        lines += ["", "## Not measured", ""] + [f"- {part}: {reason}" for part, reason in sorted(missing.items())]
    return "\n".join(lines) + "\n"
