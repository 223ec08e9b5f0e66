package io.cuvette.sim.internal.calls;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.PotentialBlockSize;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedParameter;
import io.cuvette.sim.internal.base.HandleKind;
import io.cuvette.sim.internal.base.HandleTable;
import io.cuvette.sim.internal.base.KernelRegistry;
import io.cuvette.sim.internal.base.Ptx;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.graph.NodeWork;
import io.cuvette.sim.internal.kernel.Grid;
import io.cuvette.sim.internal.kernel.KernelSettings;
import io.cuvette.sim.internal.machine.SimAttributes;
import io.cuvette.sim.internal.machine.SimCosts;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.memory.HostBlock;
import io.cuvette.sim.internal.memory.SimBlock;
import io.cuvette.sim.internal.pace.SimSchedule;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The calls about kernels. The code of a library is read for names and parameters alone; what a
 * launch runs is the Java function that is registered under the kernel's name. Thread-safe.
 */
public final class SimKernelCalls implements KernelCalls {
  /** CU_MEM_ATTACH_HOST: managed memory that no kernel may touch. */
  private static final int ATTACH_HOST = 2;

  /** The most blocks of a grid: minutes. */
  private static final long MOST_BLOCKS = 1L << 24;

  /** The handles of the kernels by name. */
  public final HandleTable<Map<String, Long>> libraries =
      new HandleTable<>(HandleKind.LIBRARY, false);

  private final HandleTable<Kernel> kernels = new HandleTable<>(HandleKind.KERNEL, false);
  private final SimMachine machine;

  /** Draws the order of the threads of each launch. */
  private final SplittableRandom seeds;

  /** A kernel with its attributes on each device. */
  private record Kernel(
      String name,
      List<KernelParameter> parameters,
      Map<Integer, KernelSettings> settings,
      AtomicBoolean loaded) {}

  public SimKernelCalls(SimMachine machine) {
    this.machine = machine;
    this.seeds = new SplittableRandom(machine.options.seed());
  }

  @Override
  public long libraryLoadData(byte[] image) {
    return machine.callLong(
        () -> {
          Map<String, Long> found = new LinkedHashMap<>();
          Ptx.kernels(image, machine.options.driverVersion(), capability())
              .forEach((name, sizes) -> found.put(name, kernels.add(kernel(name, sizes))));
          return libraries.add(found);
        },
        () -> "cuLibraryLoadData(bytes=%d)".formatted(image.length));
  }

  private Kernel kernel(String name, List<KernelParameter> sizes) {
    boolean loaded = SimSchedule.loadsEagerly(machine.options);
    return new Kernel(name, sizes, new HashMap<>(), new AtomicBoolean(loaded));
  }

  /** That of the devices, which are all the same. */
  private int capability() {
    SimDevice device = machine.device(0);
    return 10 * SimAttributes.get(75, device, machine) + SimAttributes.get(76, device, machine);
  }

  @Override
  public void libraryUnload(long library) {
    machine.run(
        () -> libraries.remove(library).values().forEach(kernels::remove),
        () -> call("cuLibraryUnload", "library", library));
  }

  @Override
  public long libraryGetKernel(long library, String name) {
    return machine.callLong(
        () -> {
          Map<String, Long> found = libraries.get(library);
          Long kernel = found.get(name);
          if (kernel == null) {
            throw new SimRefusal(
                CudaStatus.NOT_FOUND,
                "name: %s (expected: one of the kernels %s)".formatted(name, found.keySet()));
          }
          return kernel;
        },
        () -> "cuLibraryGetKernel(library=0x%x, name=%s)".formatted(library, name));
  }

  @Override
  public int libraryGetKernelCount(long library) {
    return machine.call(
        () -> libraries.get(library).size(),
        () -> call("cuLibraryGetKernelCount", "library", library));
  }

  @Override
  public long[] libraryEnumerateKernels(long library, int count) {
    return machine.call(
        () -> {
          if (count < 1) {
            throw SimRefusal.invalidValue("count: %d (expected: >= 1)".formatted(count));
          }
          long[] result = new long[count];
          int next = 0;
          for (long kernel : libraries.get(library).values()) {
            if (next < count) {
              result[next++] = kernel;
            }
          }
          return result;
        },
        () -> "cuLibraryEnumerateKernels(library=0x%x, count=%d)".formatted(library, count));
  }

  @Override
  public String kernelGetName(long kernel) {
    return machine.call(
        () -> kernels.get(kernel).name(), () -> call("cuKernelGetName", "kernel", kernel));
  }

  /** Code is loaded when it is first asked about, if not before: that waits for the device. */
  @Override
  public KernelParameter kernelGetParamInfo(long kernel, int index) {
    return machine.call(
        () -> {
          Kernel known = kernels.get(kernel);
          if (known.loaded().compareAndSet(false, true)) {
            machine.drain(machine.device(0));
          }
          List<KernelParameter> parameters = known.parameters();
          if (index < 0 || index >= parameters.size()) {
            throw SimRefusal.invalidValue(
                "index: %d (expected: >= 0 and below %d, the number of parameters)"
                    .formatted(index, parameters.size()));
          }
          return parameters.get(index);
        },
        () -> "cuKernelGetParamInfo(kernel=0x%x, index=%d)".formatted(kernel, index));
  }

  @Override
  public void launchKernel(
      int device, long stream, long kernel, LaunchShape shape, LaunchParameters parameters) {
    machine.run(
        () -> {
          SimStream queue = machine.stream(machine.working(device), stream);
          launchIn(queue, kernel, shape, parameters);
        },
        () ->
            "cuLaunchKernelEx(kernel=0x%x, %s, stream=0x%x, device=%d)"
                .formatted(kernel, shape, stream, device));
  }

  /** Launches a kernel, or records it as a node. Guarded by the driver's lock. */
  void launchIn(SimStream queue, long kernel, LaunchShape shape, LaunchParameters parameters) {
    if (queue.capture == null) {
      machine.queue(launch(queue, kernel, shape, parameters));
    } else {
      GraphNodeParams.Kernel params = new GraphNodeParams.Kernel(kernel, shape, parameters);
      NodeWork node = node(queue, params);
      machine.capture(queue, () -> node);
    }
  }

  /** The handle of a kernel that is in no library. Guarded by the driver's lock. */
  long own(SimulatedKernel kernel, List<KernelParameter> parameters) {
    return kernels.add(kernel(kernel.name(), parameters));
  }

  private SimOp launch(
      SimStream stream, long kernel, LaunchShape shape, LaunchParameters parameters) {
    Kernel known = kernels.get(kernel);
    SimulatedKernel twin = twin(known);
    settings(known, stream.device.index, twin.sharedBytes()).check(shape);
    checkEnds(shape);
    Grid grid = grid(twin, known, shape, parameters);
    return machine.work(
        stream,
        () -> grid.run(machine, stream.device, seeds.nextLong()),
        SimCosts.launch(grid.blocks()),
        exclusive());
  }

  /** A node that launches a kernel, whose operation is for a stream that never runs. */
  NodeWork node(SimStream stream, GraphNodeParams.Kernel params) {
    Kernel known = kernels.get(params.kernel());
    SimOp op = launch(stream, params.kernel(), params.shape(), params.parameters());
    LaunchParameters copy = copy(known.parameters, params.parameters());
    return NodeWork.of(op, new GraphNodeParams.Kernel(params.kernel(), params.shape(), copy));
  }

  /** A copy of parameters, as programs read them. */
  static LaunchParameters copy(List<KernelParameter> layout, LaunchParameters given) {
    KernelParameter last = layout.isEmpty() ? new KernelParameter(0, 0) : layout.getLast();
    MemorySegment values =
        Arena.ofAuto().allocate(Math.max(1, last.offset() + last.size()), Long.BYTES);
    for (int i = 0; i < layout.size(); i++) {
      KernelParameter to = layout.get(i);
      MemorySegment.copy(
          given.values(), given.places().get(i).offset(), values, to.offset(), to.size());
    }
    LaunchParameters copy = new LaunchParameters(values, layout);
    return given.watcher() == null ? copy : copy.watchedBy(given.watcher());
  }

  /** A block takes microseconds, under the lock of the driver: some grids would take days. */
  private static void checkEnds(LaunchShape shape) {
    long blocks = (long) shape.gridX() * shape.gridY();
    if (blocks > MOST_BLOCKS || blocks * shape.gridZ() > MOST_BLOCKS) {
      throw new SimRefusal(
          CudaStatus.NOT_SUPPORTED,
          ("a grid of %d x %d x %d blocks (expected: <= %d blocks on the simulated device, which"
                  + " runs one after the other)")
              .formatted(shape.gridX(), shape.gridY(), shape.gridZ(), MOST_BLOCKS));
    }
  }

  /** The function for a kernel, whose parameters are as in the code. */
  private static SimulatedKernel twin(Kernel kernel) {
    SimulatedKernel twin = KernelRegistry.find(kernel.name);
    if (twin == null) {
      throw new SimRefusal(
          CudaStatus.NOT_FOUND,
          "kernel %s has no Java function (expected: one of this name, by SimulatedKernels.register)"
              .formatted(kernel.name));
    }
    List<KernelParameter> declared = new ArrayList<>();
    long end = 0;
    for (SimulatedParameter each : twin.parameters()) {
      long offset = (end + each.alignment() - 1) / each.alignment() * each.alignment();
      declared.add(new KernelParameter(offset, each.byteSize()));
      end = offset + each.byteSize();
    }
    if (!declared.equals(kernel.parameters)) {
      throw SimRefusal.invalidValue(
          "kernel %s is registered with %s, which lie at %s (expected: %s, as in its code)"
              .formatted(kernel.name, twin.parameters(), declared, kernel.parameters));
    }
    return twin;
  }

  /** The launch with what its arguments are now. */
  private Grid grid(
      SimulatedKernel twin, Kernel kernel, LaunchShape shape, LaunchParameters given) {
    List<KernelParameter> layout = kernel.parameters;
    int count = given.places().size();
    if (count < layout.size()) {
      throw SimRefusal.invalidValue(
          "%d arguments (expected: %d, those of %s)".formatted(count, layout.size(), kernel.name));
    }
    long bytes = layout.isEmpty() ? 0 : layout.getLast().offset() + layout.getLast().size();
    MemorySegment values =
        MemorySegment.ofArray(new long[(int) ((bytes + Long.BYTES - 1) / Long.BYTES)]);
    for (int i = 0; i < layout.size(); i++) {
      KernelParameter to = layout.get(i);
      MemorySegment.copy(
          given.values(), given.places().get(i).offset(), values, to.offset(), to.size());
    }
    return new Grid(twin, shape, layout, values, given.watcher());
  }

  /** What the host may not touch while any kernel runs, where it has no concurrent access. */
  private SimBlock[] exclusive() {
    List<SimBlock> all = new ArrayList<>();
    if (!machine.options.concurrentManaged()) {
      machine.hostMemory.forEach(all::add);
    }
    all.removeIf(block -> block instanceof HostBlock host && host.flags == ATTACH_HOST);
    return all.toArray(SimBlock[]::new);
  }

  private KernelSettings settings(Kernel kernel, int device) {
    SimulatedKernel twin = KernelRegistry.find(kernel.name);
    return settings(kernel, device, twin == null ? 0 : twin.sharedBytes());
  }

  private static KernelSettings settings(Kernel kernel, int device, int declaredShared) {
    KernelSettings settings = kernel.settings.computeIfAbsent(device, _ -> new KernelSettings());
    settings.declare(declaredShared);
    return settings;
  }

  /** Those of a kernel on a device whose context is current. */
  private KernelSettings current(long kernel, int device) {
    return settings(kernels.get(kernel), machine.working(device).index);
  }

  @Override
  public int kernelGetAttribute(int attribute, long kernel, int device) {
    return machine.call(
        () -> settings(kernels.get(kernel), machine.device(device).index).get(attribute),
        () ->
            "cuKernelGetAttribute(attribute=%d, kernel=0x%x, device=%d)"
                .formatted(attribute, kernel, device));
  }

  @Override
  public void kernelSetAttribute(int attribute, int value, long kernel, int device) {
    machine.run(
        () -> settings(kernels.get(kernel), machine.device(device).index).set(attribute, value),
        () ->
            "cuKernelSetAttribute(attribute=%d, value=%d, kernel=0x%x, device=%d)"
                .formatted(attribute, value, kernel, device));
  }

  @Override
  public int occupancyMaxActiveBlocksPerMultiprocessor(
      int device, long kernel, int blockThreads, long dynamicSharedBytes) {
    return machine.call(
        () -> current(kernel, device).residentBlocks(blockThreads, dynamicSharedBytes),
        () ->
            "cuOccupancyMaxActiveBlocksPerMultiprocessor(kernel=0x%x, threads=%d, shared=%d, device=%d)"
                .formatted(kernel, blockThreads, dynamicSharedBytes, device));
  }

  @Override
  public PotentialBlockSize occupancyMaxPotentialBlockSize(
      int device, long kernel, long dynamicSharedBytes, int blockLimit) {
    return machine.call(
        () -> {
          if (blockLimit < 0) {
            throw SimRefusal.invalidValue("limit: %d (expected: >= 0)".formatted(blockLimit));
          }
          int most = KernelSettings.MOST_THREADS;
          int threads = blockLimit == 0 ? most : Math.min(blockLimit, most);
          return new PotentialBlockSize(
              current(kernel, device).deviceBlocks(threads, dynamicSharedBytes), threads);
        },
        () ->
            "cuOccupancyMaxPotentialBlockSize(kernel=0x%x, shared=%d, limit=%d, device=%d)"
                .formatted(kernel, dynamicSharedBytes, blockLimit, device));
  }

  @Override
  public long occupancyAvailableDynamicSMemPerBlock(
      int device, long kernel, int blocks, int blockThreads) {
    return machine.callLong(
        () -> current(kernel, device).sharedLeft(blocks, blockThreads),
        () ->
            "cuOccupancyAvailableDynamicSMemPerBlock(kernel=0x%x, blocks=%d, threads=%d, device=%d)"
                .formatted(kernel, blocks, blockThreads, device));
  }

  @Override
  public int occupancyMaxActiveClusters(int device, long kernel, LaunchShape shape) {
    return machine.call(
        () -> current(kernel, device).clusters(shape),
        () ->
            "cuOccupancyMaxActiveClusters(kernel=0x%x, %s, device=%d)"
                .formatted(kernel, shape, device));
  }

  @Override
  public int occupancyMaxPotentialClusterSize(int device, long kernel, LaunchShape shape) {
    return machine.call(
        () -> current(kernel, device).largestCluster(shape),
        () ->
            "cuOccupancyMaxPotentialClusterSize(kernel=0x%x, %s, device=%d)"
                .formatted(kernel, shape, device));
  }

  private static String call(String name, String parameter, long handle) {
    return "%s(%s=0x%x)".formatted(name, parameter, handle);
  }
}
