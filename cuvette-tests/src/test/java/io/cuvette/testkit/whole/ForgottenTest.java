package io.cuvette.testkit.whole;

import static io.cuvette.testkit.support.Sizes.MIB;
import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Forgetting;
import io.cuvette.testkit.support.Kind;

/** What nobody closed and nobody reaches any more is taken back and reported. */
class ForgottenTest {

  @CudaTest(tidy = false)
  void forgottenStreamsAndEvents_areDestroyed(Subject subject) throws InterruptedException {
    Cuda cuda = subject.cuda();
    Forgetting.of(5, () -> cuda.device(0).createStream());
    Forgetting.of(5, () -> cuda.device(0).createEvent());
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 10)).isTrue();
    assertThat(subject.leaks()).hasSize(10).allMatch(leak -> leak.bytes() == 0);
    assertThat(subject.leaks()).filteredOn(leak -> leak.what().contains("stream")).hasSize(5);
    assertThat(subject.leaks()).filteredOn(leak -> leak.what().contains("event")).hasSize(5);
    if (subject.isSimulated()) {
      assertThat(subject.simulator().liveStreams()).isZero();
      assertThat(subject.simulator().liveEvents()).isZero();
    }
  }

  /** The buffer knows its stream, so the stream is not forgotten before the buffer. */
  @CudaTest(tidy = false)
  void streamThatABufferNeeds_isKept(Subject subject) throws InterruptedException {
    Cuda cuda = subject.cuda();
    var buffer = new Object[1];
    Forgetting.of(() -> buffer[0] = cuda.allocate(100, cuda.device(0).createStream()));
    Forgetting.collect();
    assertThat(cuda.leaksFound()).isZero();
    assertThat(((Buffer) buffer[0]).stream().isDone()).isTrue();
    ((Buffer) buffer[0]).close();
  }

  @CudaTest(tidy = false)
  void currentStreamOfAThread_isKept(Subject subject) throws InterruptedException {
    Cuda cuda = subject.cuda();
    useFresh(cuda);
    Forgetting.collect();
    assertThat(cuda.leaksFound()).isZero();
    cuda.currentStream().synchronize();
    CudaStream current = cuda.currentStream();
    cuda.setCurrentStream(cuda.device(0).nullStream());
    current.close();
  }

  private static void useFresh(Cuda cuda) {
    cuda.setCurrentStream(cuda.device(0).createStream());
  }

  /** Blocks of a stream that was forgotten together with its buffers come back as well. */
  @CudaTest(tidy = false)
  void buffersAndTheirStream_forgottenTogether_comeBack(Subject subject)
      throws InterruptedException {
    Cuda cuda = subject.cuda();
    Forgetting.of(() -> {
      CudaStream stream = cuda.device(0).createStream();
      var first = cuda.allocate(UNEVEN, stream);
      var second = cuda.allocate(UNEVEN, stream);
      first.fill((byte) 1, stream);
      second.copyFrom(first, stream);
      return second;
    });
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 3)).isTrue();
    cuda.device(0).synchronize();
    assertThat(cuda.defaultMemoryPool().usedBytes()).isZero();
    assertThat(cuda.defaultMemoryPool().freeAllBlocks()).isEqualTo(2048);
  }

  @CudaTest(tidy = false)
  void workStillQueued_keepsForgottenMemorySafe(Cuda cuda, CudaStream own, CudaStream other)
      throws InterruptedException {
    Forgetting.of(() -> {
      var buffer = cuda.allocate(MIB, own);
      for (int i = 0; i < 500; i++) {
        buffer.fill((byte) i, other);
      }
      return buffer;
    });
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 1)).isTrue();
    try (var next = cuda.allocate(MIB, own)) {
      next.fill((byte) 9, own);
      own.synchronize();
      other.synchronize();
    }
  }

  @CudaTest(tidy = false)
  void adoptedMemoryThatWasForgotten_isGivenBack(Subject subject) throws InterruptedException {
    Cuda cuda = subject.cuda();
    var driver = cuda.driver();
    long address = driver.memory().memAlloc(0, 512);
    Forgetting.of(
        () -> cuda.device(0).adopt(address, 512, () -> driver.memory().memFree(0, address)));
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 1)).isTrue();
    if (subject.isSimulated()) {
      assertThat(subject.simulator().liveAllocations()).isZero();
    }
  }

  @CudaTest(tidy = false)
  void forgottenPinnedBuffers_comeBackToTheirPool(Subject subject) throws InterruptedException {
    Cuda cuda = subject.cuda();
    Forgetting.of(3, () -> Kind.PINNED.allocate(cuda, 1000));
    assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 3)).isTrue();
    assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
    assertThat(cuda.defaultPinnedMemoryPool().freeBlocks()).isEqualTo(3);
  }
}
