package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;
import io.cuvette.Scope;
import io.cuvette.testkit.CudaTest;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Timeout;

/** Thousands of virtual threads that allocate, copy and switch scopes. */
class VirtualThreadsTest {
  private static final int STREAMS = 8;

  @CudaTest(devices = 2, simulatedOnly = true)
  @Timeout(600)
  void tenThousandVirtualThreads_overTwoDevices(Cuda cuda) {
    run(cuda, 10_000);
  }

  @CudaTest
  @Timeout(600)
  void manyVirtualThreads_overTheDevicesThereAre(Cuda cuda) {
    run(cuda, 3_000);
  }

  private static void run(Cuda cuda, int count) {
    List<CudaStream> streams = new ArrayList<>();
    for (int i = 0; i < STREAMS; i++) {
      streams.add(cuda.device(i % cuda.deviceCount()).createStream());
    }
    AtomicInteger right = new AtomicInteger();
    Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
    try (ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor()) {
      for (int i = 0; i < count; i++) {
        int number = i;
        var _ =
            threads.submit(() -> {
              try {
                work(cuda, streams.get(number % STREAMS), number);
                right.incrementAndGet();
              } catch (Throwable e) {
                failures.add(e);
              }
            });
      }
    }
    assertThat(failures).isEmpty();
    assertThat(right).hasValue(count);
    streams.forEach(CudaStream::close);
    cuda.devices()
        .forEach(device -> assertThat(cuda.defaultMemoryPool().stats(device).usedBytes()).isZero());
    assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
  }

  /** One thread's work: its number goes to the device and back, on streams and with scopes. */
  private static void work(Cuda cuda, CudaStream stream, int number) {
    CudaDevice before = cuda.currentDevice();
    try (Scope _ = stream.use()) {
      assertThat(cuda.currentStream()).isEqualTo(stream);
      int bytes = 64 + 4 * (number % 1000);
      try (Buffer first = cuda.allocate(bytes);
          Buffer second = cuda.allocate(bytes);
          PinnedBuffer result = cuda.allocatePinned(bytes)) {
        assertThat(first.device()).isEqualTo(stream.device());
        first.fillInts(number, stream);
        Thread.yield();
        try (Scope _ = cuda.device(number % cuda.deviceCount()).use()) {
          second.copyFrom(first, stream);
        }
        result.copyFrom(second, stream);
        stream.synchronize();
        assertThat(result.segment().get(ValueLayout.JAVA_INT, bytes - 4L)).isEqualTo(number);
        assertThat(result.segment().get(ValueLayout.JAVA_INT, 0)).isEqualTo(number);
      }
    }
    assertThat(cuda.currentDevice()).isEqualTo(before);
  }
}
