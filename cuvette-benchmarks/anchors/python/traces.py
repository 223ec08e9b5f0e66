"""Reads recorded allocation traces (RMM's log columns, plain or gzip), the same way for every anchor.

As a program it turns each CSV into a file that the C and C++ anchors read: python3 traces.py OUTPUT_FOLDER TRACE...
"""
import csv
import gzip
import os
import struct
import sys
from dataclasses import dataclass, field


@dataclass
class Trace:
    """Operations as parallel lists. A block has a slot from its allocation to its free; bytes < 0 is the free."""

    name: str
    sizes: list = field(default_factory=list)
    slots: list = field(default_factory=list)
    streams: list = field(default_factory=list)
    slot_count: int = 0
    stream_count: int = 0
    peak_live_bytes: int = 0


def stem(path):
    return os.path.basename(path).split(".")[0]


def load(path):
    trace = Trace(stem(path))
    live, unused, numbers, live_bytes = {}, [], {}, 0
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", newline="") as file:
        rows = csv.reader(file)
        next(rows)
        for _thread, _time, action, pointer, size, stream in rows:
            number = numbers.setdefault(stream, len(numbers))
            if action == "allocate":
                slot = unused.pop() if unused else trace.slot_count
                trace.slot_count = max(trace.slot_count, slot + 1)
                live[pointer] = (slot, int(size))
                live_bytes += int(size)
                trace.peak_live_bytes = max(trace.peak_live_bytes, live_bytes)
                trace.sizes.append(max(1, int(size)))
            elif action == "free":
                slot, allocated = live.pop(pointer)
                unused.append(slot)
                live_bytes -= allocated
                trace.sizes.append(-1)
            else:
                continue
            trace.slots.append(slot)
            trace.streams.append(number)
    trace.stream_count = len(numbers)
    return trace


def write_binary(trace, path):
    with open(path, "wb") as file:
        file.write(struct.pack("<4q", len(trace.sizes), trace.slot_count, trace.stream_count, trace.peak_live_bytes))
        row = struct.Struct("<qii")
        file.write(b"".join(row.pack(*each) for each in zip(trace.sizes, trace.slots, trace.streams)))


def read_binary(path):
    """The trace of a file that write_binary wrote."""
    trace = Trace(stem(path))
    with open(path, "rb") as file:
        header = struct.unpack("<4q", file.read(32))
        _, trace.slot_count, trace.stream_count, trace.peak_live_bytes = header
        for size, slot, stream in struct.iter_unpack("<qii", file.read()):
            trace.sizes.append(size)
            trace.slots.append(slot)
            trace.streams.append(stream)
    return trace


def timeline(trace, replay_one, held, most=300):
    """Replays a trace by replay_one(size, slot, stream); gives [operations done, most bytes live since the point
    before, held()] for `most` points, as `cuvette replay --timeline` does."""
    points, live, peak, sizes = [], 0, 0, [0] * trace.slot_count
    count = min(most, len(trace.sizes))
    for done, (size, slot, stream) in enumerate(zip(trace.sizes, trace.slots, trace.streams), 1):
        replay_one(size, slot, stream)
        live += size if size >= 0 else -sizes[slot]
        sizes[slot] = max(0, size)
        peak = max(peak, live)
        if done >= len(trace.sizes) * (len(points) + 1) // count:
            points.append([done, peak, held()])
            peak = live
    return points


if __name__ == "__main__":
    for each in sys.argv[2:]:
        write_binary(load(each), os.path.join(sys.argv[1], stem(each) + ".bin"))
