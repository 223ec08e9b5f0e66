package io.cuvette.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.DriverProxy;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The calls of the driver that steps with graphs make: C has one for each step. */
class GraphCostTest {
  private static final int KERNELS = ManyLaunches.COUNT;

  private final Map<String, Integer> calls = new TreeMap<>();
  private final Thread thread = Thread.currentThread();
  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(this::counted));
  private final ManyLaunches launches = new ManyLaunches(cuda);

  @AfterEach
  void close() {
    launches.close();
    cuda.close();
  }

  private CudaDriver counted(CudaDriver driver) {
    return DriverProxy.of((method, arguments) -> {
      if (DriverProxy.isCall(method) && Thread.currentThread().equals(thread)) {
        calls.merge(method.getName(), 1, Integer::sum);
      }
      return DriverProxy.forward(driver, method, arguments);
    });
  }

  private Map<String, Integer> callsOf(Runnable step) {
    calls.clear();
    step.run();
    return Map.copyOf(calls);
  }

  @Test
  void capturedLaunch_isOneCall() {
    launches.capture(1).close();

    assertThat(callsOf(() -> launches.capture(1).close()))
        .isEqualTo(
            Map.of(
                "streamBeginCapture", 1,
                "launchKernel", KERNELS,
                "streamGetCaptureInfo", 2, // to begin and end
                "streamEndCapture", 1,
                "graphDestroy", 1));
  }

  @Test
  void launchInAStreamWhoseHandleIsGivenOut_asksForTheCaptureBeforeAndAfter() {
    long _ = launches.stream.handle();
    launches.capture(1).close();

    assertThat(callsOf(() -> launches.capture(1).close()))
        .containsEntry("launchKernel", KERNELS)
        .containsEntry("streamGetCaptureInfo", 2 * KERNELS + 2)
        .containsEntry("streamIsCapturing", 1); // to begin
    launches.launch(1);
    assertThat(callsOf(() -> launches.launch(1)))
        .isEqualTo(Map.of("launchKernel", KERNELS, "streamIsCapturing", 2 * KERNELS));
  }

  @Test
  void launchInAStreamThatWasCaptured_asksNothing() {
    launches.capture(1).close();

    assertThat(callsOf(() -> launches.launch(1))).isEqualTo(Map.of("launchKernel", KERNELS));
  }

  @Test
  void launchInAStreamThatNobodyCaptured_asksNothing() {
    launches.launch(1);

    assertThat(callsOf(() -> launches.launch(1)))
        .containsExactlyEntriesOf(Map.of("launchKernel", KERNELS));
  }

  @Test
  void capturedCopy_isOneCall() {
    try (Buffer x = cuda.allocate(1_024, launches.stream);
        Buffer y = cuda.allocate(1_024, launches.stream)) {
      launches
          .stream
          .capture(() -> {
            x.fill((byte) 1, launches.stream);
            assertThat(callsOf(() -> x.copyTo(y, launches.stream)))
                .isEqualTo(Map.of("memcpyAsync", 1));
          })
          .close();
    }
  }

  @Test
  void launchOfAGraph_isOneCall_unlessOthersHaveTheStream() {
    try (CudaGraph graph = launches.capture(1);
        CudaGraphExec executable = graph.instantiate()) {
      Runnable launch = () -> executable.launch(launches.stream);
      assertThat(callsOf(launch)).isEqualTo(Map.of("graphLaunch", 1));

      long _ = launches.stream.handle();
      assertThat(callsOf(launch)).isEqualTo(Map.of("graphLaunch", 1, "streamIsCapturing", 1));
    }
  }

  @Test
  void update_marksTheLaunchesBefore_ifThereWereAnySinceTheLast() {
    try (CudaGraph graph = launches.capture(1);
        CudaGraph other = launches.capture(2);
        CudaGraphExec executable = graph.instantiate()) {
      Map<String, Integer> one = Map.of("graphExecUpdate", 1);
      assertThat(callsOf(() -> executable.update(other))).isEqualTo(one);
      executable.launch(launches.stream);

      assertThat(callsOf(() -> executable.update(graph)))
          .containsEntry("graphExecUpdate", 1)
          .containsEntry("eventRecord", 1);
      assertThat(callsOf(() -> executable.update(other)))
          .containsEntry("graphExecUpdate", 1)
          .doesNotContainKeys("eventCreate", "eventRecord");
      assertThat(callsOf(() -> executable.update(graph))).isEqualTo(one);
    }
  }

  @Test
  void updatesBetweenLaunches_leaveNoEventsBehind() {
    try (CudaGraph graph = launches.capture(1);
        CudaGraph other = launches.capture(2);
        CudaGraphExec executable = graph.instantiate()) {
      Map<String, Integer> all =
          callsOf(() -> {
            for (int i = 0; i < 100; i++) {
              executable.launch(launches.stream);
              launches.stream.synchronize();
              executable.update(i % 2 == 0 ? other : graph);
            }
          });
      assertThat(all.get("eventCreate")).isGreaterThanOrEqualTo(100);
      assertThat(all.get("eventDestroy")).isGreaterThanOrEqualTo(all.get("eventCreate") - 2);
    }
  }

  @Test
  void instantiationAndEnds_areOneCallEach() {
    CudaGraph graph = launches.capture(1);
    CudaGraphExec[] made = new CudaGraphExec[1];

    assertThat(callsOf(() -> made[0] = graph.instantiate()))
        .isEqualTo(Map.of("graphInstantiateWithParams", 1));
    assertThat(callsOf(() -> made[0].close())).isEqualTo(Map.of("graphExecDestroy", 1));
    assertThat(callsOf(graph::close)).isEqualTo(Map.of("graphDestroy", 1));
  }
}
