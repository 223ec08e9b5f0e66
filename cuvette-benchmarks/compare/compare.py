"""Runs Cuvette and the anchors in turn, several rounds, on one machine; writes results.json, results.md
and a plot of each trace."""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

import bandwidth
import measurements
import parts
import plot
import table
from machine import describe


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle-run", default=os.environ.get("BUNDLE_RUN"), help="the run script of the GPU bundle")
    parser.add_argument("--before-run", help="that of an earlier bundle, to measure its launches beside")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of all programs (default %(default)s)")
    parser.add_argument("--budget-s", type=float, default=540, help="seconds for everything (default %(default)s)")
    parser.add_argument("--output", default=parts.HERE, help="folder of results.json and results.md")
    parser.add_argument("--only", default="", help="only parts whose name contains this, or one of several with commas")
    parser.add_argument("traces", nargs="*", help="trace files (default: those in traces/)")
    return parser.parse_args()


def run_part(part, seconds):
    """(lines, reason it gave no figures or an empty string). Never longer than its own limit or the seconds left."""
    if part.missing:
        return [], part.missing
    limit = min(part.timeout_s, seconds)
    if limit < 1:
        return [], "no time left"
    environment = {**os.environ, **part.environment}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    try:
        process = subprocess.Popen(part.command, env=environment, start_new_session=True, **pipes)
    except OSError as reason:
        return [], str(reason)
    try:
        output, errors = process.communicate(timeout=limit)
        failure = "" if process.returncode == 0 else f"exit status {process.returncode}: {errors.strip()[-300:]}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)  # the program and what it started
        output, _ = process.communicate()
        failure = f"stopped after {limit:.0f} s"
    lines = measurements.parse_lines(output)
    reasons = [line["missing"] for line in lines if "missing" in line]
    return lines, "; ".join(reasons) or failure


class Results:
    """What the rounds gave so far; written after each, so that a run cut short leaves the rounds it had."""

    def __init__(self, machine):
        self.machine, self.values, self.missing, self.rounds = machine, {}, {}, 0
        self.timelines = {}  # {trace: {anchor: points}}, of the last round

    def add(self, part, lines, reason):
        if part.anchor:
            lines = [{**line, "anchor": part.anchor} for line in lines]
        for key, found in measurements.collect(lines).items():
            self.values.setdefault(key, []).extend(found)
        for trace, found in plot.timelines(lines).items():
            self.timelines.setdefault(trace, {}).update(found)
        for line in lines:
            if "about" in line:
                self.machine[line["anchor"]] = line["about"]
        if reason:
            self.missing[part.name] = reason

    def figures(self):
        return {key: measurements.best(found, key.metric) for key, found in self.values.items()}

    def write(self, folder):
        figures = self.figures()
        rows = [
            {"anchor": k.anchor, "work": k.work, "metric": k.metric, "best": figures[k], "rounds": self.values[k]}
            for k in sorted(figures, key=lambda k: (k.work, k.metric, k.anchor))
        ]
        document = {"machine": self.machine, "rounds": self.rounds, "measurements": rows, "missing": self.missing}
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "results.json"), "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1, ensure_ascii=False)
            file.write("\n")
        with open(os.path.join(folder, "results.md"), "w", encoding="utf-8") as file:
            plots = plot.write(self.timelines, folder) + bandwidth.write(figures, folder)
            file.write(table.markdown(figures, self.machine, self.missing, self.rounds, plots))


def run_round(programs, results, options, deadline):
    for part in programs:
        started = time.monotonic()
        lines, reason = run_part(part, deadline - started)
        results.add(part, lines, reason)
        took = time.monotonic() - started
        print(f"{part.name:26s} {len(lines):3d} lines {took:6.1f} s  {reason}", file=sys.stderr, flush=True)
    results.rounds += 1
    results.write(options.output)


def wanted_by(only):
    """Says of a name whether it contains one of these texts."""
    texts = only.split(",")
    return lambda name: any(text in name for text in texts)


def main():
    options = arguments()
    deadline = time.monotonic() + options.budget_s
    recorded = sorted(glob.glob(os.path.join(parts.ROOT, "traces", "*.csv*")))
    traces = [os.path.abspath(trace) for trace in options.traces or recorded]
    with tempfile.TemporaryDirectory(prefix="cuvette-compare-") as build:
        wanted = wanted_by(options.only)
        anchors = parts.anchor_parts(build, traces, wanted)
        ours = parts.jvm_parts(options.bundle_run, build, traces, options.before_run, wanted)
        programs = parts.interleaved(anchors, ours)
        results = Results(describe())
        for number in range(options.rounds):
            started = time.monotonic()
            run_round(programs, results, options, deadline)
            if deadline - time.monotonic() < (time.monotonic() - started) * 0.6:  # no time for another such round
                break
    for line in table.comparison(results.figures()):
        print(line)
    print(f"{results.rounds} rounds; results.json and results.md are in {options.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
