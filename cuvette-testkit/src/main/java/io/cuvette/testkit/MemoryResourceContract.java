package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import io.cuvette.Scope;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;

/** The contract of every source of device memory. A subclass makes the source. */
public abstract class MemoryResourceContract {
  private final List<MemoryResource> made = new ArrayList<>();

  /** For subclasses. */
  protected MemoryResourceContract() {}

  /**
   * Creates the resource; if it is an {@link AutoCloseable}, it is closed after the test.
   *
   * @param cuda the Cuda of the test
   * @return the resource
   */
  protected abstract MemoryResource create(Cuda cuda);

  private MemoryResource make(Cuda cuda) {
    MemoryResource resource = create(cuda);
    made.add(resource);
    return resource;
  }

  @AfterEach
  void closeWhatWasMade() throws Exception {
    for (MemoryResource resource : made) {
      if (resource instanceof AutoCloseable closeable) {
        closeable.close();
      }
    }
  }

  /**
   * A buffer has the size, device and stream it was allocated with.
   *
   * @param cuda the Cuda under test
   */
  @CudaTest
  public void buffer_hasTheSizeDeviceAndStreamAskedFor(Cuda cuda) {
    MemoryResource resource = make(cuda);
    try (CudaStream stream = cuda.device(0).createStream()) {
      for (long bytes : new long[] {1, 511, 512, 513, 100_000}) {
        try (Buffer buffer = resource.allocate(bytes, stream)) {
          assertThat(buffer.byteSize()).isEqualTo(bytes);
          assertThat(buffer.blockBytes()).isGreaterThanOrEqualTo(bytes);
          assertThat(buffer.device()).isEqualTo(cuda.device(0));
          assertThat(buffer.stream()).isEqualTo(stream);
          assertThat(buffer.address() % 256).isZero();
        }
      }
    }
  }

  /**
   * Buffers do not overlap.
   *
   * @param cuda the Cuda under test
   */
  @CudaTest
  public void buffers_keepTheirBytesApart(Cuda cuda) {
    MemoryResource resource = make(cuda);
    CudaStream stream = cuda.currentStream();
    List<Buffer> buffers = new ArrayList<>();
    Set<Long> addresses = new HashSet<>();
    for (int i = 0; i < 20; i++) {
      Buffer buffer = resource.allocate(700, stream);
      assertThat(addresses.add(buffer.address())).isTrue();
      buffer.fill((byte) i);
      buffers.add(buffer);
    }
    for (int i = 0; i < 20; i++) {
      byte[] content = new byte[700];
      buffers.get(i).copyTo(MemorySegment.ofArray(content));
      byte[] expected = new byte[700];
      Arrays.fill(expected, (byte) i);
      assertThat(content).isEqualTo(expected);
    }
    buffers.forEach(Buffer::close);
  }

  /**
   * 0 bytes are a buffer without memory.
   *
   * @param cuda the Cuda under test
   */
  @CudaTest
  public void noBytes_areABufferWithoutMemory(Cuda cuda) {
    try (Buffer buffer = make(cuda).allocate(0, cuda.currentStream())) {
      assertThat(buffer.byteSize()).isZero();
      assertThat(buffer.address()).isZero();
    }
  }

  /**
   * A negative size is refused.
   *
   * @param cuda the Cuda under test
   */
  @CudaTest
  public void negativeSize_isRefused(Cuda cuda) {
    MemoryResource resource = make(cuda);
    for (long bytes : new long[] {-1, Long.MIN_VALUE}) {
      assertThatThrownBy(() -> resource.allocate(bytes, cuda.currentStream()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("bytes: " + bytes);
    }
  }

  /**
   * Allocating more than there is fails, and the resource stays usable.
   *
   * @param cuda the Cuda under test
   */
  @CudaTest
  public void moreThanThereIs_isOutOfMemory_andTheResourceGoesOn(Cuda cuda) {
    MemoryResource resource = make(cuda);
    assertThatThrownBy(() -> resource.allocate(1L << 50, cuda.currentStream()))
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY));
    resource.allocate(1000, cuda.currentStream()).close();
  }

  /**
   * Allocating on a closed stream is refused.
   *
   * @param cuda the Cuda under test
   */
  @CudaTest
  public void closedStream_isRefused(Cuda cuda) {
    MemoryResource resource = make(cuda);
    CudaStream closed = cuda.device(0).createStream();
    closed.close();
    assertThatThrownBy(() -> resource.allocate(10, closed))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed");
  }

  /**
   * Closing a buffer twice has the effect of closing it once.
   *
   * @param cuda the Cuda under test
   */
  @CudaTest
  public void closedBuffer_isClosedOnce(Cuda cuda) {
    Buffer buffer = make(cuda).allocate(1000, cuda.currentStream());
    buffer.close();
    buffer.close();
    assertThat(buffer.isClosed()).isTrue();
  }

  /**
   * The resource can be the current allocator.
   *
   * @param cuda the Cuda under test
   */
  @CudaTest
  public void resource_canBeTheCurrentAllocator(Cuda cuda) {
    try (Scope _ = cuda.useAllocator(make(cuda));
        Buffer buffer = cuda.allocate(1000)) {
      buffer.fill((byte) 1);
      assertThat(cuda.defaultMemoryPool().totalBytes()).isZero();
    }
  }

  /**
   * Memory is on the stream's device, whichever device is current.
   *
   * @param cuda the Cuda under test
   */
  @CudaTest(devices = 2)
  public void memory_isOfTheStreamsDevice_whateverIsCurrent(Cuda cuda) {
    MemoryResource resource = make(cuda);
    try (Buffer buffer = resource.allocate(1000, cuda.device(1).nullStream())) {
      assertThat(buffer.device()).isEqualTo(cuda.device(1));
      buffer.fill((byte) 1);
    }
  }

  /**
   * Closing the Cuda frees buffers that are still open.
   *
   * @param subject the device under test
   */
  @CudaTest(tidy = false)
  public void buffersLeftOpen_areTakenBackByTheCuda(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    Buffer buffer = make(cuda).allocate(1000, cuda.currentStream());
    cuda.close();
    assertThat(buffer.isClosed()).isTrue();
    buffer.close();
  }
}
