"""Tests of the comparison that need no GPU: python3 -m unittest discover cuvette-benchmarks/compare."""
import json
import os
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import bandwidth
import compare
import measurements
import parts
import plot
import table
from measurements import Key
from targets import TARGETS

HERE = os.path.dirname(os.path.abspath(__file__))


def fixture_figures():
    with open(os.path.join(HERE, "fixture", "lines.txt"), encoding="utf-8") as file:
        found = measurements.collect(measurements.parse_lines(file.read()))
    return {key: measurements.best(values, key.metric) for key, values in found.items()}


def row(page, work, heading):
    section = page.split("## " + heading, 1)[1].split("## ", 1)[0]
    return next(line for line in section.splitlines() if line.startswith(f"| {work} |"))


class MeasurementsTest(unittest.TestCase):
    def test_chatter_and_cut_off_lines_are_left_out(self):
        lines = measurements.parse_lines('building...\n{"anchor":"c","work":"w","nsPerCall":1}\n{"anchor":"c",')
        self.assertEqual([{"anchor": "c", "work": "w", "nsPerCall": 1}], lines)

    def test_best_is_least_time_most_throughput_and_worst_memory(self):
        self.assertEqual(1, measurements.best([3, 1, 2], "nsPerPair"))
        self.assertEqual(3, measurements.best([3, 1, 2], "pairsPerSecond"))
        self.assertEqual(1.3, measurements.best([1.1, 1.3], "ratio"))

    def test_lines_of_the_replay_command_join_the_anchors_work(self):
        figures = fixture_figures()
        work = "replay-resnet50_train_multiscale"
        self.assertEqual(55.0, figures[Key("cuvette", work, "nsPerOperation")])
        self.assertEqual(60000.0, figures[Key("cuvette-direct", work, "nsPerOperation")])


class TableTest(unittest.TestCase):
    def setUp(self):
        self.page = table.markdown(fixture_figures(), {"GPU": "H200"}, {"torch": "No module"}, 2)

    def test_a_row_has_every_anchor_beside_cuvette_and_the_ratio(self):
        cells = row(self.page, "same-size-1MiB", "Pools, one thread").split(" | ")
        self.assertEqual(["466.0", "390.0", "39.0", "10.00 × torch"], cells[1:5])

    def test_a_target_that_is_met_says_yes_with_what_was_reached(self):
        same_size = row(self.page, "same-size-1MiB", "Pools, one thread")
        self.assertIn("5 × as fast as torch: **yes** (10.00 ×)", same_size)
        threads = row(self.page, "threads-8-own-stream", "Pools, several")
        self.assertIn("20 × cupy: **yes** (62.07 ×)", threads)

    def test_a_target_that_is_missed_says_no(self):
        cells = row(self.page, "random-live-1024-4MiB", "Pools, one thread")
        self.assertIn("4 × as fast as torch: **no** (3.92 ×)", cells)
        self.assertIn("≤ 120 ns: **no**", cells)
        self.assertIn("c + 20 ns: **no**", row(self.page, "call-cuStreamQuery", "Driver calls"))

    def test_without_the_anchor_a_target_is_open(self):
        figures = {k: v for k, v in fixture_figures().items() if k.anchor != "torch"}
        page = table.markdown(figures, {}, {}, 1)
        self.assertIn("5 × as fast as torch: –", row(page, "same-size-1MiB", "Pools, one thread"))

    def test_a_simulated_device_never_meets_a_target(self):
        figures = {Key("cuvette-simulated", "same-size-1MiB", "nsPerPair"): 1.0}
        page = table.markdown(figures, {}, {}, 1)
        self.assertIn("≤ 45 ns: –", row(page, "same-size-1MiB", "Pools, one thread"))

    def test_held_memory_counts_as_worse_when_higher(self):
        target = next(t for t in TARGETS if t.applies("replay-x", "ratio"))
        self.assertTrue(target.met(1.32, 1.3131))
        self.assertFalse(target.met(1.33, 1.3131))

    def test_launches_are_held_to_c_and_to_cuda_core(self):
        launches = "Launches of a kernel"
        self.assertIn("c + 200 ns: **yes**", row(self.page, "launch", launches))
        self.assertIn("2 × as fast as cuda.core: **no** (1.90 ×)", row(self.page, "launch", launches))
        self.assertIn("c + 50 ns: **no**", row(self.page, "launch-packed", launches))
        self.assertIn("0 bytes: **yes**", row(self.page, "launch-packed", "Heap of a launch"))

    def test_a_byte_of_heap_in_one_round_misses_the_target(self):
        key = Key("cuvette", "launch-packed", "heapBytesPerLaunch")
        page = table.markdown({key: measurements.best([0, 1], key.metric)}, {}, {}, 1)
        self.assertIn("0 bytes: **no**", row(page, "launch-packed", "Heap of a launch"))

    def test_steps_with_graphs_are_held_to_c(self):
        graphs = "Graphs of 100 kernels"
        self.assertIn("≤ 1.1 × c: **yes** (0.95 ×)", row(self.page, "graph-launch", graphs))
        self.assertIn("≤ 1.3 × c: **no** (0.67 ×)", row(self.page, "graph-capture+instantiate", graphs))
        self.assertIn("≤ 1.2 × c: –", row(self.page, "graph-update", graphs))

    def test_the_end_has_the_ratios_to_all_anchors_and_the_targets(self):
        lines = table.comparison(fixture_figures())
        self.assertIn("graph-capture+instantiate 300,000.0 ns a graph of 100 kernels: 1.500 × c (200,000.0);"
                      " ≤ 1.3 × c: no", lines)
        self.assertFalse([line for line in lines if line.startswith("graph-update")])  # nobody else has it
        launch = next(line for line in lines if line.startswith("launch "))
        self.assertIn("1.111 × c (1,800.0); 0.526 × cuda.core (3,800.0); c + 200 ns: yes; 2 × as fast as cuda.core: no",
                      launch)

    def test_launches_are_held_to_those_of_an_earlier_bundle(self):
        before = {Key("cuvette-before", "launch", "nsPerLaunch"): 2000.0}
        for nanos, verdict in ((2090.0, "yes"), (2110.0, "no")):
            page = table.markdown({**before, Key("cuvette", "launch", "nsPerLaunch"): nanos}, {}, {}, 1)
            self.assertIn(f"≤ 1.05 × before: **{verdict}**", row(page, "launch", "Launches of a kernel"))

    def test_what_was_not_measured_is_listed(self):
        self.assertIn("- torch: No module", self.page)


class PlotTest(unittest.TestCase):
    LINES = [
        {"trace": "/some/gpt2.csv.gz", "pool": "memory", "timeline": [[2, 3 << 30, 5 << 30], [4, 1 << 30, 6 << 30]]},
        {"anchor": "torch<", "work": "replay-gpt2", "timeline": [[2, 3 << 30, 3 << 30], [4, 1 << 30, 3 << 30]]},
        {"anchor": "c", "work": "replay-other", "timeline": [[1, 0, 0]]},
        {"anchor": "c", "work": "replay-other", "nsPerOperation": 3},
    ]

    def test_lines_of_all_programs_meet_in_the_plot_of_their_trace(self):
        found = plot.timelines(self.LINES)
        self.assertEqual(["cuvette", "torch<"], sorted(found["gpt2"]))
        self.assertEqual({"c": [[1, 0, 0]]}, found["other"])

    def test_a_plot_is_xml_with_a_line_for_each_allocator_in_its_scale(self):
        root = xml.etree.ElementTree.fromstring(plot.svg("gpt2", plot.timelines(self.LINES)["gpt2"]))
        texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
        for expected in ("gpt2", "live", "MemoryPool", "torch<", "GiB", "0", "2", "4", "6", "operations"):
            self.assertIn(expected, texts)
        paths = root.iter("{http://www.w3.org/2000/svg}path")
        lines = [each.get("d") for each in paths if each.get("stroke-width")]
        left, right, top, bottom = plot.LEFT, plot.WIDTH - plot.RIGHT, plot.TOP, plot.HEIGHT - plot.BOTTOM
        middle = (left + right) / 2
        self.assertEqual(f"M{middle:g},{round(bottom - (bottom - top) * 5 / 6, 1):g}L{right:g},{top:g}", lines[0])
        self.assertEqual(f"M{middle:g},{(top + bottom) / 2:g}L{right:g},{(top + bottom) / 2:g}", lines[1])

    def test_points_on_a_level_are_left_out(self):
        points = [[i, 0, 5] for i in range(10)] + [[10, 0, 9]]
        self.assertEqual("M0,5L9,5L10,9", plot.path(points, 2, float, float))

    def test_nothing_held_is_a_plot_too(self):
        xml.etree.ElementTree.fromstring(plot.svg("other", plot.timelines(self.LINES)["other"]))

    def test_results_have_a_plot_of_each_trace(self):
        results = compare.Results({})
        for line in self.LINES:
            results.add(parts.Part("x", [], 1), [line], "")
        with tempfile.TemporaryDirectory() as folder:
            results.write(folder)
            self.assertEqual(["replay-gpt2.svg", "replay-other.svg", "results.json", "results.md"],
                             sorted(os.listdir(folder)))
            with open(os.path.join(folder, "results.md"), encoding="utf-8") as file:
                self.assertIn("![replay-gpt2.svg](replay-gpt2.svg)", file.read())

    def test_all_allocators_of_the_plots_are_among_the_parts(self):
        with tempfile.TemporaryDirectory() as build:
            trace = os.path.join(build, "t.csv")
            with open(trace, "w", encoding="utf-8") as file:
                file.write("Thread,Time,Action,Pointer,Size,Stream\n0,0,allocate,0x10,8,0x0\n")
            wanted = compare.wanted_by("replay")
            anchors = [part.name for part in parts.anchor_parts(build, [trace], wanted)]
            ours = {part.name: part.command for part in parts.jvm_parts("/run", build, [trace], None, wanted)}
        self.assertEqual(["c replay", "cupy replay", "torch replay", "torch-expandable replay"], anchors)
        self.assertIn("memory,elastic,async", ours["cuvette pools replay"])
        self.assertIn("direct", ours["cuvette direct replay"])


class RunTest(unittest.TestCase):
    def run_code(self, code, limit=30):
        return compare.run_part(parts.Part("x", [sys.executable, "-c", code], limit), 60)

    def test_a_missing_anchor_is_a_reason_not_a_failure(self):
        lines, reason = self.run_code('print(\'{"anchor":"x","missing":"no GPU"}\'); raise SystemExit(3)')
        self.assertEqual("no GPU", reason)

    def test_a_crash_keeps_the_lines_before_it(self):
        lines, reason = self.run_code('print(\'{"anchor":"x","work":"w","nsPerCall":1}\'); raise SystemExit("broken")')
        self.assertEqual(1, len(lines))
        self.assertIn("broken", reason)

    def test_a_program_that_hangs_is_stopped_and_keeps_its_lines(self):
        code = 'print(\'{"anchor":"x","work":"w","nsPerCall":1}\', flush=True)\n' \
            'import threading; threading.Event().wait()'
        lines, reason = self.run_code(code, limit=2)
        self.assertEqual(1, len(lines))
        self.assertIn("stopped after 2 s", reason)

    def test_a_part_that_cannot_run_is_not_run(self):
        self.assertEqual(([], "no bundle"), compare.run_part(parts.Part("x", ["/nowhere"], 9, {}, "no bundle"), 60))

    def test_a_command_that_does_not_exist_is_a_reason(self):
        lines, reason = compare.run_part(parts.Part("x", ["/nowhere/run"], 9), 60)
        self.assertIn("/nowhere/run", reason)

    def test_results_hold_every_round(self):
        results = compare.Results({})
        for nanos in (5, 4):
            results.add(parts.Part("x", [], 1), [{"anchor": "c", "work": "w", "nsPerCall": nanos}], "")
        with tempfile.TemporaryDirectory() as folder:
            results.write(folder)
            with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
                entry = json.load(file)["measurements"][0]
        self.assertEqual((4, [5, 4]), (entry["best"], entry["rounds"]))

    def test_only_what_is_wanted_is_built_and_run(self):
        with tempfile.TemporaryDirectory() as build:
            wanted = compare.wanted_by("launches,graphs")
            anchors = [part.name for part in parts.anchor_parts(build, ["/nowhere.csv"], wanted)]
            ours = [part.name for part in parts.jvm_parts("/run", build, [], "/before/run", wanted)]
            self.assertEqual({"launches", "graphs"} & set(os.listdir(build)), set(os.listdir(build)))
        self.assertEqual(["c launches", "c graphs", "cupy launches", "cupy graphs", "cuda.core launches",
                          "cuda.core graphs"], anchors)
        self.assertEqual(["cuvette launches", "cuvette graphs", "cuvette-before launches"], ours)
        self.assertTrue(compare.wanted_by("")("anything"))

    def test_a_part_may_give_its_figures_another_name(self):
        results = compare.Results({})
        line = {"anchor": "cuvette", "work": "launch", "nsPerLaunch": 7}
        results.add(parts.Part("x", [], 1, {}, "", "cuvette-before"), [line], "")
        self.assertEqual({Key("cuvette-before", "launch", "nsPerLaunch"): 7}, results.figures())

    def test_cuvette_runs_between_the_anchors(self):
        self.assertEqual(["a", "1", "b", "c", "2", "d"], parts.interleaved(list("abcd"), list("12")))


class BandwidthTest(unittest.TestCase):
    FIGURES = {
        Key("c", "transfer-heap-h2d-1MiB", "gigabytesPerSecond"): 8.0,
        Key("c", "transfer-direct-h2d-1MiB", "gigabytesPerSecond"): 8.0,
        Key("cuvette", "transfer-heap-h2d-4KiB", "gigabytesPerSecond"): 1.0,
        Key("cuvette", "transfer-heap-h2d-1MiB", "gigabytesPerSecond"): 16.0,
        Key("cuvette", "transfer-mapped-d2h-4GiB", "gigabytesPerSecond"): 40.0,
        Key("cuvette", "transfer-rows-h2d-1000x768", "gigabytesPerSecond"): 5.0,
        Key("cuvette", "same-size-1MiB", "nsPerPair"): 40.0,
    }

    def test_lines_are_the_programs_kinds_by_size(self):
        found = bandwidth.lines(self.FIGURES)
        self.assertEqual({("c", "heap"): [(1 << 20, 8.0)], ("cuvette", "heap"): [(1 << 12, 1.0), (1 << 20, 16.0)]},
                         found["h2d"])
        self.assertEqual({("cuvette", "mapped"): [(4 << 30, 40.0)]}, found["d2h"])

    def test_a_plot_is_xml_with_each_line_in_its_scale(self):
        root = xml.etree.ElementTree.fromstring(bandwidth.svg("h2d", bandwidth.lines(self.FIGURES)["h2d"]))
        paths = [each.get("d") for each in root.iter("{http://www.w3.org/2000/svg}path") if each.get("fill") == "none"]
        right = plot.WIDTH - plot.RIGHT - bandwidth.LEGEND
        half = (plot.TOP + plot.HEIGHT - plot.BOTTOM) / 2
        self.assertEqual(f"M{right:.1f},{half:.1f}", paths[0])
        self.assertTrue(paths[1].endswith(f"L{right:.1f},{plot.TOP:.1f}"))
        texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
        self.assertLessEqual({"4 KiB", "1 MiB", "cuvette, heap", "Copies to the device"}, set(texts))

    def test_each_direction_that_was_measured_has_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(["transfers-d2h.svg", "transfers-h2d.svg"], bandwidth.write(self.FIGURES, folder))
            self.assertEqual([], bandwidth.write({}, folder))

    def test_pageable_copies_are_held_to_the_driver_and_to_the_bus(self):
        texts = [each.text for each in TARGETS if each.applies("transfer-heap-h2d-64MiB", "gigabytesPerSecond")]
        self.assertEqual(["≥ 40 GB/s", "4 × c"], texts)


if __name__ == "__main__":
    unittest.main()
