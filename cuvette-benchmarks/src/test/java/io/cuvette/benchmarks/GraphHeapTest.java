package io.cuvette.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaOptions;
import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.GraphCalls;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.instrument.ForwardingCaptures;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingGraphs;
import io.cuvette.instrument.ForwardingKernels;
import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;

/**
 * The Java heap that steps with graphs need on their way to the driver, which does nothing here.
 */
class GraphHeapTest {
  private static final int WARM_UP = 20_000;
  private static final int TIMES = 1_000;

  /** The arguments in an array, and two numbers in objects: what Java makes of the call. */
  private static final long CALL_OF_JAVA = 64;

  /** What the driver says of the capture, before and after. */
  private static final long ANSWERS = 64;

  /** What is kept of the graphs, and the result. */
  private static final long SETS_OF_TWO = 760;

  private static final ThreadMXBean HEAP = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  /** A driver whose launches and updates do nothing, and which says of a capture what it knows. */
  private static final class Idle extends ForwardingDriver {
    private final KernelCalls kernels;
    private final CaptureCalls captures;
    private final GraphCalls graphs;

    Idle(CudaDriver target) {
      super(target);
      kernels =
          new ForwardingKernels(target.kernels()) {
            @Override
            public void launchKernel(
                int device,
                long stream,
                long kernel,
                LaunchShape shape,
                LaunchParameters parameters) {}
          };
      captures =
          new ForwardingCaptures(target.captures()) {
            private CaptureInfo last = CaptureInfo.of(0, 0, 0);

            @Override
            public void streamBeginCapture(int device, long stream, int mode) {
              super.streamBeginCapture(device, stream, mode);
              last = super.streamGetCaptureInfo(device, stream);
            }

            @Override
            public long streamEndCapture(int device, long stream) {
              last = CaptureInfo.of(0, 0, 0);
              return super.streamEndCapture(device, stream);
            }

            @Override
            public int streamIsCapturing(int device, long stream) {
              return last.status();
            }

            @Override
            public CaptureInfo streamGetCaptureInfo(int device, long stream) {
              return CaptureInfo.of(last.status(), last.id(), last.graph());
            }
          };
      graphs =
          new ForwardingGraphs(target.graphs()) {
            @Override
            public void graphLaunch(int device, long executable, long stream) {}

            @Override
            public GraphUpdateResult graphExecUpdate(int device, long executable, long graph) {
              return new GraphUpdateResult(0, 0, 0);
            }
          };
    }

    @Override
    public String name() {
      return "idle";
    }

    @Override
    public KernelCalls kernels() {
      return kernels;
    }

    @Override
    public CaptureCalls captures() {
      return captures;
    }

    @Override
    public GraphCalls graphs() {
      return graphs;
    }
  }

  private static long bytesOf(Runnable step) {
    for (int i = 0; i < WARM_UP; i++) {
      step.run();
    }
    long before = HEAP.getCurrentThreadAllocatedBytes();
    for (int i = 0; i < TIMES; i++) {
      step.run();
    }
    return (HEAP.getCurrentThreadAllocatedBytes() - before) / TIMES;
  }

  @Test
  void launchNeedsNone_andWhatIsCapturedNoMoreThanTheCallAndTheAnswers() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(Idle::new));
        ManyLaunches launches = new ManyLaunches(cuda);
        CudaGraph graph = launches.capture(1);
        CudaGraph other = launches.capture(2);
        CudaGraphExec executable = graph.instantiate()) {
      assertThat(bytesOf(() -> executable.launch(launches.stream))).as("launch").isZero();
      boolean[] turns = new boolean[1];
      Runnable update =
          () -> {
            turns[0] = !turns[0];
            executable.update(turns[0] ? other : graph);
          };
      assertThat(bytesOf(update)).as("update").isLessThanOrEqualTo(SETS_OF_TWO);
      CudaGraph third =
          launches.stream.capture(() ->
              assertThat(bytesOf(() -> launches.launch(1)))
                  .as("captured launches")
                  .isLessThanOrEqualTo(ManyLaunches.COUNT * (CALL_OF_JAVA + ANSWERS)));
      third.close();
      assertThat(bytesOf(() -> launches.launch(1)))
          .as("launches after captures")
          .isLessThanOrEqualTo(ManyLaunches.COUNT * CALL_OF_JAVA);
    }
  }
}
