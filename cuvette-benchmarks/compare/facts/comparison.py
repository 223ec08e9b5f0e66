"""Puts the facts of the libraries side by side."""
import json
from dataclasses import dataclass

import explained

OURS = "cuvette"
SAME, MEANT, DIFFERS, MISSING = "same", "differs, explained", "differs", "missing"


def reference_of(fact):
    """Which library a fact is compared with: CuPy for its pool, cuda.core for all else."""
    return "cupy" if fact.startswith(("async.", "error.async.")) else "cuda.core"


def outcome(line):
    """What an operation did, as one text: its value as JSON, or the kind of error."""
    if "error" in line:
        return "raises " + line["error"]
    value = line["value"]
    return value if value == "no error" else json.dumps(value)


@dataclass(frozen=True)
class Row:
    fact: str
    reference: str
    ours: str
    theirs: str
    status: str
    note: str

    def is_bad(self):
        return self.status in (DIFFERS, MISSING)


def parse(text):
    """The objects of a program's output; chatter and lines that were cut off are left out."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                continue
    return [each for each in found if "library" in each]


class Facts:
    """What all programs said, by library and fact."""

    def __init__(self):
        self.lines, self.about, self.troubles = {}, {}, []

    def add(self, lines):
        for line in lines:
            library = line["library"]
            if "about" in line:
                self.about[library] = line["about"]
            elif "missing" in line:
                self.troubles.append(f"{library}: {line['missing']}")
            elif "fact" in line:
                self.add_fact(library, line)

    def add_fact(self, library, line):
        known = self.lines.setdefault(library, {})
        if line["fact"] in known:
            self.troubles.append(f"{library} says {line['fact']} twice")
        known[line["fact"]] = line

    def rows(self):
        names = sorted(set().union(*self.lines.values())) if self.lines else []
        return [self.row(name) for name in names]

    def row(self, fact):
        reference = reference_of(fact)
        sides = [self.lines.get(library, {}).get(fact) for library in (OURS, reference)]
        ours, theirs = (outcome(line) if line else explained.MISSING for line in sides)
        why = explained.reason(fact, ours, theirs)
        messages = " / ".join(line["message"] for line in sides if line and "message" in line)
        if ours == theirs and all(sides):
            return Row(fact, reference, ours, theirs, SAME, "")
        if why:
            return Row(fact, reference, ours, theirs, MEANT, why)
        return Row(fact, reference, ours, theirs, DIFFERS if all(sides) else MISSING, messages)
