package io.cuvette.testkit.capture;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.StreamHandle;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Graph;
import java.util.ArrayList;
import java.util.List;

/** Another library has the stream, its capture and the graph; memory and copies are of this one. */
class GraphOfOthersTest {
  private static final int BYTES = 1 << 14;
  private static final int LAUNCHES = 1000;
  private static final int RELAXED = 2;
  private static final int NON_BLOCKING = 1;

  @CudaTest
  void memoryOfACaptureOfOthers_isRightInEachReplay(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream beside) {
    CudaDriver driver = cuda.driver();
    long handle = driver.streams().streamCreateWithPriority(0, NON_BLOCKING, 0);
    try (AsyncMemoryPool ordered = new AsyncMemoryPool(cuda);
        PinnedBuffer input = cuda.allocatePinned(BYTES);
        Buffer output = pool.allocate(BYTES, beside);
        CudaStream stream = cuda.device(0).wrapStream(handle, this)) {
      beside.synchronize();
      driver.captures().streamBeginCapture(0, handle, RELAXED);
      queue(List.of(pool, ordered, MemoryResource.direct()), input, output, stream);
      long graph = driver.captures().streamEndCapture(0, handle);
      long executable =
          driver.graphs().graphInstantiateWithParams(0, graph, 0, handle).executable();
      driver.graphs().graphDestroy(graph);
      for (int i = 0; i < LAUNCHES; i++) {
        byte value = (byte) (i % 100 + 1);
        input.segment().fill(value);
        driver.graphs().graphLaunch(0, executable, handle);
        churn(List.of(pool, ordered), beside);
        driver.streams().streamSynchronize(0, handle);
        if (i % 50 == 0 || i == LAUNCHES - 1) {
          assertThat(Bytes.areAll(output, value)).as("launch %d", i).isTrue();
        }
      }
      driver.graphs().graphExecDestroy(executable);
      beside.synchronize();
    }
    driver.streams().streamDestroy(0, handle);
    Graph.awaitGone(pool, beside);
  }

  /** From the input through memory of all kinds, closed while it is captured, to the output. */
  private static void queue(
      List<MemoryResource> resources, PinnedBuffer input, Buffer output, CudaStream stream) {
    Buffer last = input;
    List<Buffer> all = new ArrayList<>();
    for (MemoryResource each : resources) {
      for (int i = 0; i < 3; i++) {
        Buffer next = each.allocate(BYTES, stream);
        next.copyFrom(last, stream);
        last = next;
        all.add(next);
      }
    }
    output.copyFrom(last, stream);
    all.forEach(Buffer::close);
  }

  /** Writes over what pools hand out meanwhile. */
  private static void churn(List<MemoryResource> pools, CudaStream stream) {
    for (MemoryResource each : pools) {
      List<Buffer> some = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        Buffer other = each.allocate(BYTES, stream);
        other.fill((byte) -1, stream);
        some.add(other);
      }
      some.forEach(Buffer::close);
    }
  }

  /** Its handle is the same for all, and nobody has asked for it here. */
  @CudaTest
  void captureOfAThreadsOwnStream_keepsWhatItUses(
      Cuda cuda, MemoryPool pool, @NonBlocking CudaStream beside) {
    CudaDriver driver = cuda.driver();
    CudaStream stream = cuda.device(0).perThreadStream();
    Buffer used = pool.allocate(BYTES, beside);
    beside.synchronize();
    driver.captures().streamBeginCapture(0, StreamHandle.PER_THREAD, RELAXED);
    assertThat(stream.isCapturing()).isTrue();
    used.fill((byte) 1, stream);
    long graph = driver.captures().streamEndCapture(0, StreamHandle.PER_THREAD);
    used.close();
    try (Buffer other = pool.allocate(BYTES, beside)) {
      assertThat(other.address()).as("a launch may write there").isNotEqualTo(used.address());
    }
    driver.graphs().graphDestroy(graph);
    Graph.awaitGone(pool, beside);
  }
}
