package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ForeignLoan;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedAllocator;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PoolOptions;
import io.cuvette.Scope;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Kind;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.ref.Reference;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** Cuda.close with everything open: all comes back, and nothing can be used any more. */
class CloseEverythingTest {
  private static final int QUEUED = 100;

  @CudaTest(tidy = false)
  void everythingLeftOpen_comesBack(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    CudaStream stream = cuda.device(0).createStream();
    MemoryPool over =
        new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(MemoryResource.managed()));
    MemoryPool onPool =
        new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(cuda.defaultMemoryPool()));
    PinnedMemoryPool pinnedPool = new PinnedMemoryPool(cuda);
    for (Kind kind : Kind.values()) {
      kind.allocate(cuda, 1000);
      kind.allocate(cuda, 2000).close();
    }
    over.allocate(100, stream);
    onPool.allocate(100, stream);
    Buffer used = cuda.allocate(4096, stream);
    PinnedBuffer pinned = pinnedPool.allocate(4096);
    pinned.segment().fill((byte) 1);
    for (int i = 0; i < QUEUED; i++) {
      used.copyFrom(pinned, stream);
      used.copyTo(pinned, cuda.device(0).nullStream());
    }
    CudaEvent event = stream.record();
    stream.onComplete();
    pinned.segment();
    Scope scope = stream.use();
    cuda.close();
    assertThat(cuda.isClosed()).isTrue();
    assertThat(used.isClosed() && pinned.isClosed() && stream.isClosed()).isTrue();
    if (subject.isSimulated()) {
      assertThat(subject.simulator(cuda).report()).isEmpty();
    }
    event.close();
    scope.close();
  }

  @CudaTest(tidy = false)
  void buffersStillPending_comeBackToo(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    CudaStream own = cuda.device(0).createStream();
    CudaStream other = cuda.device(0).createStream();
    Buffer buffer = cuda.allocate(4096, own);
    for (int i = 0; i < QUEUED; i++) {
      buffer.fill((byte) i, other);
    }
    buffer.close();
    own.close();
    cuda.close();
    if (subject.isSimulated()) {
      assertThat(subject.simulator(cuda).report()).isEmpty();
    }
  }

  @CudaTest(tidy = false)
  void secondClose_doesNothing_andClosesOfPartsAreHarmless(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    CudaStream stream = cuda.device(0).createStream();
    CudaEvent event = stream.record();
    Buffer buffer = cuda.allocate(10, stream);
    PinnedBuffer pinned = cuda.allocatePinned(10);
    MemoryPool pool = new MemoryPool(cuda);
    cuda.close();
    cuda.close();
    buffer.close();
    pinned.close();
    event.close();
    stream.close();
    pool.close();
    cuda.defaultMemoryPool().close();
    cuda.defaultPinnedMemoryPool().close();
  }

  @CudaTest(tidy = false)
  void viewsOfPinnedMemory_dieWithTheCuda(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    MemorySegment pooled = cuda.allocatePinned(64).segment();
    MemorySegment direct = cuda.directPinned().allocate(64).segment();
    MemorySegment managed = cuda.allocateManaged(64).segment();
    cuda.close();
    for (MemorySegment view : List.of(pooled, direct, managed)) {
      assertThatThrownBy(() -> view.get(ValueLayout.JAVA_BYTE, 0))
          .isInstanceOf(IllegalStateException.class);
    }
  }

  /** Code outside of Java is at them: they stay as long as that, and no longer. */
  @CudaTest(tidy = false)
  void viewsOfLentMemory_dieWithTheLastLoan(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    PinnedBuffer pooled = cuda.allocatePinned(64);
    PinnedBuffer direct = cuda.directPinned().allocate(64);
    ManagedBuffer managed = cuda.allocateManaged(64);
    List<ForeignLoan> loans =
        Stream.<Buffer>of(pooled, direct, managed).map(ForeignLoan::of).toList();
    List<MemorySegment> views = List.of(pooled.segment(), direct.segment(), managed.segment());
    cuda.close();
    assertThat(views).allMatch(view -> view.scope().isAlive());
    loans.forEach(ForeignLoan::giveBack);
    while (!loans.stream().allMatch(ForeignLoan::isOver)) {
      Thread.onSpinWait();
    }
    assertThat(views).noneMatch(view -> view.scope().isAlive());
  }

  @CudaTest(tidy = false)
  void everyMethodOfAClosedCuda_saysSo(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    CudaStream stream = cuda.device(0).createStream();
    CudaEvent event = cuda.device(0).createEvent();
    cuda.close();
    var device = cuda.device(0);
    List<ThrowingCallable> calls =
        List.of(
            () -> cuda.allocate(1),
            () -> cuda.allocate(0),
            () -> cuda.allocatePinned(1),
            () -> cuda.allocateManaged(1),
            () -> cuda.directPinned().allocate(1),
            () -> MemoryResource.direct().allocate(1, device.nullStream()),
            () -> cuda.wrap(0x1000, 1, null),
            () -> device.wrap(0x1000, 1, null),
            () -> device.wrap(0, 0, null),
            () -> cuda.deviceOf(0x1000),
            () -> cuda.deviceByPciBusId("0000:00:00.0"),
            cuda::driverVersion,
            cuda::runtimeVersion,
            () -> device.name(),
            () -> device.memoryInfo(),
            () -> device.attribute(1),
            () -> device.synchronize(),
            () -> device.createStream(),
            () -> device.createEvent(),
            () -> device.perThreadStream(),
            () -> device.use(),
            () -> device.canAccess(device),
            stream::synchronize,
            stream::isDone,
            () -> stream.record(),
            event::isDone,
            event::synchronize,
            () -> device.nullStream().synchronize(),
            () -> new MemoryPool(cuda),
            () -> new ElasticMemoryPool(cuda),
            () -> new PinnedMemoryResource(cuda),
            () -> device.adopt(0x1000, 1, () -> {}));
    for (ThrowingCallable call : calls) {
      assertThatThrownBy(call)
          .as("call %d", calls.indexOf(call))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("closed");
    }
  }

  @CudaTest(tidy = false)
  void codeOfTheUser_isNotCalled_onceTheCudaIsClosed(Subject subject) {
    AtomicInteger called = new AtomicInteger();
    Cuda cuda = subject.open(options -> options);
    PinnedAllocator direct = cuda.directPinned();
    cuda.setPinnedAllocator(bytes -> {
      called.incrementAndGet();
      return direct.allocate(bytes);
    });
    cuda.allocatePinned(64).close();
    cuda.close();
    for (long bytes : new long[] {0, 64}) {
      assertThatThrownBy(() -> cuda.allocatePinned(bytes))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("Cuda is closed");
    }
    assertThatThrownBy(() -> cuda.device(0).adopt(0x1000, 64, called::incrementAndGet))
        .isInstanceOf(IllegalStateException.class);
    assertThat(called).hasValue(1);
  }

  @CudaTest
  void statisticsOfAClosedCuda_areZeroes_orRefused(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    Buffer left = cuda.allocate(1000);
    cuda.close();
    Reference.reachabilityFence(left); // else the collector may find it first, and that is a leak
    try {
      assertThat(cuda.defaultMemoryPool().stats().heldBytes()).isZero();
    } catch (IllegalStateException e) {
      assertThat(e).hasMessageContaining("closed");
    }
  }
}
