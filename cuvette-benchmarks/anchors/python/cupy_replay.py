"""Replays recorded traces through CuPy's MemoryPool: python3 cupy_replay.py TRACE..."""
import sys
import time

import anchor
import traces

try:
    import cupy

    cupy.cuda.Device(0).use()
    cupy.cuda.runtime.free(cupy.cuda.runtime.malloc(256))
except Exception as reason:
    anchor.missing("cupy", reason)


def one_stream(malloc, trace, live):
    for size, slot in zip(trace.sizes, trace.slots):
        live[slot] = malloc(size) if size >= 0 else None


def many_streams(malloc, trace, live, streams):
    current = None
    for size, slot, number in zip(trace.sizes, trace.slots, trace.streams):
        if number != current:
            streams[number].use()
            current = number
        live[slot] = malloc(size) if size >= 0 else None


def replay(path, repetitions=3):
    trace = traces.load(path)
    pool, held, least = cupy.cuda.MemoryPool(), 0, float("inf")
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(trace.stream_count)]
    for repetition in range(repetitions):
        live = [None] * trace.slot_count
        start = time.perf_counter_ns()
        if trace.stream_count == 1:
            one_stream(pool.malloc, trace, live)
        else:
            many_streams(pool.malloc, trace, live, streams)
        nanos = (time.perf_counter_ns() - start) / len(trace.sizes)
        del live
        if repetition == 0:  # the pool only grows here: what it holds at the end is its peak
            held = pool.total_bytes()
        else:
            least = min(least, nanos)
    ratio = held / trace.peak_live_bytes
    anchor.emit("cupy", f"replay-{trace.name}", nsPerOperation=least, ratio=ratio)
    give_back(pool, streams)
    fresh = cupy.cuda.MemoryPool()
    anchor.emit_timeline("cupy", f"replay-{trace.name}", timeline(trace, fresh, streams))
    give_back(fresh, streams)


def timeline(trace, pool, streams):
    live = [None] * trace.slot_count

    def replay_one(size, slot, number):
        streams[number].use()
        live[slot] = pool.malloc(size) if size >= 0 else None

    return traces.timeline(trace, replay_one, pool.total_bytes)


def give_back(pool, streams):
    cupy.cuda.Stream.null.use()
    pool.free_all_blocks()
    for stream in streams:
        pool.free_all_blocks(stream)


if __name__ == "__main__":
    for each in sys.argv[1:]:
        replay(each)
