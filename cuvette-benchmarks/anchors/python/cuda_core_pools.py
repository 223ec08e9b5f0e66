"""cuda.core's memory resources, one allocate and close at a time."""
import anchor

try:
    from cuda.core import Device, PinnedMemoryResource

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
except Exception as reason:
    anchor.missing("cuda.core", reason)


def pairs(resource):
    def loop(turns):
        for _ in range(turns):
            resource.allocate(anchor.MIB, stream=stream).close()

    return loop


if __name__ == "__main__":
    anchor.emit("cuda.core", "async-1MiB", nsPerPair=anchor.best(30000, pairs(device.memory_resource)))
    anchor.emit("cuda.core", "pinned-1MiB", nsPerPair=anchor.best(10000, pairs(PinnedMemoryResource())))
