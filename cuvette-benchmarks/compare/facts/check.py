"""Runs the programs of all libraries on this machine and compares what they say; writes facts.md and facts.json.

Exit status 1 if a fact differs without an explanation, is missing on one side, or a program did not finish.
"""
import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import comparison  # noqa: E402
import explained  # noqa: E402
import page  # noqa: E402
from machine import describe  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
LIMIT_S = 60
POOLS = ("resources", "birth", "sequence", "buffers", "errors", "descriptors", "register", "closed-device",
         "closed-pinned", "closed-managed", "peers", "preferred")  # fmt: skip
SHARED = ("managed", "ipc")
ASYNC = ("choices", "limits", "errors", "sides")


@dataclass(frozen=True)
class Program:
    library: str
    section: str
    command: tuple


def programs(bundle_run):
    """Each section is a process of its own: a crash ends no other, and every pool is as it was at the start."""
    python = lambda name, *rest: (sys.executable, "-B", os.path.join(HERE, name + ".py"), *rest)  # noqa: E731
    jvm = lambda section: (bundle_run, "bench", "facts", section)  # noqa: E731
    found = []
    for section in POOLS:
        found.append(Program("cuda.core", section, python("cuda_core_facts", section)))
    for section in SHARED:
        found.append(Program("cuda.core", section, python("cuda_core_" + section)))
    for section in ASYNC:
        found.append(Program("cupy", section, python("cupy_facts", section)))
    for section in POOLS + SHARED + tuple("async-" + each for each in ASYNC):
        found.append(Program("cuvette", section, jvm(section)))
    return found


def run(program, seconds):
    """(lines, what went wrong or an empty string); never longer than the limit of a program or the seconds left."""
    limit = min(LIMIT_S, seconds)
    if limit < 1:
        return [], "no time left"
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        process = subprocess.Popen(program.command, start_new_session=True, **pipes)
    except OSError as reason:
        return [], str(reason)
    try:
        output, errors = process.communicate(timeout=limit)
        last = errors.decode(errors="replace").strip()[-400:]
        trouble = "" if process.returncode == 0 else f"exit status {process.returncode}: {last}"
        if explained.crash(program.library, program.section, process.returncode):
            print(f"{program.library} {program.section}: {trouble}", file=sys.stderr)
            trouble = ""
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)  # the program and what it started
        output, _ = process.communicate()
        trouble = f"stopped after {limit:.0f} s"
    return comparison.parse(output.decode(errors="replace")), trouble


def collect(chosen, budget_s):
    facts, deadline = comparison.Facts(), time.monotonic() + budget_s
    for program in chosen:
        started = time.monotonic()
        lines, trouble = run(program, deadline - started)
        facts.add(lines)
        if trouble or not lines:
            facts.troubles.append(f"{program.library} {program.section}: {trouble or 'said nothing'}")
        took = time.monotonic() - started
        print(f"{program.library:10s} {program.section:16s} {len(lines):4d} lines {took:5.1f} s  {trouble[:200]}",
              file=sys.stderr, flush=True)  # fmt: skip
    return facts


def write(folder, rows, facts, machine):
    os.makedirs(folder, exist_ok=True)
    document = {"machine": machine, "troubles": facts.troubles, "facts": [vars(row) for row in rows]}
    with open(os.path.join(folder, "facts.json"), "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1, ensure_ascii=False)
        file.write("\n")
    with open(os.path.join(folder, "facts.md"), "w", encoding="utf-8") as file:
        file.write(page.markdown(rows, machine, facts.troubles))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    run_script = os.environ.get("BUNDLE_RUN") or os.path.join(ROOT, "run")
    parser.add_argument("--bundle-run", default=run_script, help="the run script of the GPU bundle")
    parser.add_argument("--output", default=HERE, help="folder of facts.md and facts.json (default: beside this)")
    parser.add_argument("--budget-s", type=float, default=420, help="seconds for everything (default %(default)s)")
    parser.add_argument("--only", default="", help="only the sections whose name contains this")
    return parser.parse_args()


def main():
    options = arguments()
    chosen = [each for each in programs(options.bundle_run) if options.only in each.section]
    facts = collect(chosen, options.budget_s)
    rows = facts.rows()
    write(options.output, rows, facts, {**describe(), **facts.about})
    bad = [row for row in rows if row.is_bad()]
    for row in bad:
        print(f"{row.status}: {row.fact}: {row.ours} <> {row.theirs} ({row.reference})", file=sys.stderr)
    print(f"{len(rows)} facts, {len(bad)} unexplained, {len(facts.troubles)} troubles; facts.md and facts.json are in"
          f" {options.output}", file=sys.stderr)  # fmt: skip
    return 1 if bad or facts.troubles or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
