"""cuda.core's memory resources, one allocate and close at a time."""
import anchor

try:
    from cuda.core import (
        Device,
        DeviceMemoryResource,
        DeviceMemoryResourceOptions,
        PinnedMemoryResource,
        PinnedMemoryResourceOptions,
    )

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


RESOURCES = {
    "async-1MiB": lambda: device.memory_resource,
    "device-resource-1MiB": lambda: DeviceMemoryResource(device, DeviceMemoryResourceOptions()),
    "pinned-resource-1MiB": PinnedMemoryResource,
    "pinned-resource-numa-1MiB": lambda: PinnedMemoryResource(PinnedMemoryResourceOptions(numa_id=0)),
}

if __name__ == "__main__":
    for work, make in RESOURCES.items():
        anchor.emit("cuda.core", work, nsPerPair=anchor.best(20000, pairs(make())))
