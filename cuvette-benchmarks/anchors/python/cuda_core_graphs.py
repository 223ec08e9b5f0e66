"""cuda.core's graphs of 100 kernels: capture with instantiation, update by a graph with other parameters, launches."""
import anchor

try:
    import ctypes
    import time

    from cuda.core import Device, LaunchConfig, ObjectCode, launch

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    kernel = ObjectCode.from_ptx(anchor.NOTHING_OF_FOUR).get_kernel("nothingOfFour")
except Exception as reason:
    anchor.missing("cuda.core", reason)


def main():
    config = LaunchConfig(grid=1, block=32)
    x, y = (device.memory_resource.allocate(1024, stream=stream) for _ in range(2))

    def capture(number):
        builder = stream.create_graph_builder().begin_building()
        for _ in range(anchor.KERNELS):
            launch(builder, config, kernel, x, y, ctypes.c_float(1), ctypes.c_int32(number))
        return builder.end_building()

    builders = [capture(1), capture(2)]
    graph = builders[0].complete()

    def launch_alone(_):
        start = time.perf_counter_ns()
        graph.launch(stream)
        nanos = time.perf_counter_ns() - start
        stream.sync()
        return nanos

    def launch_and_wait(_):
        start = time.perf_counter_ns()
        graph.launch(stream)
        stream.sync()
        return time.perf_counter_ns() - start

    def capture_and_instantiate(_):
        start = time.perf_counter_ns()
        builder = capture(1)
        made = builder.complete()
        nanos = time.perf_counter_ns() - start
        made.close()
        builder.close()
        return nanos

    def update(turn):
        start = time.perf_counter_ns()
        graph.update(builders[(turn + 1) % 2])
        return time.perf_counter_ns() - start

    anchor.emit("cuda.core", "graph-launch", nsPerGraph=anchor.best_turns(launch_alone))
    anchor.emit("cuda.core", "graph-launch+synchronize", nsPerGraph=anchor.best_turns(launch_and_wait))
    anchor.emit("cuda.core", "graph-capture+instantiate", nsPerGraph=anchor.best_turns(capture_and_instantiate))
    anchor.emit("cuda.core", "graph-update", nsPerGraph=anchor.best_turns(update))


if __name__ == "__main__":
    main()
