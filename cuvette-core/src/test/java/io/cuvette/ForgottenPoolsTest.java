package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import io.cuvette.internal.async.OrderedShortage;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.devicepool.DevicePool;
import io.cuvette.internal.devicepool.DeviceShortage;
import io.cuvette.internal.driverpool.DriverPools;
import io.cuvette.internal.lifetime.Ending;
import io.cuvette.internal.lifetime.LeakTracker;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.ordered.OrderedMemory;
import io.cuvette.internal.pinnedpool.PinnedBlock;
import io.cuvette.internal.pinnedpool.PinnedPoolCore;
import io.cuvette.internal.pinnedpool.PinnedShortage;
import io.cuvette.internal.pinnedpool.PinnedStore;
import io.cuvette.internal.pinnedpool.SizeClasses;
import io.cuvette.internal.streamcache.BlockCache;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.Request;
import java.lang.ref.PhantomReference;
import java.lang.ref.Reference;
import java.lang.ref.ReferenceQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the collector has found is known before it is taken back: a shortage waits for it. */
@Timeout(60)
class ForgottenPoolsTest {
  private static final long PATIENCE_MILLIS = 40_000;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());

  @AfterEach
  void close() {
    cuda.close();
  }

  /** Forgets what is made and collects until that was found. */
  private static void forget(Supplier<?> make) throws InterruptedException {
    ReferenceQueue<Object> queue = new ReferenceQueue<>();
    PhantomReference<?>[] canary = new PhantomReference<?>[1];
    Thread.ofPlatform()
        .start(() -> canary[0] = new PhantomReference<Object>(make.get(), queue))
        .join();
    Reference<?> found = null;
    for (int i = 0; i < PATIENCE_MILLIS / 100 && found == null; i++) {
      System.gc(); // again, if a thread has just looked at it
      found = queue.remove(100);
    }
    assertThat(found).isSameAs(canary[0]);
  }

  @Test
  void forgottenPool_isKnownUntilItIsTakenBack() throws InterruptedException {
    MemoryPool open = new MemoryPool(cuda);
    assertThat(cuda.engine().hasForgottenPools()).isFalse();
    DeviceShortage shortage = shortage(open);
    PinnedShortage ofHost = pinnedShortage();
    assertThat(shortage.hasForgotten()).isFalse();
    assertThat(ofHost.hasForgotten()).isFalse();
    assertThat(shortage.mayHave()).as("a block is free").isTrue();
    assertThat(open.freeAllBlocks()).isPositive();
    assertThat(shortage.mayHave()).isFalse();
    for (Supplier<?> make :
        new Supplier<?>[] {() -> new MemoryPool(cuda), () -> new PinnedMemoryPool(cuda)}) {
      forget(make);
      assertThat(cuda.engine().hasForgottenPools()).isTrue();
      assertThat(shortage.hasForgotten()).as("memory of others is waited for").isTrue();
      assertThat(ofHost.hasForgotten()).isTrue();
      boolean isTakenBack =
          Await.until(
              () -> cuda.leaksFound() >= 0 && !cuda.engine().hasForgottenPools(),
              TimeUnit.MILLISECONDS.toNanos(PATIENCE_MILLIS));
      assertThat(isTakenBack).isTrue();
    }
    open.close();
  }

  @Test
  void closedPoolWithNothingInUse_isKeptByNothing() throws InterruptedException {
    CudaStream stream = cuda.device(0).createStream();
    forget(() -> usedAndClosed(new MemoryPool(cuda), stream));
    forget(() -> usedAndClosed(new ElasticMemoryPool(cuda), stream));
    forget(() -> {
      PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
      PinnedBuffer buffer = pool.allocate(512);
      Memory memory = EngineMemory.of(buffer);
      buffer.close();
      pool.close();
      return ((PinnedBlock) memory.block()).chunk;
    });
  }

  @Test
  void closedBufferThatGrew_isKeptByNothing() throws InterruptedException {
    CudaDevice device = cuda.device(0);
    forget(() -> {
      GrowableBuffer buffer = device.growable(1 << 20);
      buffer.grow(1 << 20);
      Object block = EngineMemory.of(buffer).block();
      buffer.close();
      return block;
    });
  }

  /** What the pool is for its Cuda, after its end. */
  @SuppressWarnings("try") // nothing here is interrupted
  private static <P extends MemoryResource & AutoCloseable> Object usedAndClosed(
      P pool, CudaStream stream) {
    Buffer buffer = pool.allocate(512, stream);
    CachedBlock block = (CachedBlock) EngineMemory.of(buffer).block();
    buffer.close();
    stream.synchronize();
    assertThatCode(pool::close).doesNotThrowAnyException();
    return block.arena.pool;
  }

  @Test
  void forgottenMemoryOfTheDriversPool_isKnownUntilItIsTakenBack() throws InterruptedException {
    OrderedMemory memory = cuda.engine().driverPools().asyncMemory();
    CudaStream stream = cuda.currentStream();
    assertThat(memory.hasForgotten()).isFalse();
    Buffer used = MemoryResource.async().allocate(512, stream);
    assertThat(memory.hasForgotten()).isFalse();
    forget(() -> MemoryResource.async().allocate(512, stream));
    assertThat(memory.hasForgotten()).isTrue();
    assertThat(shortage(memory, stream).hasForgotten()).as("it is waited for").isTrue();
    boolean isTakenBack =
        Await.until(() -> cuda.leaksFound() > 0, TimeUnit.MILLISECONDS.toNanos(PATIENCE_MILLIS));
    assertThat(isTakenBack).isTrue();
    assertThat(memory.hasForgotten()).isFalse();
    assertThat(shortage(memory, stream).hasForgotten()).isFalse();
    used.close();
  }

  private OrderedShortage shortage(OrderedMemory memory, CudaStream stream) {
    DriverPools pools = cuda.engine().driverPools();
    return new OrderedShortage(
        pools,
        stream.core(),
        memory,
        () -> {},
        new Refusals(),
        () -> null,
        IllegalStateException::new);
  }

  /** The collector has found it, and hands it over while the pool waits. */
  @Test
  void poolOfTheDriverAtItsLimit_waitsForMemoryThatIsKnownToCome() {
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda)) {
      pool.setLimit(MemoryLimit.ofBytes(512));
      Buffer forgotten = pool.allocate(512);
      ((BufferBase) forgotten).block().clear(); // as the collector does
      LeakTracker leaks = cuda.engine().session().leaks();
      leaks.failed(new LateClose(forgotten, leaks));
      pool.allocate(512).close();
      assertThat(forgotten.isClosed()).isTrue();
    }
  }

  @Test
  void poolOfPageLockedMemoryAtItsLimit_waitsForMemoryThatIsKnownToCome() {
    PinnedPoolOptions options = PinnedPoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(4096));
    try (PinnedMemoryPool pool = new PinnedMemoryPool(cuda, options)) {
      PinnedBuffer forgotten = pool.allocate(4096);
      ((BufferBase) forgotten).block().clear(); // as the collector does
      LeakTracker leaks = cuda.engine().session().leaks();
      leaks.failed(new LateClose(forgotten, leaks, 3 * LateClose.LOOKS));
      pool.allocate(4096).close();
      assertThat(forgotten.isClosed()).isTrue();
    }
  }

  /** What could not be released before is, with what was forgotten. */
  @Test
  void poolThatIsClosed_takesBackWhatWasForgotten() {
    LeakTracker leaks = cuda.engine().session().leaks();
    for (AutoCloseable pool :
        new AutoCloseable[] {new MemoryPool(cuda), new PinnedMemoryPool(cuda)}) {
      Buffer forgotten = cuda.allocate(512);
      leaks.failed(new LateClose(forgotten, leaks, 1));
      assertThatCode(pool::close).doesNotThrowAnyException();
      assertThat(forgotten.isClosed()).isTrue();
    }
  }

  /** Closes a buffer when memory that was forgotten is looked for once more. */
  private static final class LateClose extends Ending {
    private static final int LOOKS = 12;

    private final Buffer buffer;
    private final LeakTracker leaks;
    private int looks;

    LateClose(Buffer buffer, LeakTracker leaks) {
      this(buffer, leaks, LOOKS);
    }

    LateClose(Buffer buffer, LeakTracker leaks, int looks) {
      super(buffer, null, null);
      this.buffer = buffer;
      this.leaks = leaks;
      this.looks = looks;
    }

    @Override
    public void release() {
      if (--looks > 0) {
        leaks.failed(this);
      } else {
        buffer.close();
      }
    }

    @Override
    public String describe() {
      return "late close of a buffer";
    }
  }

  /** What a pool does for an allocation that it has no memory for. */
  private DeviceShortage shortage(MemoryPool pool) {
    try (Buffer one = pool.allocate(512)) {
      BlockCache cache = ((CachedBlock) ((BufferBase) one).block()).arena;
      OpenStream stream = cuda.currentStream().core();
      return new DeviceShortage(
          (DevicePool) cache.of, new Request(cache, 512, 512, stream, new Refusals()));
    }
  }

  private PinnedShortage pinnedShortage() {
    PinnedAllocator upstream = cuda.directPinned();
    PinnedPoolCore pool =
        new PinnedPoolCore(
            this,
            cuda.engine().streams(),
            new PinnedChunks(upstream, () -> upstream),
            MemoryLimit.none(),
            BufferKind.PINNED);
    return new PinnedShortage(
        pool,
        new PinnedStore(Long.MAX_VALUE),
        512,
        SizeClasses.classOf(512),
        cuda.currentStream().core(),
        new Refusals());
  }
}
