package io.cuvette.testkit;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.UserObject;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * What tests of graphs need: a stream, the kernels of {@code graphs.cu}, and some numbers on the
 * device and on the host. Confined to a test.
 */
final class GraphBench implements AutoCloseable {
  static final int COUNT = 64;
  static final long BYTES = 4L * COUNT;
  static final int RELAXED = 2;

  /** How often something that a thread of the driver does is looked for, a millisecond apart. */
  private static final int LOOKS = 5000;

  private static final LaunchShape SHAPE =
      new LaunchShape(2, 1, 1, COUNT / 2, 1, 1, 1, 1, 1, 0, false, false);
  private static final LaunchShape ONE_THREAD =
      new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);

  final CudaDriver driver;
  final GraphCalls graphs;
  final long stream;

  /** As many numbers on the device, all 0 at first. */
  final long numbers;

  private final MemorySegment host;
  private final long library;

  GraphBench(CudaDriver driver) {
    KernelTwins.register();
    this.driver = driver;
    this.graphs = driver.graphs();
    this.stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    this.library = driver.kernels().libraryLoadData(KernelTwins.code("graphs.ptx"));
    this.numbers = driver.memory().memAlloc(0, BYTES);
    this.host = driver.memory().memHostAlloc(0, BYTES, 0);
    set(0);
  }

  /** Gives all numbers one value. */
  void set(int value) {
    driver.transfers().memsetD32Async(0, numbers, value, COUNT, stream);
    sync();
  }

  void sync() {
    driver.streams().streamSynchronize(0, stream);
  }

  /** The numbers at an address; they are all the same. */
  int at(long address) {
    driver.transfers().memcpyDtoHAsync(0, host, address, stream);
    sync();
    assertThat(host.toArray(JAVA_INT)).containsOnly(host.get(JAVA_INT, 0));
    return host.get(JAVA_INT, 0);
  }

  /** The numbers, which are all the same. */
  int value() {
    return at(numbers);
  }

  /** Each number of some memory becomes itself · factor + more. */
  GraphNodeParams.Kernel affine(long address, int factor, int more) {
    List<KernelParameter> places =
        List.of(
            new KernelParameter(0, 8),
            new KernelParameter(8, 4),
            new KernelParameter(12, 4),
            new KernelParameter(16, 4));
    MemorySegment values = Arena.ofAuto().allocate(24, 8);
    values.set(JAVA_LONG, 0, address);
    values.set(JAVA_INT, 8, factor);
    values.set(JAVA_INT, 12, more);
    values.set(JAVA_INT, 16, COUNT);
    return new GraphNodeParams.Kernel(
        driver.kernels().libraryGetKernel(library, "affine"),
        SHAPE,
        new LaunchParameters(values, places));
  }

  GraphNodeParams.Kernel affine(int factor, int more) {
    return affine(numbers, factor, more);
  }

  /** A kernel that sets a condition to what it finds in some memory. */
  GraphNodeParams.Kernel conditional(String kernel, long condition, long address) {
    MemorySegment values = Arena.ofAuto().allocate(16, 8);
    values.set(JAVA_LONG, 0, condition);
    values.set(JAVA_LONG, 8, address);
    return new GraphNodeParams.Kernel(
        driver.kernels().libraryGetKernel(library, kernel),
        ONE_THREAD,
        new LaunchParameters(
            values, List.of(new KernelParameter(0, 8), new KernelParameter(8, 8))));
  }

  void launchKernel(GraphNodeParams.Kernel kernel) {
    driver.kernels().launchKernel(0, stream, kernel.kernel(), kernel.shape(), kernel.parameters());
  }

  GraphNodeParams.Fill fill(int value) {
    return new GraphNodeParams.Fill(numbers, value, Integer.BYTES, COUNT);
  }

  long add(long graph, GraphNodeParams params, long... dependencies) {
    AddedNode added = graphs.graphAddNode(0, graph, dependencies, params);
    assertThat(added.node()).isNotZero();
    return added.node();
  }

  long instantiate(long graph) {
    return instantiate(graph, 0);
  }

  long instantiate(long graph, long flags) {
    InstantiatedGraph made = graphs.graphInstantiateWithParams(0, graph, flags, stream);
    assertThat(made.result()).isZero();
    assertThat(made.executable()).isNotZero();
    return made.executable();
  }

  void launch(long executable) {
    graphs.graphLaunch(0, executable, stream);
  }

  /** Launches, and gives the numbers after that. */
  int run(long executable) {
    launch(executable);
    return value();
  }

  /** Launches what a graph is now once, and gives the numbers after that. */
  int runOnce(long graph) {
    long executable = instantiate(graph);
    int result = run(executable);
    graphs.graphExecDestroy(executable);
    return result;
  }

  /** Captures what a body does with the stream. */
  long capture(Runnable body) {
    driver.captures().streamBeginCapture(0, stream, RELAXED);
    body.run();
    return driver.captures().streamEndCapture(0, stream);
  }

  /** A thread of the driver destroys an object once nothing keeps it, a moment later. */
  static void awaitDestroyed(UserObject object) {
    for (int i = 0; i < LOOKS && !object.isDestroyed(); i++) {
      LockSupport.parkNanos(1_000_000);
    }
    assertThat(object.isDestroyed()).isTrue();
  }

  @Override
  public void close() {
    sync();
    driver.memory().memFree(0, numbers);
    driver.memory().memFreeHost(0, host.address());
    driver.kernels().libraryUnload(library);
    driver.streams().streamDestroy(0, stream);
  }
}
