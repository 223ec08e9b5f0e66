"""Tests of what the anchors' programs share, and that the C programs compile where there is a compiler with cuda.h."""
import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import parts

sys.path.insert(0, os.path.join(parts.ANCHORS, "python"))
import anchor  # noqa: E402
import traces  # noqa: E402

LOG = """Thread,Time,Action,Pointer,Size,Stream
1,0,allocate,0x100,100,0x0
2,1,allocate,0x200,600,0x7f01
1,2,allocate failure,(nil),99,0x0
1,3,free,0x100,100,0x0
1,4,allocate,0x100,50,0x0
2,5,free,0x200,600,0x7f01
"""


class TracesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "some.csv.gz")
        with gzip.open(self.path, "wt") as file:
            file.write(LOG)

    def test_blocks_keep_their_slot_until_their_free(self):
        trace = traces.load(self.path)
        self.assertEqual("some", trace.name)
        self.assertEqual([100, 600, -1, 50, -1], trace.sizes)
        self.assertEqual([0, 1, 0, 0, 1], trace.slots)
        self.assertEqual([0, 1, 0, 0, 1], trace.streams)
        self.assertEqual((2, 2, 700), (trace.slot_count, trace.stream_count, trace.peak_live_bytes))

    def test_the_binary_form_has_a_header_and_16_bytes_an_operation(self):
        binary = parts.binary_traces([self.path], self.folder.name)
        self.assertEqual([os.path.join(self.folder.name, "some.bin")], binary)
        self.assertEqual(32 + 5 * 16, os.path.getsize(binary[0]))


    def test_the_binary_form_is_read_as_it_was_written(self):
        binary = parts.binary_traces([self.path], self.folder.name)
        self.assertEqual(traces.load(self.path), traces.read_binary(binary[0]))

    def test_a_timeline_has_the_most_that_was_live_and_what_is_held_at_each_point(self):
        trace, seen = traces.load(self.path), []
        points = traces.timeline(trace, lambda *operation: seen.append(operation), lambda: 1000 + len(seen), 2)
        self.assertEqual([[2, 700, 1002], [5, 700, 1005]], points)
        self.assertEqual(list(zip(trace.sizes, trace.slots, trace.streams)), seen)
        every = traces.timeline(trace, lambda *_: None, lambda: 7, 300)
        self.assertEqual([100, 700, 700, 650, 650], [live for _, live, _ in every])


class WorkTest(unittest.TestCase):
    def test_the_random_work_is_that_of_the_other_programs(self):
        sizes, slots = anchor.random_work()
        self.assertEqual([154818, 978024, 3298655], sizes[:3])
        self.assertEqual((964, 862), (slots[0], slots[-1]))

    def test_series_are_waited_for_and_waiting_is_not_timed(self):
        clock, turns, waits = [0], [], []

        def body(count):
            turns.append(count)
            clock[0] += 7 * count

        def wait():
            waits.append(1)
            clock[0] += 10**9

        with unittest.mock.patch("time.perf_counter_ns", lambda: clock[0]):
            self.assertEqual(7, anchor.best_series(body, wait, series=3, repetitions=2))
        self.assertEqual(([anchor.SERIES] * 9, 9), (turns, len(waits)))

    def test_of_turns_counts_what_they_say_and_the_best_after_the_warm_up(self):
        seen = []

        def once(turn):
            seen.append(turn)
            return 3 if len(seen) <= 4 else 10 * len(seen)

        self.assertEqual((10 * 5 + 10 * 6) / 2, anchor.best_turns(once, turns=2, repetitions=2))
        self.assertEqual([0, 1] * 4, seen)

    def test_pairs_a_second_counts_every_thread(self):
        calls = []
        rate = anchor.pairs_per_second(4, 10, lambda number: calls.append, repetitions=2)
        self.assertGreater(rate, 0)
        self.assertEqual((8, 8), (calls.count(1), calls.count(10)))


class ProgramsTest(unittest.TestCase):
    @unittest.skipUnless(parts.c_compiler(), "no nvcc, and no C compiler with cuda.h")
    def test_the_c_programs_compile_and_measure_or_say_why_not(self):
        with tempfile.TemporaryDirectory() as build:
            self.assertEqual(dict.fromkeys(parts.C_PROGRAMS, ""), parts.compile_c(build))
            program = os.path.join(build, "driver_calls")
            done = subprocess.run([program], capture_output=True, text=True, timeout=60)
            first = json.loads(done.stdout.splitlines()[0])
            self.assertEqual("c", first["anchor"])
            self.assertIn(done.returncode, (0, 3))

    def test_a_program_without_its_library_says_so_and_exits_with_3(self):
        scripts = ("cupy_pools.py", "cupy_replay.py", "cupy_launches.py", "cupy_graphs.py", "cupy_transfers.py",
                   "cuda_core_pools.py", "cuda_core_launches.py", "cuda_core_graphs.py")
        for name in scripts:
            script = os.path.join(parts.ANCHORS, "python", name)
            hidden = "import sys; sys.modules.update(cupy=None, cuda=None); import runpy; runpy.run_path(sys.argv[1])"
            environment = {**os.environ, "PYTHONPATH": os.path.dirname(script)}
            command = [sys.executable, "-B", "-c", hidden, script]
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
            self.assertEqual(3, done.returncode, name + done.stderr)
            self.assertIn("missing", json.loads(done.stdout))


if __name__ == "__main__":
    unittest.main()
