"""CuPy's launch of a kernel with four parameters that does nothing."""
import anchor

try:
    import cupy
    import numpy

    cupy.cuda.Device(0).use()
    kernel = cupy.RawModule(path=anchor.NOTHING_OF_FOUR).get_function("nothingOfFour")
    x, y = cupy.empty(256, cupy.float32), cupy.empty(256, cupy.float32)
except Exception as reason:
    anchor.missing("cupy", reason)


def main():
    stream = cupy.cuda.Stream(non_blocking=True)

    def series(turns):
        for _ in range(turns):
            kernel((1,), (32,), (x, y, numpy.float32(1), numpy.int32(256)))

    arguments = (x, y, numpy.float32(1), numpy.int32(256))

    def prepared(turns):
        for _ in range(turns):
            kernel((1,), (32,), arguments)

    with stream:
        anchor.emit("cupy", "launch", nsPerLaunch=anchor.best_series(series, stream.synchronize))
        anchor.emit("cupy", "launch-packed", nsPerLaunch=anchor.best_series(prepared, stream.synchronize))


if __name__ == "__main__":
    main()
