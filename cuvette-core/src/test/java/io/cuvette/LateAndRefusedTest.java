package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.internal.block.Memory;
import io.cuvette.internal.callback.CallbackFlags;
import io.cuvette.internal.channel.PoolHandle;
import io.cuvette.internal.devicepool.CachingDevicePool;
import io.cuvette.internal.lifetime.Ending;
import io.cuvette.internal.pool.Chunks;
import io.cuvette.internal.session.DeferredFrees;
import io.cuvette.internal.session.ObjectEnding;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What is freed late, what comes too late, and what objects say of themselves. */
@Timeout(60)
class LateAndRefusedTest {
  private static final long MIB = 1 << 20;
  private static final int THREADS = 4;
  private static final int WORDS = (64 << 10) / Integer.BYTES;

  private final Cuda cuda =
      Cuda.open(
          CudaOptions.DEFAULTS.withDriver(
              SimulatedDriver.open(SimulatedOptions.DEFAULTS.withMemoryBytes(64 * MIB))));

  @AfterEach
  void close() {
    cuda.close();
  }

  /** No callback that returns frees it here: who is short of memory does. */
  @Test
  void plainMemoryThatFoundNoGapBetweenCallbacks_isFreedForTheNextThatNeedsIt() {
    DeferredFrees frees = cuda.engine().session().frees();
    Buffer first = MemoryResource.direct().allocate(40 * MIB, cuda.currentStream());
    frees.beginHold();
    first.close();
    assertThat(frees.isAnyLeft()).isTrue();
    assertThatThrownBy(() -> MemoryResource.direct().allocate(40 * MIB, cuda.currentStream()))
        .as("as long as the callback goes on")
        .isInstanceOf(OutOfDeviceMemoryException.class);
    frees.endHold();
    Buffer second = MemoryResource.direct().allocate(40 * MIB, cuda.currentStream());
    assertThat(frees.isAnyLeft()).isFalse();
    assertThatThrownBy(() -> MemoryResource.direct().allocate(40 * MIB, cuda.currentStream()))
        .isInstanceOf(OutOfDeviceMemoryException.class);
    second.close();
  }

  @Test
  void chunksThatWereAllRemoved_areOver() {
    Chunks chunks = new Chunks();
    assertThat(chunks.isOver()).isFalse();
    chunks.end();
    assertThat(chunks.isOver()).isTrue();
    assertThat(chunks.isOver()).as("again, by whoever asks").isTrue();
  }

  /** Neither one that was never there, nor any after the end. */
  @Test
  void numberOfNoChunk_isRefusedOrNothing() {
    Chunks chunks = new Chunks();
    for (int i = 0; i < 3; i++) {
      Buffer buffer = MemoryResource.direct().allocate(512, cuda.currentStream());
      assertThat(chunks.add(EngineMemory.of(buffer), 512)).isEqualTo(i);
    }
    assertThat(chunks.remove(Chunks.NONE)).isNull();
    for (int none : new int[] {3, 15, 16, 17, 1000}) {
      assertThatThrownBy(() -> chunks.get(none)).isInstanceOf(IllegalStateException.class);
    }
    assertThat(chunks.bytes()).isEqualTo(3 * 512);
    chunks.end();
    for (int gone : new int[] {0, 2, 3, 15, 16, 1000}) {
      assertThatThrownBy(() -> chunks.get(gone))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("its Cuda has ended");
      assertThat(chunks.bytes(gone)).isZero();
      assertThat(chunks.remove(gone)).isNull();
    }
    assertThat(chunks.bytes()).isZero();
  }

  @Test
  void chunks_haveNumbersThatAreUsedAgain_howeverManyThereAre() {
    int count = 40;
    Chunks chunks = new Chunks();
    List<Memory> all = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      all.add(EngineMemory.of(MemoryResource.direct().allocate(512, cuda.currentStream())));
      assertThat(chunks.add(all.get(i), 512)).isEqualTo(i);
    }
    assertThat(chunks.bytes()).isEqualTo(count * 512L);
    for (int i = 0; i < count; i++) {
      assertThat(chunks.get(i)).isSameAs(all.get(i));
      Objects.requireNonNull(chunks.remove(i)).giveBack();
      int gone = i;
      assertThatThrownBy(() -> chunks.get(gone)).isInstanceOf(IllegalStateException.class);
      assertThat(chunks.bytes(i)).isZero();
    }
    assertThat(chunks.bytes()).isZero();
    assertThat(all).allMatch(memory -> memory.block().ended());
    Memory next = EngineMemory.of(MemoryResource.direct().allocate(512, cuda.currentStream()));
    assertThat(chunks.add(next, 512)).isEqualTo(count - 1);
    chunks.end();
    assertThat(chunks.add(next, 512)).isEqualTo(Chunks.NONE);
  }

  /** Only threads that meet pay for blocks that are ready beside the cache. */
  @Test
  void blocksAreReadyBesideTheCache_onceThreadsHaveMet() throws InterruptedException {
    MemoryPool pool = new MemoryPool(cuda);
    CudaStream stream = cuda.device(0).nullStream();
    for (int i = 0; i < 10; i++) {
      assertThat(isFromTheFront(pool, stream)).as("one thread").isFalse();
    }
    AtomicBoolean met = new AtomicBoolean();
    Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
    Thread[] threads = new Thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
      threads[i] =
          Thread.ofPlatform()
              .start(() -> {
                try {
                  long end = System.nanoTime() + 40_000_000_000L;
                  while (!met.get() && System.nanoTime() < end) {
                    if (isFromTheFront(pool, stream)) {
                      met.set(true);
                    }
                  }
                } catch (RuntimeException | Error e) {
                  failures.add(e);
                }
              });
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(failures).isEmpty();
    assertThat(met).isTrue();
    pool.assertConsistent();
  }

  private static boolean isFromTheFront(MemoryPool pool, CudaStream stream) {
    try (Buffer buffer = pool.allocate(512, stream)) {
      return ((CachedBlock) ((BufferBase) buffer).block()).stripe != null;
    }
  }

  /** Who waits for others waits again only while there is something to be had. */
  @Test
  void poolMayHaveMemory_ifWhatIsFreeIsEnough() {
    MemoryPool pool = new MemoryPool(cuda);
    CudaStream stream = cuda.device(0).nullStream();
    Buffer used = pool.allocate(MIB, stream);
    pool.allocate(MIB, stream).close();
    CachingDevicePool core =
        (CachingDevicePool) ((CachedBlock) ((BufferBase) used).block()).arena.of;
    assertThat(core.mayHave(MIB)).isTrue();
    assertThat(core.mayHave(MIB + 512)).isFalse();
    CudaStream captured = cuda.device(0).createStream();
    try (CudaGraph graph = captured.capture(() -> pool.allocate(2 * MIB, captured).close())) {
      assertThat(graph.isClosed()).isFalse();
      assertThat(pool.stats().graphBytes()).isEqualTo(2 * MIB);
      assertThat(core.mayHave(MIB)).isTrue();
      assertThat(core.mayHave(MIB + 512)).as("a graph's is its own").isFalse();
    }
    used.close();
  }

  /** Upstream closes the pool while it is asked: the last buffer of it is as any other. */
  @Test
  void chunkForAPinnedPoolThatIsClosedMeanwhile_goesBackToUpstreamWithItsBuffer() {
    AtomicReference<PinnedMemoryPool> pool = new AtomicReference<>();
    AtomicReference<PinnedBuffer> chunk = new AtomicReference<>();
    pool.set(
        new PinnedMemoryPool(
            cuda,
            PinnedPoolOptions.DEFAULTS.withUpstream(bytes -> {
              chunk.set(cuda.directPinned().allocate(bytes));
              pool.get().close();
              return chunk.get();
            })));
    pool.get().allocate(100).close();
    assertThat(chunk.get().isClosed()).isTrue();
    assertThat(pool.get().totalBytes()).isZero();
  }

  /** Whoever forgot something runs code of users at a moment when memory is looked for. */
  @Test
  void poolsThatAreClosedWhileTheyLook_askUpstreamForNothing() {
    AtomicInteger asked = new AtomicInteger();
    MemoryPool pool =
        new MemoryPool(
            cuda,
            PoolOptions.DEFAULTS.withUpstream((bytes, stream) -> {
              asked.incrementAndGet();
              return MemoryResource.direct().allocate(bytes, stream);
            }));
    PinnedMemoryPool pinned =
        new PinnedMemoryPool(
            cuda,
            PinnedPoolOptions.DEFAULTS.withUpstream(bytes -> {
              asked.incrementAndGet();
              return cuda.directPinned().allocate(bytes);
            }));
    closeWithTheNextLook(pool::close);
    assertThatThrownBy(() -> pool.allocate(512)).hasMessageContaining("is closed");
    closeWithTheNextLook(pinned::close);
    assertThatThrownBy(() -> pinned.allocate(512)).hasMessage("PinnedMemoryPool is closed");
    assertThat(asked).hasValue(0);
    assertThat(pool.totalBytes()).isZero();
    assertThat(pinned.totalBytes()).isZero();
  }

  private void closeWithTheNextLook(Runnable close) {
    cuda.engine()
        .session()
        .leaks()
        .failed(
            new Ending(new Object(), null, null) {
              @Override
              public void release() {
                close.run();
              }

              @Override
              public String describe() {
                return "the end of a pool";
              }
            });
  }

  @Test
  void objects_nameThemselves() {
    try (MemoryPool pool = new MemoryPool(cuda);
        CudaEvent event = cuda.device(0).createEvent(EventOptions.DEFAULTS)) {
      assertThat(pool).hasToString("MemoryPool[upstream=MemoryResource.direct()]");
      assertThat(event.handle()).isNotZero();
      cuda.driver().events().eventRecord(0, event.handle(), 0);
      assertThat(event.isDone()).isIn(true, false);
    }
    FakeDescriptors descriptors = new FakeDescriptors();
    PoolHandle handle =
        new PoolHandle(descriptors, descriptors.memoryFile("pool", 0), new UUID(0, 1));
    assertThat(handle.toString()).endsWith("]");
    handle.close();
    assertThat(handle.toString()).endsWith("] (closed)");
  }

  @Test
  void poolOfTheDriver_namesItsReleaseThreshold() {
    var defaults = DeviceMemoryResourceOptions.DEFAULTS;
    try (var resource = new DeviceMemoryResource(cuda.device(0), defaults)) {
      resource.attributes().setReleaseThreshold(4096);
      assertThat(resource.attributes().toString()).contains("releaseThreshold=4096]");
      resource.attributes().setReleaseThreshold(Long.MAX_VALUE);
      assertThat(resource.attributes().toString()).contains("releaseThreshold=all]");
    }
  }

  /** All words of one piece of memory are taken: the next is in another. */
  @Test
  void wordsThatStreamsWaitAt_areAllInTheirMemory() {
    CallbackFlags flags = new CallbackFlags(cuda.engine().session());
    List<CallbackFlags.Flag> taken = new ArrayList<>();
    for (int i = 0; i <= WORDS; i++) {
      taken.add(flags.take(cuda.device(0).core()));
    }
    taken.forEach(CallbackFlags.Flag::release);
    assertThat(taken).as("used again").contains(flags.take(cuda.device(0).core()));
  }

  /** Nor does its Cuda know of it any more. */
  @Test
  void objectThatHasEnded_isNotEndedAgainWithItsCuda() {
    AtomicInteger ends = new AtomicInteger();
    Object object = new Object();
    ObjectEnding ending =
        ObjectEnding.of(object, cuda.engine().session(), "an object", false, ends::incrementAndGet);
    assertThat(ending.close(this)).isTrue();
    cuda.close();
    assertThat(ends).hasValue(1);
    Reference.reachabilityFence(object);
  }

  @Test
  void closedCuda_hasNoRegistry() {
    cuda.close();
    assertThatThrownBy(() -> DeviceMemoryResource.fromRegistry(cuda, UUID.randomUUID()))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed");
  }
}
