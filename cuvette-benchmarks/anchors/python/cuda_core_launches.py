"""cuda.core's launch of a kernel with four parameters that does nothing."""
import anchor

try:
    import ctypes

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

    def series(turns):
        for _ in range(turns):
            launch(stream, config, kernel, x, y, ctypes.c_float(1), ctypes.c_int32(256))

    factor, count = ctypes.c_float(1), ctypes.c_int32(256)

    def prepared(turns):
        for _ in range(turns):
            launch(stream, config, kernel, x, y, factor, count)

    anchor.emit("cuda.core", "launch", nsPerLaunch=anchor.best_series(series, stream.sync))
    anchor.emit("cuda.core", "launch-packed", nsPerLaunch=anchor.best_series(prepared, stream.sync))


if __name__ == "__main__":
    main()
