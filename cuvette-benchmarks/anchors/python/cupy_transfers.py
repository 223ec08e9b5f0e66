"""CuPy's copies between the device and arrays of NumPy: page-locked, plain, of a mapped file, and a list of rows."""
import anchor

try:
    import tempfile

    import cupy
    import cupyx
    import numpy

    cupy.cuda.Device(0).use()
except Exception as reason:
    anchor.missing("cupy", reason)

KIB, MIB = 1 << 10, 1 << 20
SIZES = {"4KiB": 4 * KIB, "64KiB": 64 * KIB, "1MiB": MIB, "16MiB": 16 * MIB, "64MiB": 64 * MIB, "256MiB": 256 * MIB,
         "1GiB": 1024 * MIB, "4GiB": 4096 * MIB}
ROWS = (1_000, 100_000, 1_000_000)


def emit(kind, way, size, nbytes, nanos):
    anchor.emit("cupy", f"transfer-{kind}-{way}-{size}", gigabytesPerSecond=nbytes / nanos)


def measure(kind, size, device, host, stream):
    turns = min(max(4 * MIB // host.nbytes, 1), 500)
    repetitions = 8 if host.nbytes <= 256 * MIB else 3

    def there(count):
        for _ in range(count):
            device.set(host)
            stream.synchronize()

    def back(count):
        for _ in range(count):
            device.get(out=host)
            stream.synchronize()

    emit(kind, "h2d", size, host.nbytes, anchor.best(turns, there, repetitions))
    emit(kind, "d2h", size, host.nbytes, anchor.best(turns, back, repetitions))


def of_size(size, nbytes, stream):
    device = cupy.ones(nbytes, cupy.uint8)
    pinned = cupyx.empty_pinned(nbytes, numpy.uint8)
    pinned[:] = 1
    measure("pinned", size, device, pinned, stream)
    del pinned
    measure("heap", size, device, numpy.ones(nbytes, numpy.uint8), stream)
    with tempfile.NamedTemporaryFile() as file:
        file.truncate(nbytes)
        mapped = numpy.memmap(file.name, numpy.uint8, "r+")
        mapped[:] = 1
        measure("mapped", size, device, mapped, stream)


def of_rows(count, stream):
    rows = [numpy.zeros(768, numpy.float32) for _ in range(count)]

    def gather(turns):
        for _ in range(turns):
            cupy.asarray(rows)
            stream.synchronize()

    nbytes = count * rows[0].nbytes
    turns = min(max(4 * MIB // nbytes, 1), 500)
    emit("rows", "h2d", f"{count}x768", nbytes, anchor.best(turns, gather, 2))


def main():
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        available = cupy.cuda.runtime.memGetInfo()[0]
        for size, nbytes in SIZES.items():
            if nbytes <= available // 3:
                of_size(size, nbytes, stream)
                cupy.get_default_memory_pool().free_all_blocks()
                cupy.get_default_pinned_memory_pool().free_all_blocks()
        for count in ROWS:
            of_rows(count, stream)


if __name__ == "__main__":
    main()
