"""CuPy's graphs of 100 kernels: capture with instantiation, one call there, and launches. It has no update."""
import anchor

try:
    import time

    import cupy
    import numpy

    cupy.cuda.Device(0).use()
    kernel = cupy.RawModule(path=anchor.NOTHING_OF_FOUR).get_function("nothingOfFour")
    x, y = cupy.empty(256, cupy.float32), cupy.empty(256, cupy.float32)
except Exception as reason:
    anchor.missing("cupy", reason)


def capture(stream):
    stream.begin_capture()
    for _ in range(anchor.KERNELS):
        kernel((1,), (32,), (x, y, numpy.float32(1), numpy.int32(1)))
    return stream.end_capture()


def measure(stream):
    graph = capture(stream)

    def launch(_):
        start = time.perf_counter_ns()
        graph.launch(stream)
        nanos = time.perf_counter_ns() - start
        stream.synchronize()
        return nanos

    def launch_and_wait(_):
        start = time.perf_counter_ns()
        graph.launch(stream)
        stream.synchronize()
        return time.perf_counter_ns() - start

    def capture_and_instantiate(_):
        start = time.perf_counter_ns()
        made = capture(stream)
        nanos = time.perf_counter_ns() - start
        del made  # untimed
        return nanos

    anchor.emit("cupy", "graph-launch", nsPerGraph=anchor.best_turns(launch))
    anchor.emit("cupy", "graph-launch+synchronize", nsPerGraph=anchor.best_turns(launch_and_wait))
    anchor.emit("cupy", "graph-capture+instantiate", nsPerGraph=anchor.best_turns(capture_and_instantiate))


def main():
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        measure(stream)


if __name__ == "__main__":
    main()
