package io.cuvette.sim;

import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongConsumer;

/** All that can be done in a stream of a device, with what it takes, by name. For one test. */
final class SimOperations {
  static final int BYTES = 512;
  private static final LaunchShape ONE =
      new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);
  static final SimulatedKernel NOTHING =
      SimulatedKernel.of("doesNothingAtAll", _ -> {}, SimulatedParameter.POINTER);

  private final SimulatedDriver driver;
  private final int device;
  private final Map<String, LongConsumer> works = new LinkedHashMap<>();
  private final Map<String, LongConsumer> questions = new LinkedHashMap<>();

  final long target;
  final long source;
  final MemorySegment managed;
  final MemorySegment pinned;

  /** Operations of a device, which are to work on what nothing else uses. */
  SimOperations(SimulatedDriver driver, int device) {
    this.driver = driver;
    this.device = device;
    this.target = driver.memory().memAlloc(device, BYTES);
    this.source = driver.memory().memAlloc(device, BYTES);
    this.managed = driver.memory().memAllocManaged(device, BYTES, 1);
    this.pinned = driver.memory().memHostAlloc(device, BYTES, 0);
    copies();
    fills();
    launches();
    memory();
    questions.put("query", s -> driver.streams().streamQuery(device, s));
    questions.put("synchronize", s -> driver.streams().streamSynchronize(device, s));
  }

  /** What queues work. */
  Map<String, LongConsumer> works() {
    return works;
  }

  /** What asks for the end of work. */
  Map<String, LongConsumer> questions() {
    return questions;
  }

  /** What there is, for a comparison. */
  static String state(SimulatedDriver driver, int device) {
    long pool = driver.pools().deviceGetDefaultMemPool(device);
    StringBuilder text = new StringBuilder(driver.report());
    for (int attribute = 5; attribute <= 8; attribute++) {
      text.append(driver.pools().memPoolGetAttribute(pool, attribute)).append(' ');
    }
    return text.append(driver.liveAllocations())
        .append(' ')
        .append(driver.liveBytes(device))
        .append(' ')
        .append(driver.liveHostBytes())
        .append(' ')
        .append(driver.devices().memGetInfo(device).freeBytes())
        .toString();
  }

  private void copies() {
    MemorySegment pageable = Arena.ofAuto().allocate(BYTES);
    var transfers = driver.transfers();
    works.put("copy", s -> transfers.memcpyAsync(device, target, source, BYTES, s));
    works.put("pinned in", s -> transfers.memcpyHtoDAsync(device, target, pinned, s));
    works.put("pinned out", s -> transfers.memcpyDtoHAsync(device, pinned, source, s));
    works.put("pageable in", s -> transfers.memcpyHtoDAsync(device, target, pageable, s));
    works.put(
        "peer copy",
        s -> transfers.memcpyPeerAsync(device, target, device, source, device, BYTES, s));
    BoxCopy box =
        new BoxCopy(new BoxCopy.Side(target, 64, 2), new BoxCopy.Side(source, 64, 2), 8, 2, 1);
    works.put("rows", s -> transfers.memcpy3DAsync(device, box, s));
  }

  private void fills() {
    var transfers = driver.transfers();
    works.put("fill of bytes", s -> transfers.memsetD8Async(device, target, (byte) 1, BYTES, s));
    works.put("fill of shorts", s -> transfers.memsetD16Async(device, target, (short) 1, 8, s));
    works.put("fill of ints", s -> transfers.memsetD32Async(device, target, 1, 8, s));
  }

  private void launches() {
    long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(NOTHING)));
    long kernel = driver.kernels().libraryGetKernel(library, NOTHING.name());
    LaunchParameters parameters =
        new LaunchParameters(Arena.ofAuto().allocate(8, 8), List.of(new KernelParameter(0, 8)));
    works.put("kernel", s -> driver.kernels().launchKernel(device, s, kernel, ONE, parameters));
    works.put("host function", s -> driver.streams().launchHostFunc(device, s, () -> {}));
    MemorySegment word = driver.memory().memHostAlloc(device, Integer.BYTES, 0).fill((byte) 0);
    works.put(
        "wait for a value",
        s -> driver.streams().streamWaitValue32(device, s, word.address(), 0, 0));
    long handle = driver.math().mathHandleCreate(MathLibrary.CUBLAS, device);
    MatrixProduct.Operand lies = new MatrixProduct.Operand(false, 2, 0);
    MatrixProduct product = new MatrixProduct(MatrixType.FLOAT, 2, 2, 2, lies, lies, lies, 1);
    works.put(
        "product",
        s -> {
          driver.math().mathHandleSetStream(MathLibrary.CUBLAS, device, handle, s);
          driver.math().gemm(device, handle, product, target, source, source + 64);
        });
  }

  private void memory() {
    works.put("allocation", s -> driver.ordered().memAllocAsync(device, BYTES, s));
    long pool = driver.pools().deviceGetDefaultMemPool(device);
    works.put(
        "allocation of a pool",
        s -> driver.ordered().memAllocFromPoolAsync(device, BYTES, pool, s));
  }

  /** What queues work, and cannot be captured. */
  Map<String, LongConsumer> uncapturable() {
    Map<String, LongConsumer> result = new LinkedHashMap<>();
    long queue = driver.streams().streamCreateWithPriority(device, 1, 0);
    long pooled = driver.ordered().memAllocAsync(device, BYTES, queue);
    long graph = driver.graphs().graphCreate();
    GraphNodeParams allocation = new GraphNodeParams.Allocation(device, BYTES, List.of(), 0);
    long address = driver.graphs().graphAddNode(device, graph, new long[0], allocation).address();
    long executable = driver.graphs().graphInstantiateWithParams(device, graph, 0, 0).executable();
    driver.graphs().graphLaunch(device, executable, queue);
    long event = driver.events().eventCreate(device, 0);
    driver.events().eventRecord(device, event, queue);
    driver.streams().streamSynchronize(device, queue);
    result.put("free", s -> driver.ordered().memFreeAsync(device, pooled, s));
    result.put("free of a graph", s -> driver.ordered().memFreeAsync(device, address, s));
    result.put("upload", s -> driver.graphs().graphUpload(device, executable, s));
    result.put("wait for an event", s -> driver.streams().streamWaitEvent(device, s, event));
    result.put(
        "prefetch",
        s -> driver.memory().memPrefetchAsync(device, managed.address(), BYTES, 1, device, s));
    long other = filled();
    result.put("launch of a graph", s -> driver.graphs().graphLaunch(device, other, s));
    return result;
  }

  private long filled() {
    long graph = driver.graphs().graphCreate();
    GraphNodeParams fill = new GraphNodeParams.Fill(target, 1, 1, BYTES);
    long _ = driver.graphs().graphAddNode(device, graph, new long[0], fill).node();
    return driver.graphs().graphInstantiateWithParams(device, graph, 0, 0).executable();
  }
}
