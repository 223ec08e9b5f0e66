"""PyTorch's caching allocator from C++.

python3 torch_pools.py build                 compiles allocator.cpp (10 to 90 seconds), once for all that follow
python3 torch_pools.py pools                 pairs, random live set, threads
python3 torch_pools.py replay TRACE.bin...   files that python/traces.py wrote

The allocator reads PYTORCH_CUDA_ALLOC_CONF at its start:
with expandable_segments:True it is the anchor torch-expandable.
CUVETTE_TORCH_BUILD names the folder to build in.
"""
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "python"))
import anchor  # noqa: E402
import traces  # noqa: E402

EXPANDABLE = "expandable_segments:True" in os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
NAME = "torch-expandable" if EXPANDABLE else "torch"

try:
    import torch
    from torch.utils.cpp_extension import load

    torch.zeros(1, device="cuda")
except Exception as reason:
    anchor.missing(NAME, reason)


def extension():
    folder = os.environ.get("CUVETTE_TORCH_BUILD") or os.path.join(HERE, "target")
    os.makedirs(folder, exist_ok=True)
    return load(
        name="cuvette_torch_anchor",
        sources=[os.path.join(HERE, "allocator.cpp")],
        extra_cflags=["-O3"],
        build_directory=folder,
        with_cuda=True,
    )


def pools(module):
    for work, size in (("same-size-512", 512), ("same-size-1MiB", anchor.MIB)):
        module.pairs(100000, size)
        anchor.emit(NAME, work, nsPerPair=min(module.pairs(200000, size) for _ in range(5)))
    anchor.emit(NAME, "random-live-1024-4MiB", nsPerPair=module.random_live(4))
    for own_stream in (True, False):
        kind = "own" if own_stream else "same"
        for count in (1, 4, 8):
            rate = max(module.pairs_per_second(count, 30000, own_stream) for _ in range(3))
            anchor.emit(NAME, f"threads-{count}-{kind}-stream", count, pairsPerSecond=rate)


def replay(module, path):
    with open(path, "rb") as file:
        peak_live = struct.unpack("<4q", file.read(32))[3]
    name = os.path.basename(path).split(".")[0]
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_reserved()
    module.replay(path, 1)
    held = torch.cuda.max_memory_reserved() - before
    nanos = module.replay(path, 4)
    anchor.emit(NAME, f"replay-{name}", nsPerOperation=nanos, ratio=held / peak_live)
    torch.cuda.empty_cache()
    anchor.emit_timeline(NAME, f"replay-{name}", timeline(traces.read_binary(path)))
    torch.cuda.empty_cache()


def timeline(trace):
    """One pass from Python, which asks for what is reserved now and then."""
    live = [0] * trace.slot_count
    streams = [torch.cuda.default_stream()] + [torch.cuda.Stream() for _ in range(trace.stream_count - 1)]
    before = torch.cuda.memory_reserved()

    def replay_one(size, slot, number):
        if size >= 0:
            live[slot] = torch.cuda.caching_allocator_alloc(size, stream=streams[number])
        else:
            torch.cuda.caching_allocator_delete(live[slot])
            live[slot] = 0

    points = traces.timeline(trace, replay_one, lambda: torch.cuda.memory_reserved() - before)
    for address in filter(None, live):
        torch.cuda.caching_allocator_delete(address)
    return points


def main(command, paths):
    try:
        module = extension()
    except Exception as reason:
        anchor.missing(NAME, f"allocator.cpp does not build: {reason}")
    if command == "pools":
        pools(module)
    elif command == "replay":
        for path in paths:
            replay(module, path)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
