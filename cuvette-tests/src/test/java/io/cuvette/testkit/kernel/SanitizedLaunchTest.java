package io.cuvette.testkit.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.instrument.SanitizerReport;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What the sanitizer reports of launches: their arguments are uses. */
class SanitizedLaunchTest {
  private static final LaunchShape SHAPE =
      new LaunchShape(1, 1, 1, 32, 1, 1, 1, 1, 1, 0, false, false);
  private static final int COUNT = 32;
  private static final int SEEDS = 100;
  private static final long BYTES = COUNT * 4L;

  private final List<SanitizerReport> reports = new ArrayList<>();
  private CudaDriver driver;
  private long library;
  private long scale;
  private long first;
  private long second;
  private long data;

  @BeforeEach
  void open() {
    open(SimulatedDriver.open(SimulatedOptions.DEFAULTS));
  }

  private void open(CudaDriver below) {
    driver = SanitizerDriver.reporting(below, reports::add);
    library = driver.kernels().libraryLoadData(TestKernels.code("launches.ptx"));
    scale = driver.kernels().libraryGetKernel(library, "scale");
    first = driver.streams().streamCreateWithPriority(0, 1, 0);
    second = driver.streams().streamCreateWithPriority(0, 1, 0);
    data = driver.memory().memAlloc(0, BYTES);
    driver.transfers().memsetD8Async(0, data, (byte) 0, BYTES, first);
    driver.streams().streamSynchronize(0, first);
  }

  @AfterEach
  void close() {
    driver.close();
  }

  private void launch(long stream, long address) {
    driver.kernels().launchKernel(0, stream, scale, SHAPE, parameters(address));
  }

  private GraphNodeParams kernel(long address) {
    return new GraphNodeParams.Kernel(scale, SHAPE, parameters(address));
  }

  private LaunchParameters parameters(long address) {
    MemorySegment values = Arena.ofAuto().allocate(16, 8);
    values.set(ValueLayout.JAVA_LONG, 0, address);
    values.set(ValueLayout.JAVA_FLOAT, 8, 1f);
    values.set(ValueLayout.JAVA_INT, 12, COUNT);
    List<KernelParameter> places =
        List.of(
            driver.kernels().kernelGetParamInfo(scale, 0),
            driver.kernels().kernelGetParamInfo(scale, 1),
            driver.kernels().kernelGetParamInfo(scale, 2));
    return new LaunchParameters(values, places);
  }

  private void reported(Misuse misuse, String text) {
    assertThat(reports).hasSize(1);
    assertThat(reports.getFirst().misuse()).isEqualTo(misuse);
    assertThat(reports.getFirst().toString()).contains(text);
    reports.clear();
  }

  @Test
  void freedMemory_isNoArgument() {
    driver.memory().memFree(0, data);
    assertThatCode(() -> launch(first, data)).doesNotThrowAnyException();
    reported(Misuse.USE_AFTER_FREE, "launchKernel");
  }

  private void synchronize() {
    driver.streams().streamSynchronize(0, first);
    driver.streams().streamSynchronize(0, second);
  }

  @Test
  void unorderedUseOfAnotherStream_isARace_inBothDirections() {
    driver.transfers().memsetD8Async(0, data, (byte) 0, BYTES, first);
    launch(second, data);
    synchronize();
    reported(Misuse.RACE, "launchKernel");
    launch(first, data);
    driver.transfers().memsetD8Async(0, data + BYTES - 1, (byte) 0, 1, second);
    synchronize();
    reported(Misuse.RACE, "memsetD8Async");
  }

  @Test
  void orderedUses_areFine() {
    launch(first, data);
    driver.streams().streamSynchronize(0, first);
    launch(second, data);
    driver.streams().streamSynchronize(0, second);
    driver.transfers().memsetD8Async(0, data, (byte) 0, BYTES, second);
    assertThat(reports).isEmpty();
  }

  @Test
  void whatAKernelMayHaveWritten_canBeRead() {
    long fresh = driver.memory().memAlloc(0, BYTES);
    launch(first, fresh);
    driver.transfers().memcpyAsync(0, data, fresh, BYTES, first);
    driver.transfers().memcpyDtoHAsync(0, Arena.ofAuto().allocate(BYTES), data, first);
    driver.streams().streamSynchronize(0, first);
    assertThat(reports).isEmpty();
    driver.memory().memFree(0, fresh);
  }

  private interface Launches {
    void queue(CudaDriver over, long kernel, long one, long other, long memory);
  }

  /** What is reported under each of the seeds, when both streams were waited for. */
  private static List<SanitizerReport> underSeeds(String name, Launches launches) {
    List<SanitizerReport> all = new ArrayList<>();
    for (int seed = 0; seed < SEEDS; seed++) {
      CudaDriver over =
          SanitizerDriver.reporting(
              SimulatedDriver.open(SimulatedOptions.DEFAULTS.withSeed(seed)), all::add);
      try (over) {
        long code = over.kernels().libraryLoadData(TestKernels.code("launches.ptx"));
        long kernel = over.kernels().libraryGetKernel(code, name);
        long one = over.streams().streamCreateWithPriority(0, 1, 0);
        long other = over.streams().streamCreateWithPriority(0, 1, 0);
        long memory = over.memory().memAlloc(0, 16 * BYTES);
        over.transfers().memsetD8Async(0, memory, (byte) 0, 16 * BYTES, one);
        over.streams().streamSynchronize(0, one);
        launches.queue(over, kernel, one, other, memory);
        over.streams().streamSynchronize(0, one);
        over.streams().streamSynchronize(0, other);
        over.memory().memFree(0, memory);
        over.streams().streamDestroy(0, one);
        over.streams().streamDestroy(0, other);
        over.kernels().libraryUnload(code);
      }
    }
    return all;
  }

  private static void launch(CudaDriver over, long kernel, long stream, Object... arguments) {
    MemorySegment values = Arena.ofAuto().allocate(8L * arguments.length, 8);
    List<KernelParameter> places = new ArrayList<>();
    for (int i = 0; i < arguments.length; i++) {
      KernelParameter place = over.kernels().kernelGetParamInfo(kernel, i);
      switch (arguments[i]) {
        case Long number -> values.set(ValueLayout.JAVA_LONG, place.offset(), number);
        case Float number -> values.set(ValueLayout.JAVA_FLOAT, place.offset(), number);
        case Integer number -> values.set(ValueLayout.JAVA_INT, place.offset(), number);
        default -> throw new IllegalArgumentException(arguments[i].toString());
      }
      places.add(place);
    }
    over.kernels().launchKernel(0, stream, kernel, SHAPE, new LaunchParameters(values, places));
  }

  @Test
  void unorderedLaunchesThatWriteTheSame_areARace_underEverySeed() {
    List<SanitizerReport> found =
        underSeeds(
            "scale",
            (over, scale, one, other, memory) -> {
              launch(over, scale, one, memory, 2f, COUNT);
              launch(over, scale, other, memory + BYTES / 2, 2f, COUNT);
            });
    assertThat(found)
        .hasSize(SEEDS)
        .allSatisfy(report -> {
          assertThat(report.misuse()).isEqualTo(Misuse.RACE);
          assertThat(report.toString())
              .contains("launchKernel", "by the kernel is not ordered after the")
              .contains(" by a kernel on stream");
        });
  }

  @Test
  void launchThatReadsWhatAnUnorderedOneWrites_isARace_underEverySeed() {
    List<SanitizerReport> found =
        underSeeds(
            "addVectors",
            (over, add, one, other, memory) -> {
              launch(over, add, one, memory, memory, memory + BYTES, COUNT);
              launch(over, add, other, memory + BYTES, memory, memory + 2 * BYTES, COUNT);
            });
    assertThat(found).hasSize(SEEDS);
    assertThat(found).allMatch(report -> report.misuse() == Misuse.RACE);
  }

  @Test
  void launchesThatAreOrdered_orTouchOtherBytes_orReadTheSame_areFine_underEverySeed() {
    assertThat(
            underSeeds(
                "addVectors",
                (over, add, one, other, memory) -> {
                  launch(over, add, one, memory, memory, memory + BYTES, COUNT);
                  launch(over, add, other, memory, memory, memory + 2 * BYTES, COUNT);
                  over.streams().streamSynchronize(0, one);
                  launch(over, add, other, memory + BYTES, memory, memory + 3 * BYTES, COUNT);
                  long event = over.events().eventCreate(0, 2);
                  over.events().eventRecord(0, event, other);
                  over.streams().streamWaitEvent(0, one, event);
                  launch(over, add, one, memory + 3 * BYTES, memory, memory + BYTES, COUNT);
                  over.events().eventDestroy(0, event);
                }))
        .isEmpty();
  }

  @Test
  void launchesThatChangeTheSameAtomically_areFine_underEverySeed() {
    assertThat(
            underSeeds(
                "countBytes",
                (over, count, one, other, memory) -> {
                  launch(over, count, one, memory, memory + BYTES, COUNT);
                  launch(over, count, other, memory, memory + BYTES, COUNT);
                }))
        .isEmpty();
  }

  @Test
  void launchesBesideCopies_ofOtherBytesOfTheirBlock_orThatBothRead_areFine_underEverySeed() {
    assertThat(
            underSeeds(
                "addVectors",
                (over, add, one, other, memory) -> {
                  over.transfers().memcpyAsync(0, memory + 4 * BYTES, memory, BYTES, other);
                  launch(over, add, one, memory, memory, memory + BYTES, COUNT);
                  over.transfers().memcpyAsync(0, memory + 5 * BYTES, memory, BYTES, other);
                  over.transfers().memsetD8Async(0, memory + 2 * BYTES, (byte) 1, BYTES, other);
                }))
        .isEmpty();
  }

  @Test
  void copyThatReadsWhatALaunchChangesAtomically_isARace_underEverySeed() {
    List<SanitizerReport> found =
        underSeeds(
            "countBytes",
            (over, count, one, other, memory) -> {
              launch(over, count, one, memory, memory + BYTES, COUNT);
              over.transfers().memcpyAsync(0, memory + 15 * BYTES, memory + BYTES, 4, other);
            });
    assertThat(found)
        .hasSize(SEEDS)
        .allSatisfy(report -> {
          assertThat(report.misuse()).isEqualTo(Misuse.RACE);
          assertThat(report.toString())
              .contains("memcpyAsync", "the read of 0x", "after the atomic update by a kernel on");
        });
  }

  @Test
  void launchBehindThirtyOneOthers_isHeldAgainstACopy_underEverySeed() {
    List<SanitizerReport> found =
        underSeeds(
            "scale",
            (over, scale, one, other, memory) -> {
              long event = over.events().eventCreate(0, 2);
              launch(over, scale, one, memory + 15 * BYTES, 2f, COUNT);
              for (int i = 0; i < 31; i++) {
                launch(over, scale, one, memory, 2f, COUNT);
                over.events().eventRecord(0, event, one);
              }
              over.transfers().memsetD8Async(0, memory + 15 * BYTES, (byte) 1, 4, other);
              over.events().eventDestroy(0, event);
            });
    assertThat(found).hasSize(SEEDS).allMatch(report -> report.misuse() == Misuse.RACE);
  }

  /** What is reported if a graph scales the first bytes while others are filled, by seed. */
  private static List<SanitizerReport> besideGraphs(long filled) {
    return underSeeds(
        "scale",
        (over, scale, one, other, memory) -> {
          over.captures().streamBeginCapture(0, one, 0);
          launch(over, scale, one, memory, 2f, COUNT);
          long graph = over.captures().streamEndCapture(0, one);
          long outer = over.graphs().graphCreate();
          over.graphs().graphAddNode(0, outer, new long[0], new GraphNodeParams.Child(graph));
          long executable = over.graphs().graphInstantiateWithParams(0, outer, 0, 0).executable();
          over.graphs().graphLaunch(0, executable, one);
          over.transfers().memsetD8Async(0, memory + filled, (byte) 1, BYTES, other);
          over.graphs().graphExecDestroy(executable);
          over.graphs().graphDestroy(outer);
          over.graphs().graphDestroy(graph);
        });
  }

  @Test
  void launchOfAGraph_usesTheBytesThatItsKernelsTouch() {
    assertThat(besideGraphs(BYTES)).isEmpty();
    assertThat(besideGraphs(BYTES - 1))
        .hasSize(SEEDS)
        .allMatch(report -> report.misuse() == Misuse.RACE);
  }

  /** What is reported if the host does something while page-locked vectors are added, by seed. */
  private static List<SanitizerReport> besideHost(
      boolean inGraph, long offset, long bytes, boolean writes) {
    return underSeeds(
        "addVectors",
        (over, add, one, _, _) -> {
          MemorySegment pinned = over.memory().memHostAlloc(0, 8 * BYTES, 0);
          long address = pinned.address();
          over.transfers().memsetD8Async(0, address, (byte) 0, 8 * BYTES, one);
          over.streams().streamSynchronize(0, one);
          long graph = 0;
          if (inGraph) {
            over.captures().streamBeginCapture(0, one, 0);
          }
          launch(over, add, one, address, address + 2 * BYTES, address + 4 * BYTES, COUNT);
          if (inGraph) {
            graph = over.captures().streamEndCapture(0, one);
            long executable = over.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
            over.graphs().graphLaunch(0, executable, one);
            over.graphs().graphExecDestroy(executable);
            over.graphs().graphDestroy(graph);
          }
          for (int i = 0; i < 2; i++) {
            over.blockListener().hostAccess(address + offset, bytes, writes);
          }
          over.streams().streamSynchronize(0, one);
          over.blockListener().hostAccess(address, 8 * BYTES, true);
          over.memory().memFreeHost(0, address);
        });
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void host_mayUseWhatALaunchDoesNotTouch_andReadWhatItReads(boolean inGraph) {
    assertThat(besideHost(inGraph, BYTES, BYTES, true)).isEmpty();
    assertThat(besideHost(inGraph, 3 * BYTES, BYTES, true)).isEmpty();
    assertThat(besideHost(inGraph, 5 * BYTES, 3 * BYTES, true)).isEmpty();
    assertThat(besideHost(inGraph, 0, 4 * BYTES, false)).isEmpty();
    assertThat(besideHost(inGraph, 5 * BYTES, 3 * BYTES, false)).isEmpty();
  }

  /** Once for all that the host does with a range. */
  @ParameterizedTest
  @CsvSource({
    "true, 3, 2, true, write, write",
    "false, 3, 2, true, write, write",
    "true, 0, 1, true, write, read",
    "false, 2, 2, true, write, read",
    "true, 4, 1, false, read, write",
    "false, 3, 5, false, read, write"
  })
  void hostThatUsesWhatALaunchTouches_isNamed_underEverySeed(
      boolean inGraph, int from, int count, boolean writes, String byHost, String byKernel) {
    assertThat(besideHost(inGraph, from * BYTES, count * BYTES, writes))
        .hasSize(SEEDS)
        .allSatisfy(report -> {
          assertThat(report.misuse()).isEqualTo(Misuse.HOST_RACE);
          assertThat(report.message())
              .contains(writes ? "copyFrom(" : "copyTo(")
              .contains("the " + byHost + " of 0x")
              .contains(" by the host may come before the " + byKernel + " by a kernel on stream ")
              .contains(" is done (block 0x");
          assertThat(report.sites().getLast().call()).startsWith("memHostAlloc(");
          assertThat(report.sites().getFirst().getStackTrace())
              .extracting(StackTraceElement::getMethodName)
              .contains("besideHost");
        });
  }

  @Test
  void nodeThatDoesSomethingElse_usesTheBytesThatThisTouches() {
    long graph = driver.graphs().graphCreate();
    long fresh = driver.memory().memAlloc(0, 4 * BYTES);
    driver.transfers().memsetD8Async(0, fresh, (byte) 0, 4 * BYTES, first);
    GraphNodeParams[] kernels = {kernel(fresh), kernel(fresh + BYTES), kernel(fresh + 2 * BYTES)};
    long node = driver.graphs().graphAddNode(0, graph, new long[0], kernels[0]).node();
    driver.graphs().graphNodeSetParams(0, node, kernels[1]);
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    synchronize();
    driver.graphs().graphLaunch(0, executable, first);
    driver.transfers().memsetD8Async(0, fresh, (byte) 1, BYTES, second);
    synchronize();
    assertThat(reports).isEmpty();
    driver.graphs().graphExecNodeSetParams(0, executable, node, kernels[2]);
    driver.graphs().graphLaunch(0, executable, first);
    driver.transfers().memsetD8Async(0, fresh, (byte) 1, 2 * BYTES, second);
    synchronize();
    assertThat(reports).isEmpty();
    driver.graphs().graphLaunch(0, executable, first);
    driver.transfers().memsetD8Async(0, fresh + 2 * BYTES, (byte) 1, BYTES, second);
    synchronize();
    reported(Misuse.RACE, "memsetD8Async");
    driver.graphs().graphExecDestroy(executable);
    driver.graphs().graphDestroy(graph);
    driver.memory().memFree(0, fresh);
  }

  /** An executable whose only node got its kernel in one of three ways. */
  private long executable(String way, long address) {
    long graph = driver.graphs().graphCreate();
    GraphNodeParams before = kernel(way.equals("added") ? address : data);
    long node = driver.graphs().graphAddNode(0, graph, new long[0], before).node();
    if (way.equals("set")) {
      driver.graphs().graphNodeSetParams(0, node, kernel(address));
    }
    long executable = driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable();
    if (way.equals("changed")) {
      driver.graphs().graphExecNodeSetParams(0, executable, node, kernel(address));
    }
    driver.graphs().graphDestroy(graph);
    return executable;
  }

  /** Its argument alone would be a use of all that is behind it. */
  @ParameterizedTest
  @ValueSource(strings = {"added", "set", "changed"})
  void kernelOfANode_usesNoMoreThanItTouches_howeverTheNodeGotIt(String way) {
    long fresh = driver.memory().memAlloc(0, 4 * BYTES);
    driver.transfers().memsetD8Async(0, fresh, (byte) 0, BYTES, first);
    driver.transfers().memsetD8Async(0, fresh + 2 * BYTES, (byte) 0, 2 * BYTES, first);
    long executable = executable(way, fresh + BYTES);
    synchronize();
    driver.graphs().graphLaunch(0, executable, first);
    driver.transfers().memsetD8Async(0, fresh + 2 * BYTES, (byte) 1, BYTES, second);
    synchronize();
    driver.transfers().memcpyDtoHAsync(0, Arena.ofAuto().allocate(4 * BYTES), fresh, first);
    driver.streams().streamSynchronize(0, first);
    assertThat(reports).as("nor did it leave anything unwritten").isEmpty();
    driver.transfers().memsetD8Async(0, fresh + 2 * BYTES, (byte) 2, BYTES, second);
    driver.graphs().graphLaunch(0, executable, first);
    synchronize();
    assertThat(reports).as("nor behind what uses other bytes").isEmpty();
    driver.graphs().graphLaunch(0, executable, first);
    driver.transfers().memsetD8Async(0, fresh + 2 * BYTES - 1, (byte) 1, BYTES, second);
    synchronize();
    reported(Misuse.RACE, "memsetD8Async");
    driver.graphs().graphExecDestroy(executable);
    driver.memory().memFree(0, fresh);
  }

  /** A GPU tells nobody what its kernels touch: that their arguments are uses is known at once. */
  @ParameterizedTest
  @ValueSource(strings = {"added", "set", "changed"})
  void launch_isARaceAtOnce_whereTheDriverTellsNothing(String way) {
    driver.close();
    reports.clear(); // what was left open
    open(
        new ForwardingDriver(SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
          @Override
          public boolean isSimulated() {
            return false;
          }
        });
    driver.transfers().memsetD8Async(0, data, (byte) 0, BYTES, second);
    launch(first, data);
    reported(Misuse.RACE, "launchKernel");
    synchronize();
    MemorySegment pinned = driver.memory().memHostAlloc(0, 2 * BYTES, 0);
    launch(first, pinned.address());
    driver.blockListener().hostAccess(pinned.address() + BYTES, BYTES, false);
    reported(Misuse.HOST_RACE, "copyTo");
    synchronize();
    driver.memory().memFreeHost(0, pinned.address());
    long fresh = driver.memory().memAlloc(0, BYTES);
    driver.transfers().memsetD8Async(0, fresh, (byte) 0, BYTES, second);
    long executable = executable(way, fresh);
    driver.graphs().graphLaunch(0, executable, first);
    reported(Misuse.RACE, "graphLaunch");
    synchronize();
    driver.graphs().graphExecDestroy(executable);
    driver.memory().memFree(0, fresh);
  }
}
