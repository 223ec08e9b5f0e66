"""What CuPy's MemoryAsyncPool says and does, section by section: python3 cupy_facts.py SECTION."""
import sys

from recorder import DriverError, Recorder, threshold

MIB = 1 << 20
RECORDER = Recorder("cupy")
fact, outcome = RECORDER.fact, RECORDER.outcome

try:
    import cupy
    from cupy.cuda import MemoryAsyncPool, runtime

    cupy.cuda.Device(0).use()
    stream = cupy.cuda.Stream(non_blocking=True)
    stream.use()
    default = runtime.deviceGetDefaultMemPool(0)
    devices = runtime.getDeviceCount()
except Exception as reason:
    RECORDER.missing(f"{type(reason).__name__}: {reason}")
    sys.exit(3)


def foreign_pool():
    """A pool made elsewhere: pinned type, no sharing, on device 0."""
    try:
        return runtime.memPoolCreate(runtime.MemPoolProps(1, 0, 1, 0))
    except (AttributeError, TypeError):  # a version that does not offer it
        return drivers_pool()


def drivers_pool():
    from cuda.bindings import driver as drv

    properties = drv.CUmemPoolProps()
    properties.allocType = drv.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    properties.location.type = drv.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    status, pool = drv.cuMemPoolCreate(properties)
    if int(status) != 0:
        raise DriverError(status.name)
    return int(pool)


def each(choice):
    """The choice for the first device; the others take their default pools."""
    return [choice] + ["default"] * (devices - 1)


CHOICES = {
    "default": lambda: MemoryAsyncPool("default"),
    "current": lambda: MemoryAsyncPool("current"),
    "left_out": lambda: MemoryAsyncPool(),
    "list_default": lambda: MemoryAsyncPool(each("default")),
    "list_current": lambda: MemoryAsyncPool(each("current")),
    "handle": lambda: MemoryAsyncPool(each(foreign_pool())),
}


def numbers(prefix, pool):
    stream.synchronize()
    for name in ("used_bytes", "free_bytes", "total_bytes"):
        fact(f"{prefix}.{name}", getattr(pool, name))


def choice(name, make):
    prefix = "async." + name
    pool = outcome(prefix + ".made", make)
    if pool is None:
        return
    pool.free_all_blocks()
    fact(prefix + ".get_limit", lambda: threshold(pool.get_limit()))
    numbers(prefix + ".birth", pool)
    large, small = pool.malloc(MIB), pool.malloc(100)
    fact(prefix + ".pointer_is_set", lambda: large.ptr != 0)
    numbers(prefix + ".two", pool)
    del large
    numbers(prefix + ".one_freed", pool)
    del small
    numbers(prefix + ".both_freed", pool)
    outcome(prefix + ".free_all_blocks", pool.free_all_blocks)
    numbers(prefix + ".all_freed", pool)
    outcome(prefix + ".n_free_blocks", pool.n_free_blocks)
    runtime.deviceSetMemPool(0, default)


def section_choices():
    for name, make in CHOICES.items():
        outcome(f"async.{name}.all", lambda: choice(name, make))


def section_limits():
    pool = MemoryAsyncPool(each(foreign_pool()))
    total = runtime.memGetInfo()[1]
    limit = lambda: threshold(pool.get_limit())  # noqa: E731
    outcome("async.set_limit.bytes", lambda: pool.set_limit(size=8 * MIB))
    fact("async.set_limit.bytes.reads", limit)
    outcome("async.set_limit.fraction", lambda: pool.set_limit(fraction=0.5))
    fact("async.set_limit.fraction.is_half_of_the_device", lambda: abs(pool.get_limit() - total / 2) <= 1)
    outcome("async.set_limit.fraction_1", lambda: pool.set_limit(fraction=1.0))
    fact("async.set_limit.fraction_1.is_the_device", lambda: pool.get_limit() == total)
    outcome("async.set_limit.fraction_0", lambda: pool.set_limit(fraction=0.0))
    fact("async.set_limit.fraction_0.reads", limit)
    outcome("async.set_limit.zero", lambda: pool.set_limit(size=0))
    fact("async.set_limit.zero.reads", limit)
    outcome("async.set_limit.none", lambda: pool.set_limit())
    fact("async.set_limit.none.reads", limit)
    outcome("error.async.set_limit.negative", lambda: pool.set_limit(size=-1))
    outcome("error.async.set_limit.fraction_above_1", lambda: pool.set_limit(fraction=1.1))
    outcome("error.async.set_limit.fraction_negative", lambda: pool.set_limit(fraction=-0.1))
    outcome("error.async.set_limit.both", lambda: pool.set_limit(size=1, fraction=0.5))
    beyond(pool)


def beyond(pool):
    pool.set_limit(size=0)
    pool.free_all_blocks()
    pool.set_limit(size=8 * MIB)
    outcome("async.limit.within", lambda: pool.malloc(MIB))
    stream.synchronize()
    outcome("async.limit.beyond_what_the_pool_holds", lambda: pool.malloc(1 << 30))
    held = MemoryAsyncPool(each(foreign_pool()))
    held.set_limit(size=0)
    kept = held.malloc(24 * MIB)
    del kept
    stream.synchronize()
    held.set_limit(size=8 * MIB)
    outcome("async.limit.beyond_it_but_held", lambda: held.malloc(16 * MIB))


def section_errors():
    outcome("error.async.empty_list", lambda: MemoryAsyncPool([]))
    outcome("error.async.long_list", lambda: MemoryAsyncPool(["current"] * (devices + 1)))
    outcome("error.async.unknown_choice", lambda: MemoryAsyncPool("nonsense"))
    outcome("error.async.create", lambda: MemoryAsyncPool("create"))
    outcome("error.async.wrong_type", lambda: MemoryAsyncPool(1.5))
    pool = MemoryAsyncPool("default")
    fact("async.zero.pointer_is_set", lambda: pool.malloc(0).ptr != 0)
    outcome("error.async.malloc_negative", lambda: pool.malloc(-1))
    outcome("error.async.malloc_huge", lambda: pool.malloc(1 << 60))
    outcome("async.free_all_blocks.stream", lambda: pool.free_all_blocks(stream))
    outcome("error.async.malloc_capturing", lambda: capturing(pool))
    outcome("error.async.handle_0", lambda: MemoryAsyncPool(each(0)))


def capturing(pool):
    busy = cupy.cuda.Stream(non_blocking=True)
    with busy:
        busy.begin_capture()
        try:
            return pool.malloc(MIB)
        finally:
            try:
                busy.end_capture()
            except Exception as reason:
                print(f"end of the capture: {reason}", file=sys.stderr)


def section_sides():
    """Whose pool it allocates from, and what its constructor does to others."""
    first, second = foreign_pool(), foreign_pool()
    pool = MemoryAsyncPool(each(first))
    fact("async.sides.current_pool_unchanged", lambda: runtime.deviceGetMemPool(0) == default)
    other = MemoryAsyncPool(each(second))
    kept = pool.malloc(MIB)
    stream.synchronize()
    fact("async.sides.allocates_from_its_own", lambda: pool.used_bytes() >= MIB)
    fact("async.sides.leaves_the_other_alone", lambda: other.used_bytes() == 0)
    del kept
    runtime.deviceSetMemPool(0, default)
    release = lambda: threshold(runtime.memPoolGetAttribute(default, 4))  # noqa: E731
    before = release()
    MemoryAsyncPool("default")
    fact("async.sides.default_pools_threshold_unchanged", lambda: release() == before)


SECTIONS = {name[len("section_"):]: run for name, run in list(globals().items()) if name.startswith("section_")}

if __name__ == "__main__":
    RECORDER.about(f"CuPy {cupy.__version__}, driver {runtime.driverGetVersion()}")
    SECTIONS[sys.argv[1]]()
