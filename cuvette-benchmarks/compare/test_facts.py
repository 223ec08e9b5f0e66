"""Tests of the comparison of behaviour that need no GPU."""
import io
import json
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "facts"))

import check  # noqa: E402
import comparison  # noqa: E402
import explained  # noqa: E402
import page  # noqa: E402
import recorder  # noqa: E402


def line(library, fact, **fields):
    return {"library": library, "fact": fact, **fields}


def row(*lines):
    facts = comparison.Facts()
    facts.add(lines)
    return facts.rows()[0]


class ComparisonTest(unittest.TestCase):
    def test_equal_values_are_the_same(self):
        found = row(line("cuvette", "pinned.ipc.numa_id", value=0), line("cuda.core", "pinned.ipc.numa_id", value=0))
        self.assertEqual((comparison.SAME, False), (found.status, found.is_bad()))

    def test_true_is_not_one(self):
        found = row(line("cuvette", "x", value=True), line("cuda.core", "x", value=1))
        self.assertEqual(comparison.DIFFERS, found.status)

    def test_an_error_is_not_the_value_of_its_name(self):
        found = row(line("cuvette", "x", error="value", message=""), line("cuda.core", "x", value="value"))
        self.assertEqual(comparison.DIFFERS, found.status)

    def test_the_same_kind_of_error_is_the_same_whatever_it_says(self):
        ours = line("cuvette", "x", error="value", message="bytes: -1 (expected: >= 0)")
        self.assertEqual(comparison.SAME, row(ours, line("cuda.core", "x", error="value", message="no")).status)

    def test_a_difference_nobody_explained_shows_what_was_said(self):
        found = row(line("cuvette", "x", error="state", message="ours"), line("cuda.core", "x", value=1))
        self.assertEqual((True, "ours"), (found.is_bad(), found.note))

    def test_a_fact_of_one_side_only_is_missing(self):
        self.assertEqual(comparison.MISSING, row(line("cuda.core", "x", value=1)).status)
        self.assertEqual(comparison.MISSING, row(line("cuvette", "x", value=1)).status)

    def test_facts_of_the_asynchronous_pool_are_compared_with_cupy(self):
        values = {"cuvette": 1, "cupy": 1, "cuda.core": 2}
        found = row(*(line(library, "async.x", value=value) for library, value in values.items()))
        self.assertEqual(("cupy", comparison.SAME), (found.reference, found.status))

    def test_an_explanation_holds_for_its_two_outcomes_alone(self):
        fact = "pinned.own.birth.release_threshold"
        meant = row(line("cuvette", fact, value="all"), line("cuda.core", fact, value=0))
        self.assertEqual((comparison.MEANT, explained.KEEPS), (meant.status, meant.note))
        other = row(line("cuvette", fact, value=0), line("cuda.core", fact, value="all"))
        self.assertEqual(comparison.DIFFERS, other.status)

    def test_what_both_lack_is_never_the_same(self):
        facts = comparison.Facts()
        facts.add([{"library": "cuvette", "missing": "no GPU"}])
        self.assertEqual(([], ["cuvette: no GPU"]), (facts.rows(), facts.troubles))

    def test_a_fact_said_twice_is_a_trouble(self):
        facts = comparison.Facts()
        facts.add([line("cuvette", "x", value=1), line("cuvette", "x", value=2)])
        self.assertEqual(["cuvette says x twice"], facts.troubles)

    def test_every_explanation_says_why(self):
        for each in explained.EXPLAINED:
            self.assertGreater(len(each.why), 20, each.fact)


class RecorderTest(unittest.TestCase):
    def setUp(self):
        self.out = io.StringIO()
        self.recorder = recorder.Recorder("x", self.out)

    def written(self):
        return [json.loads(each) for each in self.out.getvalue().splitlines()]

    def error(self, raised):
        def operation():
            raise raised

        self.recorder.fact("f", operation)
        return self.written()[-1]["error"]

    def test_errors_are_named_alike_whatever_library_throws_them(self):
        self.assertEqual("value", self.error(OverflowError("x")))
        self.assertEqual("type", self.error(TypeError("x")))
        self.assertEqual("state", self.error(RuntimeError("x")))
        self.assertEqual("unsupported", self.error(NotImplementedError("x")))
        self.assertEqual("os:EBADF", self.error(OSError(9, "x")))
        self.assertEqual("cuda:INVALID_VALUE", self.error(Exception("CUDA_ERROR_INVALID_VALUE: x")))
        self.assertEqual("cuda:INVALID_VALUE", self.error(RuntimeError("cudaErrorInvalidValue: x")))
        self.assertEqual("cuda:NOT_SUPPORTED", self.error(recorder.DriverError("CUDA_ERROR_NOT_SUPPORTED")))
        self.assertEqual("memory", self.error(Exception("CUDA_ERROR_OUT_OF_MEMORY: x")))
        self.assertEqual("memory", self.error(RuntimeError("cudaErrorMemoryAllocation: x")))

    def test_an_operation_that_throws_is_a_line_and_not_the_end(self):
        self.recorder.fact("bad", lambda: 1 // 0)
        self.recorder.fact("good", lambda: [1])
        self.assertEqual(["ZeroDivisionError", None], [each.get("error") for each in self.written()])

    def test_outcome_gives_back_what_was_made(self):
        self.assertEqual(5, self.recorder.outcome("made", lambda: 5))
        self.assertIsNone(self.recorder.outcome("not", lambda: 1 // 0))
        self.assertEqual("no error", self.written()[0]["value"])

    def test_the_largest_threshold_has_one_name(self):
        self.assertEqual(["all", 0], [recorder.threshold(each) for each in ((1 << 64) - 1, 0)])


class RunTest(unittest.TestCase):
    def run_code(self, code):
        return check.run(check.Program("x", "s", (sys.executable, "-c", code)), 30)

    def test_a_crash_keeps_the_facts_before_it(self):
        lines, trouble = self.run_code('print(\'{"library":"x","fact":"f","value":1}\'); raise SystemExit("broken")')
        self.assertEqual(1, len(lines))
        self.assertIn("broken", trouble)

    def test_a_program_that_hangs_is_stopped(self):
        code = "import threading; threading.Event().wait()"
        _, trouble = check.run(check.Program("x", "s", (sys.executable, "-c", code)), 2)
        self.assertIn("stopped after 2 s", trouble)

    def test_only_a_signal_in_an_explained_section_of_another_library_is_no_trouble(self):
        ended = (sys.executable, "-c", "import os; os.kill(os.getpid(), 11)")
        self.assertEqual("", check.run(check.Program("cuda.core", "register", ended), 30)[1])
        self.assertIn("exit status -11", check.run(check.Program("cuda.core", "ipc", ended), 30)[1])
        self.assertIn("exit status -11", check.run(check.Program("cuvette", "register", ended), 30)[1])
        failed = (sys.executable, "-c", "raise SystemExit(1)")
        self.assertIn("exit status 1", check.run(check.Program("cuda.core", "register", failed), 30)[1])

    def test_a_program_without_facts_is_a_trouble(self):
        facts = check.collect([check.Program("x", "s", (sys.executable, "-c", ""))], 30)
        self.assertEqual(["x s: said nothing"], facts.troubles)

    def test_each_section_of_cuvette_has_its_counterpart(self):
        sections = {}
        for each in check.programs("run"):
            name = "async-" + each.section if each.library == "cupy" else each.section
            sections.setdefault(each.library == "cuvette", set()).add(name)
        self.assertEqual(sections[True], sections[False])


class PageTest(unittest.TestCase):
    def test_differences_come_before_what_is_the_same(self):
        facts = comparison.Facts()
        facts.add([line(each, "a|b", value=1) for each in ("cuvette", "cuda.core")])
        facts.add([line("cuvette", "z", value=1), line("cuda.core", "z", value=2)])
        text = page.markdown(facts.rows(), {"GPU": "H200"}, ["cupy: crashed"])
        self.assertIn("1 differs, 0 missing, 0 differs, explained, 1 same.", text)
        self.assertLess(text.index("| z | 1 | 2 | cuda.core |"), text.index("| a\\|b | 1 | 1 | cuda.core |"))
        self.assertIn("- cupy: crashed", text)

    def test_explanations_that_nothing_needed_are_listed(self):
        facts = comparison.Facts()
        fact = "device.current.birth.release_threshold"
        facts.add([line("cuvette", fact, value=0), line("cuda.core", fact, value="all")])
        idle = page.markdown(facts.rows(), {}, []).split("## Explanations that nothing needed here")[1]
        self.assertNotIn(fact, idle)
        self.assertIn('- *.own*.birth.release_threshold: "all" beside 0', idle)

    def test_page_and_file_are_written(self):
        facts = comparison.Facts()
        facts.add([line("cuvette", "x", value=1), line("cuda.core", "x", value=1)])
        with tempfile.TemporaryDirectory() as folder:
            check.write(folder, facts.rows(), facts, {})
            with open(os.path.join(folder, "facts.json"), encoding="utf-8") as file:
                self.assertEqual("same", json.load(file)["facts"][0]["status"])
            self.assertTrue(os.path.exists(os.path.join(folder, "facts.md")))


if __name__ == "__main__":
    unittest.main()
