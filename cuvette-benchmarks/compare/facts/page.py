"""The side-by-side page, facts.md."""
import comparison
import explained

HEADINGS = (
    (comparison.DIFFERS, "Different, and nobody said why"),
    (comparison.MISSING, "Said by one side only"),
    (comparison.MEANT, "Different, and explained"),
    (comparison.SAME, "The same"),
)


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


def table(rows, with_note):
    head = ["fact", "Cuvette", "other", "library"] + (["why, or what was said"] if with_note else [])
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for row in rows:
        cells = [row.fact, row.ours, row.theirs, row.reference] + ([row.note] if with_note else [])
        lines.append("| " + " | ".join(cell(each) for each in cells) + " |")
    return lines


def markdown(rows, machine, troubles):
    lines = ["# Cuvette beside cuda.core and CuPy: what they say and do", ""]
    lines += [f"- {key}: {value}" for key, value in machine.items()]
    counts = {status: sum(row.status == status for row in rows) for status, _ in HEADINGS}
    lines += ["", ", ".join(f"{count} {status}" for status, count in counts.items()) + ".", ""]
    if troubles:
        lines += ["## Programs that did not finish", ""] + [f"- {each}" for each in troubles] + [""]
    for status, heading in HEADINGS:
        found = [row for row in rows if row.status == status]
        if found:
            lines += [f"## {heading}", ""] + table(found, status != comparison.SAME) + [""]
    idle = explained.unused([(row.fact, row.ours, row.theirs) for row in rows if row.status == comparison.MEANT])
    if idle:
        lines += ["## Explanations that nothing needed here", ""]
        lines += [f"- {each.fact}: {each.ours} beside {each.theirs}" for each in idle] + [""]
    return "\n".join(lines)
