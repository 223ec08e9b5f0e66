package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Timeout;

/** A segment that a C function of the user has while everything ends. */
@Timeout(60)
@SuppressWarnings("restricted")
class SegmentInUseTest {
  private static final int ELEMENTS = 2;

  private final CountDownLatch begun = new CountDownLatch(1);
  private final CountDownLatch released = new CountDownLatch(1);

  @CudaTest(tidy = false)
  void cudaWhoseSegmentIsInACall_staysOpen_andCanBeClosedLater(Subject subject) throws Exception {
    Cuda cuda = subject.open(options -> options);
    PinnedBuffer pinned = cuda.allocatePinned(ELEMENTS);
    PinnedBuffer other = cuda.allocatePinned(ELEMENTS);
    FutureTask<?> sorting = new FutureTask<>(() -> sort(pinned.segment()), null);
    Thread sorter = Thread.ofPlatform().start(sorting);
    begun.await();
    RuntimeException refusal = closing(cuda);
    boolean closed = cuda.isClosed() || pinned.isClosed() || other.isClosed();
    released.countDown();
    sorter.join();
    sorting.get();
    assertThat(refusal)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageMatching("Cuda cannot be closed: the segment of .* is in use");
    assertThat(closed).isFalse();
    other.fill((byte) 1);
    cuda.device(0).nullStream().addCallback(() -> {}).get(); // these go on as well
    cuda.close();
    assertThat(cuda.isClosed()).isTrue();
    assertThatThrownBy(() -> other.fill((byte) 1)).isInstanceOf(IllegalStateException.class);
  }

  @CudaTest(simulatedOnly = true, tidy = false)
  void refusalToClose_namesWhatFailedBefore(Subject subject) throws Exception {
    ScriptedDriver script = new ScriptedDriver();
    Cuda cuda = subject.open(options -> options.withDecorator(script::over));
    var resource = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    resource.allocate(ELEMENTS, cuda.device(0).createStream()).close(); // kept idle
    PinnedBuffer pinned = cuda.allocatePinned(ELEMENTS);
    FutureTask<?> sorting = new FutureTask<>(() -> sort(pinned.segment()), null);
    Thread sorter = Thread.ofPlatform().start(sorting);
    begun.await();
    script.fail("memFreeAsync", CudaStatus.NOT_PERMITTED, 1);
    RuntimeException refusal = closing(cuda);
    released.countDown();
    sorter.join();
    sorting.get();
    assertThat(refusal).isInstanceOf(IllegalStateException.class);
    assertThat(refusal.getSuppressed()).singleElement().isInstanceOf(CudaException.class);
    cuda.close();
  }

  /** Else a function of the user would write into memory of others. */
  @CudaTest
  void bufferWhoseSegmentIsInACall_staysOpen_andCanBeClosedLater(Subject subject) throws Exception {
    PinnedBuffer pinned = subject.cuda().directPinned().allocate(ELEMENTS);
    FutureTask<?> sorting = new FutureTask<>(() -> sort(pinned.segment()), null);
    Thread sorter = Thread.ofPlatform().start(sorting);
    begun.await();
    RuntimeException refusal = closing(pinned);
    boolean closed = pinned.isClosed();
    boolean freed = subject.isSimulated() && subject.simulator().liveHostBytes() == 0;
    released.countDown();
    sorter.join();
    sorting.get();
    assertThat(refusal)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageMatching("buffer of .* cannot be closed: its segment is in use");
    assertThat(closed || freed).isFalse();
    pinned.segment().fill((byte) 1);
    pinned.close();
    assertThat(pinned.isClosed()).isTrue();
    assertThatThrownBy(pinned::segment).isInstanceOf(IllegalStateException.class);
  }

  private static RuntimeException closing(AutoCloseable thing) throws Exception {
    try {
      thing.close();
      return new RuntimeException("it was closed");
    } catch (RuntimeException e) {
      return e;
    }
  }

  /** Calls back in the middle. */
  private void sort(MemorySegment bytes) {
    try (Arena arena = Arena.ofConfined()) {
      Linker linker = Linker.nativeLinker();
      MethodHandle compare =
          MethodHandles.lookup()
              .bind(
                  this,
                  "compare",
                  MethodType.methodType(int.class, MemorySegment.class, MemorySegment.class));
      MemorySegment callback =
          linker.upcallStub(
              compare,
              FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.ADDRESS),
              arena);
      linker
          .downcallHandle(
              linker.defaultLookup().findOrThrow("qsort"),
              FunctionDescriptor.ofVoid(
                  ValueLayout.ADDRESS,
                  ValueLayout.JAVA_LONG,
                  ValueLayout.JAVA_LONG,
                  ValueLayout.ADDRESS))
          .invokeExact(bytes, (long) ELEMENTS, 1L, callback);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  @SuppressWarnings("UnusedMethod") // by its handle
  private int compare(MemorySegment one, MemorySegment two) {
    begun.countDown();
    try {
      released.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return 0;
  }
}
