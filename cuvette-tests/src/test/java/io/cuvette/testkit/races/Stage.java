package io.cuvette.testkit.races;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.EventOptions;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.NativeFunctionResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.driver.CudaDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The fresh objects of one round. What an operation asks for is what it uses, and what can be ended
 * beside it. Confined to the thread that prepares the round.
 */
final class Stage {
  static final int BYTES = 1024;

  /** Host memory that all rounds copy from and to: what is in it does not matter. */
  private static final MemorySegment NATIVE = Arena.ofAuto().allocate(BYTES);

  final Cuda cuda;
  final CudaDevice device;

  private final CudaDriver theirs;
  private final boolean forgets;
  private final Map<Closer, AutoCloseable> ends = new EnumMap<>(Closer.class);
  private final List<AutoCloseable> made = new ArrayList<>();

  /**
   * Prepares nothing yet.
   *
   * @param theirs a driver that stands for another library
   * @param forgets whether nothing is kept here, so that the collector can find it
   */
  Stage(Cuda cuda, CudaDriver theirs, boolean forgets) {
    this.cuda = cuda;
    this.theirs = theirs;
    this.device = cuda.device(0);
    this.forgets = forgets;
    ends.put(Closer.CUDA, cuda);
  }

  /** Notes something that the operation uses and that can be ended. */
  <T extends AutoCloseable> T ended(Closer by, T thing) {
    ends.put(by, forgets ? cuda : thing);
    return made(thing);
  }

  /** Notes something that is closed after the round and not in it. */
  <T extends AutoCloseable> T made(T thing) {
    if (!forgets) {
      made.add(thing);
    }
    return thing;
  }

  /** Everything that can be ended beside what was prepared. */
  Set<Closer> closers() {
    return ends.keySet();
  }

  AutoCloseable end(Closer closer) {
    return ends.get(closer);
  }

  /** Closes what the round left open, the newest first. */
  void close() throws Exception {
    for (AutoCloseable one : made.reversed()) {
      one.close();
    }
  }

  Buffer buffer(Memory memory) {
    return ended(Closer.BUFFER, memory.make(this));
  }

  /** A buffer of plain memory, for operations to which the kind does not matter. */
  Buffer buffer() {
    return buffer(Memory.DIRECT);
  }

  PinnedBuffer pinned() {
    return (PinnedBuffer) buffer(Memory.PINNED);
  }

  ManagedBuffer managed() {
    return (ManagedBuffer) buffer(Memory.MANAGED);
  }

  Buffer other() {
    return ended(Closer.OTHER, MemoryResource.direct().allocate(BYTES, device.nullStream()));
  }

  CudaStream stream() {
    return ended(Closer.STREAM, device.createStream());
  }

  CudaEvent event() {
    return event(EventOptions.DEFAULTS);
  }

  CudaEvent event(EventOptions options) {
    return ended(Closer.EVENT, device.createEvent(options));
  }

  /** A caching pool, which belongs to its Cuda until it is closed: it cannot be forgotten. */
  MemoryPool pool() {
    return forgets ? cuda.defaultMemoryPool() : ended(Closer.POOL, new MemoryPool(cuda));
  }

  AsyncMemoryPool asyncPool() {
    return ended(Closer.POOL, new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0)));
  }

  PinnedMemoryPool pinnedPool() {
    return forgets
        ? cuda.defaultPinnedMemoryPool()
        : ended(Closer.POOL, new PinnedMemoryPool(cuda));
  }

  DeviceMemoryResource resource() {
    return ended(
        Closer.POOL, new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS));
  }

  CudaModule module() {
    return ended(Closer.MODULE, TestKernels.launches(cuda));
  }

  /** An allocator of native functions, which the simulator stands in for. */
  NativeFunctionResource nativeFunctions() {
    SimulatedDriver simulator = (SimulatedDriver) theirs;
    long malloc =
        simulator.registerMalloc((_, bytes, id) -> simulator.memory().memAlloc(id, bytes));
    long free = simulator.registerFree((_, address, id) -> simulator.memory().memFree(id, address));
    return new NativeFunctionResource(
        MemorySegment.ofAddress(malloc), MemorySegment.ofAddress(free), MemorySegment.NULL, null);
  }

  /** The address of memory that another library allocated, and frees after the round. */
  long foreign() {
    long address = theirs.memory().memAlloc(0, BYTES);
    made.add(() -> theirs.memory().memFree(0, address));
    return address;
  }

  MemorySegment nativeMemory() {
    return NATIVE;
  }

  MemorySegment heap() {
    return MemorySegment.ofArray(new byte[BYTES]);
  }
}
