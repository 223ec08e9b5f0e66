package io.cuvette.testkit.whole;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ManagedBuffer;
import io.cuvette.ManagedMemoryResource;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PoolOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Forgetting;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.lang.ref.PhantomReference;
import java.lang.ref.ReferenceQueue;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** Closing a Cuda ends everything, whatever is open, forgotten or closed at the same time. */
class CloseTest {
  private static final Set<Thread.State> NOT_WAITING =
      Set.of(Thread.State.NEW, Thread.State.RUNNABLE, Thread.State.BLOCKED);

  @Test
  void segmentsOfAllKinds_endWithTheCuda() {
    Cuda cuda = Cuda.open(CudaOptions.simulated());
    MemoryPool managed =
        new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(MemoryResource.managed()));
    List<MemorySegment> views =
        List.of(
            cuda.allocatePinned(100).segment(),
            cuda.directPinned().allocate(100).segment(),
            cuda.allocateManaged(100).segment(),
            ((ManagedBuffer) managed.allocate(100)).segment(),
            new PinnedMemoryResource(cuda).allocate(100).segment(),
            new ManagedMemoryResource(cuda).allocate(100).segment());
    cuda.close();
    assertThat(views).noneMatch(view -> view.scope().isAlive());
  }

  @Test
  void openingThatEndsWithAnError_closesTheDriver() {
    try (ScriptedDriver script = new ScriptedDriver()) {
      CudaOptions options =
          CudaOptions.DEFAULTS
              .withDriver(script.over(SimulatedDriver.open(SimulatedOptions.DEFAULTS)))
              .withDecorator(_ -> {
                throw new AssertionError("on purpose");
              });
      assertThatThrownBy(() -> Cuda.open(options)).hasMessage("on purpose");
      assertThat(script.count("close")).isEqualTo(1);
    }
  }

  @Test
  void eventsStreamsAndBuffers_areClosedWithTheCuda() {
    Cuda cuda = Cuda.open(CudaOptions.simulated());
    CudaEvent event = cuda.device(0).createEvent();
    CudaStream stream = cuda.device(0).createStream();
    Buffer buffer = cuda.allocate(100);
    cuda.close();
    assertThat(event.isClosed()).as("event").isTrue();
    assertThat(stream.isClosed()).as("stream").isTrue();
    assertThat(buffer.isClosed()).as("buffer").isTrue();
    event.close();
  }

  @Test
  void workThatIsQueued_isWaitedFor_beforeItsMemoryGoes() {
    ScriptedDriver script = new ScriptedDriver();
    CudaDriver driver = script.over(SimulatedDriver.open(SimulatedOptions.DEFAULTS));
    List<Boolean> done = new ArrayList<>();
    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver))) {
      CudaStream stream = cuda.device(0).createStream();
      Buffer buffer = MemoryResource.direct().allocate(MIB, stream);
      for (int i = 0; i < 100; i++) {
        buffer.fill((byte) i, stream);
      }
      long handle = stream.handle();
      script.answer(
          "memFree",
          call -> {
            done.add(driver.streams().streamQuery(0, handle));
            return call.proceed();
          });
    }
    assertThat(done).isNotEmpty().doesNotContain(false);
  }

  /** Of each device that was used. */
  @Test
  void workOfStreamsThatNobodyHereKnows_isWaitedForToo() throws InterruptedException {
    SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse("devices=2"));
    Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDriver(ScriptedDriver.keptOpen(driver)));
    Thread closing = Thread.ofPlatform().unstarted(cuda::close);
    List<Boolean> waiting = Collections.synchronizedList(new ArrayList<>());
    for (int device = 0; device < 2; device++) {
      cuda.device(device).createEvent().close();
      long stream = driver.streams().streamCreateWithPriority(device, 1, 0);
      driver
          .streams()
          .launchHostFunc(
              device,
              stream,
              () -> {
                while (NOT_WAITING.contains(closing.getState())) {
                  Thread.onSpinWait();
                }
                waiting.add(closing.isAlive());
              });
    }
    closing.start();
    closing.join();
    driver.close();
    assertThat(waiting).containsExactly(true, true);
  }

  @Test
  void leakListenerThatThrows_stopsNothing() throws InterruptedException {
    Cuda cuda =
        Cuda.open(
            CudaOptions.simulated()
                .withLeakListener(_ -> {
                  throw new IllegalArgumentException("listener");
                }));
    Buffer open = cuda.allocate(1 << 20);
    AtomicReference<PhantomReference<Buffer>> forgotten = new AtomicReference<>();
    ReferenceQueue<Buffer> collected = new ReferenceQueue<>();
    Forgetting.of(() -> {
      Buffer buffer = cuda.allocate(100);
      forgotten.set(new PhantomReference<>(buffer, collected));
      return buffer;
    });
    assertThat(Forgetting.collectUntil(() -> collected.poll() != null)).isTrue();
    Forgetting.collectAll(); // and the library has been handed it too
    assertThatThrownBy(cuda::close).hasMessage("listener");
    assertThat(open.isClosed()).isTrue();
  }

  @Test
  void everythingClosedByTwoThreadsAtOnce_isFreedOnce() throws InterruptedException {
    for (int round = 0; round < 50; round++) {
      AtomicInteger freed = new AtomicInteger();
      Cuda cuda = Cuda.open(CudaOptions.simulated());
      Buffer memory = MemoryResource.direct().allocate(64, cuda.currentStream());
      List<Buffer> all = new ArrayList<>();
      for (int i = 0; i < 50; i++) {
        all.add(cuda.device(0).adopt(memory.address(), 1, freed::incrementAndGet));
      }
      Thread other = Thread.ofPlatform().start(() -> all.forEach(Buffer::close));
      cuda.close();
      other.join();
      assertThat(freed).hasValue(50);
    }
  }

  @Test
  void poolOfAClosedCuda_isRefused() {
    Cuda cuda = Cuda.open(CudaOptions.simulated());
    cuda.close();
    assertThatThrownBy(() -> new PinnedMemoryPool(cuda)).hasMessage("Cuda is closed");
    assertThatThrownBy(() -> new MemoryPool(cuda)).hasMessage("Cuda is closed");
  }

  @Test
  void forgottenStream_isFoundAlthoughAPoolKeepsItsMemory() throws InterruptedException {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withLeakListener(_ -> {}))) {
      Forgetting.of(() -> {
        CudaStream stream = cuda.device(0).createStream();
        cuda.allocate(100, stream).close();
        return stream;
      });
      assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 1)).isTrue();
      assertThat(cuda.defaultMemoryPool().freeBytes()).isEqualTo(512);
    }
  }

  @Test
  void forgottenBufferWhoseViewIsInUse_comesBackWhenThatIsOver() throws Exception {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withLeakListener(_ -> {}))) {
      Pipe pipe = Pipe.open();
      AtomicReference<ByteBuffer> view = new AtomicReference<>();
      ReferenceQueue<Buffer> collected = new ReferenceQueue<>();
      AtomicReference<PhantomReference<Buffer>> forgotten = new AtomicReference<>();
      Forgetting.of(() -> {
        PinnedBuffer buffer = cuda.allocatePinned(100);
        view.set(buffer.byteBuffer());
        forgotten.set(new PhantomReference<>(buffer, collected));
        return buffer;
      });
      Thread reader = Thread.ofPlatform().start(() -> read(pipe, view.get()));
      while (!isReading(reader)) {
        Thread.onSpinWait();
      }
      assertThat(Forgetting.collectUntil(() -> collected.poll() != null)).isTrue();
      assertThat(cuda.leaksFound()).isZero();
      assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).as("it is read").isPositive();
      pipe.sink().write(ByteBuffer.wrap(new byte[1]));
      reader.join();
      assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() == 1)).isTrue();
      assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
    }
  }

  private static boolean isReading(Thread reader) {
    for (StackTraceElement frame : reader.getStackTrace()) {
      if (frame.getMethodName().equals("read0")) {
        return true;
      }
    }
    return false;
  }

  private static void read(Pipe pipe, ByteBuffer view) {
    try {
      pipe.source().read(view);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
