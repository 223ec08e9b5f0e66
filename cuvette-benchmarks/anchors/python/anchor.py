"""What every Python anchor shares: timing, the same random work as the other programs, and one JSON object a line."""
import json
import os
import sys
import threading
import time

MIB = 1 << 20
SLOTS = 1024
TABLE = 1 << 16
SERIES = 256  # launches between two waits: fewer than fill the driver's queue
KERNELS = 100  # of a graph
NOTHING_OF_FOUR = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "nothing_of_four.ptx")


def emit(anchor, work, threads=1, **metrics):
    rounded = {key: round(value, 4) for key, value in metrics.items()}
    print(json.dumps({"anchor": anchor, "work": work, **rounded, "threads": threads}), flush=True)


def emit_timeline(anchor, work, points):
    print(json.dumps({"anchor": anchor, "work": work, "timeline": points}, separators=(",", ":")), flush=True)


def missing(anchor, why):
    """Says in one line that this anchor cannot run here, and ends."""
    print(json.dumps({"anchor": anchor, "missing": str(why)[:300]}), flush=True)
    sys.exit(3)


def best(turns, body, repetitions=5):
    """Nanoseconds for each turn of body(turns), the best of the repetitions after one that warms up."""
    body(turns)
    least = float("inf")
    for _ in range(repetitions):
        start = time.perf_counter_ns()
        body(turns)
        least = min(least, (time.perf_counter_ns() - start) / turns)
    return least


def best_series(body, wait, series=40, repetitions=6):
    """Nanoseconds for each turn of body(turns), in series after each of which wait() is called, which is not timed."""
    least = float("inf")
    for repetition in range(repetitions + 1):
        nanos = 0
        for _ in range(series):
            start = time.perf_counter_ns()
            body(SERIES)
            nanos += time.perf_counter_ns() - start
            wait()
        if repetition:
            least = min(least, nanos / (series * SERIES))
    return least


def best_turns(once, turns=50, repetitions=12):
    """The nanoseconds that once(turn) says count, on average: the best of as many repetitions as warm up before."""
    least = float("inf")
    for repetition in range(2 * repetitions):
        nanos = sum(once(turn) for turn in range(turns))
        if repetition >= repetitions:
            least = min(least, nanos / turns)
    return least


def random_work():
    """The sizes (1 byte to 4 MiB) and slots of the random live set: SplitMix64 from state 1, as in every program."""
    state, mask = 1, (1 << 64) - 1

    def draw():
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    sizes = [1 + draw() % (4 * MIB) for _ in range(TABLE)]
    return sizes, [draw() % SLOTS for _ in range(TABLE)]


def pairs_per_second(threads, pairs, prepare, repetitions=3):
    """Pairs a second of all threads, from the first one's start to the last one's end; prepare(number) gives a
    thread its loop, a function of the number of pairs."""
    fastest = 0.0
    for _ in range(repetitions):
        barrier, spans = threading.Barrier(threads), []

        def work(number):
            loop = prepare(number)
            loop(1)
            barrier.wait()
            start = time.perf_counter_ns()
            loop(pairs)
            spans.append((start, time.perf_counter_ns()))

        workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
        for each in workers:
            each.start()
        for each in workers:
            each.join()
        nanos = max(end for _, end in spans) - min(start for start, _ in spans)
        fastest = max(fastest, threads * pairs / nanos * 1e9)
    return fastest
