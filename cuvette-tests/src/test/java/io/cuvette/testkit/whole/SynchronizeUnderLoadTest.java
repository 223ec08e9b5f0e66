package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import io.cuvette.testkit.CudaTest;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.atomic.AtomicBoolean;

/** Waiting for a device is waiting for what it has to do now, not for a moment without work. */
class SynchronizeUnderLoadTest {
  private static final int ROUNDS = 10;

  @CudaTest(tidy = false, sanitized = false)
  void synchronizeAndClose_end_whileThreadsQueueForEver(Cuda cuda) throws InterruptedException {
    try (Load load = Load.on(cuda)) {
      for (int i = 0; i < ROUNDS || load.rounds() == 0; i++) {
        cuda.device(0).synchronize();
      }
      cuda.close();
    }
  }

  @CudaTest(tidy = false, sanitized = false)
  void freesThatWaitForTheDevice_end_whileThreadsQueueForEver(Cuda cuda)
      throws InterruptedException {
    try (Load _ = Load.on(cuda)) {
      for (int i = 0; i < ROUNDS; i++) {
        MemoryResource.direct().allocate(100, cuda.device(0).nullStream()).close();
        cuda.directPinned().allocate(100).close();
      }
      cuda.close();
    }
  }

  @CudaTest(sanitized = false)
  void copyOfPageableMemory_ends_andHasItsPlace_whileAnotherThreadQueuesOnTheStream(
      Cuda cuda, CudaStream stream) throws InterruptedException {
    AtomicBoolean ended = new AtomicBoolean();
    try (Buffer buffer = cuda.allocate(1 << 20, stream);
        Buffer other = cuda.allocate(100, stream);
        Arena arena = Arena.ofConfined()) {
      MemorySegment pageable = arena.allocate(buffer.byteSize());
      Thread filling =
          Thread.ofPlatform()
              .start(() -> {
                while (!ended.get()) {
                  other.fill((byte) 1, stream);
                  var _ = stream.onComplete();
                }
              });
      try {
        for (byte i = 0; i < ROUNDS; i++) {
          buffer.fill(i, stream);
          cuda.driver().transfers().memcpyDtoHAsync(0, pageable, buffer.address(), stream.handle());
          assertThat(pageable.get(ValueLayout.JAVA_BYTE, 1 << 19)).isEqualTo(i);
        }
      } finally {
        ended.set(true);
        filling.join();
      }
      stream.synchronize();
    }
  }
}
