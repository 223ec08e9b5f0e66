"""CuPy's pools, one malloc and free (the pointer dropped) at a time, and its stream and event calls."""
import anchor

try:
    import cupy

    cupy.cuda.Device(0).use()
    cupy.cuda.runtime.free(cupy.cuda.runtime.malloc(256))
except Exception as reason:
    anchor.missing("cupy", reason)


def pairs(malloc, size):
    def loop(turns):
        for _ in range(turns):
            malloc(size)  # the result is dropped at once: that is the free

    return loop


def random_live(malloc):
    sizes, slots = anchor.random_work()
    live = [None] * anchor.SLOTS

    def loop(turns):
        for _ in range(turns // anchor.TABLE):
            for slot, size in zip(slots, sizes):
                live[slot] = None
                live[slot] = malloc(size)

    return anchor.best(anchor.TABLE * 2, loop, 4)


def threads(count, own_stream):
    pool = cupy.cuda.MemoryPool()
    shared = cupy.cuda.Stream(non_blocking=True)
    streams = [cupy.cuda.Stream(non_blocking=True) if own_stream else shared for _ in range(count)]

    def prepare(number):
        cupy.cuda.Device(0).use()
        streams[number].use()
        return pairs(pool.malloc, anchor.MIB)

    rate = anchor.pairs_per_second(count, 50000, prepare)
    kind = "own" if own_stream else "same"
    anchor.emit("cupy", f"threads-{count}-{kind}-stream", count, pairsPerSecond=rate)


def calls(stream):
    event = cupy.cuda.Event()

    def loop(call):
        def turn(turns):
            for _ in range(turns):
                call()

        return turn

    anchor.emit("cupy", "call-cuEventRecord", nsPerCall=anchor.best(50000, loop(lambda: event.record(stream))))
    stream.synchronize()
    for work, get in (("call-cuStreamQuery", lambda: stream.done), ("call-cuEventQuery", lambda: event.done)):
        anchor.emit("cupy", work, nsPerCall=anchor.best(200000, loop(get)))


def main():
    pool = cupy.cuda.MemoryPool()
    for work, size in (("same-size-512", 512), ("same-size-1MiB", anchor.MIB)):
        anchor.emit("cupy", work, nsPerPair=anchor.best(200000, pairs(pool.malloc, size)))
    anchor.emit("cupy", "random-live-1024-4MiB", nsPerPair=random_live(pool.malloc))
    pool.free_all_blocks()
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        async_pool = cupy.cuda.MemoryAsyncPool()
        anchor.emit("cupy", "async-1MiB", nsPerPair=anchor.best(50000, pairs(async_pool.malloc, anchor.MIB)))
    pinned = cupy.cuda.PinnedMemoryPool()
    anchor.emit("cupy", "pinned-1MiB", nsPerPair=anchor.best(100000, pairs(pinned.malloc, anchor.MIB)))
    for own_stream in (True, False):
        for count in (1, 4, 8):
            threads(count, own_stream)
    calls(stream)


if __name__ == "__main__":
    main()
