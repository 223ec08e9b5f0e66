package io.cuvette.array;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.StreamOptions;
import io.cuvette.testkit.CudaTest;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Timeout;

/**
 * PyTorch has the stream, its capture, in PyTorch's own mode, and the graph; memory and copies in
 * the middle of it are of this library.
 */
class TorchCaptureTest {
  private static final int BYTES = 1 << 14;
  private static final int REPLAYS = 1_000;
  private static final int LOOK_EACH = 50;

  @CudaTest(sanitized = false)
  @Timeout(120)
  void memoryInACaptureOfTorch_isRightInEachReplay(Cuda cuda) {
    assumeTrue(!cuda.isSimulated(), "other libraries have no simulated device");
    Python python = Python.open("torch");
    assumeTrue(
        python.call("answer = torch.cuda.is_available()").equals("True"), "torch has no GPU");
    long handle =
        number(
            python,
            """
            stream = torch.cuda.Stream()
            torch.cuda.set_stream(stream)
            given = torch.zeros(%1$d, dtype=torch.uint8, device="cuda")
            taken = torch.zeros(%1$d, dtype=torch.uint8, device="cuda")
            graph = torch.cuda.CUDAGraph()
            torch.cuda.synchronize()
            answer = stream.cuda_stream
            """
                .formatted(BYTES));
    try (MemoryPool pool = new MemoryPool(cuda);
        CudaStream beside = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        CudaStream stream = cuda.device(0).wrapStream(handle, this)) {
      capture(cuda, python, pool, stream);
      for (int i = 1; i <= REPLAYS; i++) {
        python.call("given.fill_(%d); graph.replay()".formatted(i % 100));
        churn(pool, beside);
        if (i % LOOK_EACH == 0 || i == 1) {
          assertThat(python.call("answer = taken.unique().tolist()"))
              .as("replay %d", i)
              .isEqualTo("[%d]".formatted(2 * (i % 100) + 1));
        }
      }
      python.call(
          """
          torch.cuda.synchronize()
          graph.reset()
          del graph, doubled, given, taken
          torch.cuda.set_stream(torch.cuda.default_stream())
          """);
      while (pool.stats().graphBytes() != 0) {
        Thread.onSpinWait(); // the driver lets go of them soon
      }
    }
  }

  /** PyTorch doubles what it is given; that goes through memory of a pool; PyTorch adds 1. */
  private void capture(Cuda cuda, Python python, MemoryPool pool, CudaStream stream) {
    long doubled =
        number(
            python,
            """
            graph.capture_begin()
            doubled = given * 2
            answer = doubled.data_ptr()
            """);
    try (Buffer source = cuda.device(0).wrap(doubled, BYTES, this)) {
      Buffer last = source;
      List<Buffer> steps = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        Buffer next = pool.allocate(BYTES, stream);
        next.copyFrom(last, stream);
        last = next;
        steps.add(next);
      }
      source.fill((byte) 0, stream);
      source.copyFrom(last, stream);
      steps.forEach(Buffer::close);
    } finally {
      python.call("taken.copy_(doubled + 1); graph.capture_end()");
    }
    assertThat(pool.stats().graphBytes()).isGreaterThanOrEqualTo(BYTES);
  }

  /** Writes over what the pool hands out meanwhile. */
  private static void churn(MemoryPool pool, CudaStream stream) {
    for (int i = 0; i < 4; i++) {
      try (Buffer other = pool.allocate(BYTES, stream)) {
        other.fill((byte) -1, stream);
      }
    }
  }

  private static long number(Python python, String script) {
    return Long.parseLong(python.call(script));
  }
}
