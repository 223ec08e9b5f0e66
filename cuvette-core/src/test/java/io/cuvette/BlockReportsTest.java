package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingMemory;
import io.cuvette.instrument.ForwardingOrdered;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.Memory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What whoever watches memory is told of blocks, and what becomes of one that it refuses. */
class BlockReportsTest {
  private static final int BYTES = 1000;

  private final List<String> told = new ArrayList<>();
  private long last;
  private Runnable whenLent = () -> {};
  private Runnable whenAccessed = () -> {};
  private boolean refuses;
  private boolean refusesFrees;

  /** How much of the driver's pools is not freed. */
  private int ordered;

  /** Where the host copied bytes to; 0 for the heap. */
  private final List<Long> copies = new ArrayList<>();

  /** In order of which streams blocks were lent. */
  private final List<Long> streams = new ArrayList<>();

  /** How often memory was used by work of others. */
  private int usesElsewhere;

  /** How often memory was freed in no order. */
  private int plainFrees;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(Watched::new));
  private final CudaStream stream = cuda.device(0).createStream();

  @AfterEach
  void close() {
    refuses = false;
    refusesFrees = false;
    cuda.close();
  }

  /** Somebody else's memory, in which nobody knows what is lent. */
  private Buffer foreign(long bytes, CudaStream stream) {
    Buffer memory = MemoryResource.direct().allocate(bytes, stream);
    return cuda.device(0).adopt(memory.address(), bytes, memory::close);
  }

  private MemoryPool over(MemoryResource upstream) {
    return new MemoryPool(cuda, PoolOptions.DEFAULTS.withUpstream(upstream));
  }

  @Test
  void blocksOfPools_areToldWithTheNumberOfPoolsTheyCameThrough() {
    MemoryPool inner = over(MemoryResource.direct());
    inner.allocate(BYTES, stream).close();
    assertThat(told).containsExactly("lent 1", "freed 1");
    told.clear();
    over(inner).allocate(BYTES, stream).close();
    assertThat(told).containsExactly("lent 1", "lent 2", "freed 2");
  }

  @Test
  void blocksOfMemoryOfSomebodyElse_areNotTold_howeverManyPoolsTheyComeThrough() {
    MemoryPool inner = over(this::foreign);
    inner.allocate(BYTES, stream).close();
    over(inner).allocate(BYTES, stream).close();
    assertThat(told).isEmpty();
  }

  /** What was wrapped is not the library's, whatever came through it. */
  @Test
  void blocksOfWrappedMemory_areNotTold() {
    try (Buffer memory = MemoryResource.direct().allocate(1 << 20, stream);
        PinnedBuffer pinned = cuda.directPinned().allocate(1 << 20)) {
      over((bytes, _) -> cuda.wrap(memory.address(), bytes, null)).allocate(BYTES, stream).close();
      PinnedAllocator other = bytes -> (PinnedBuffer) cuda.wrap(pinned.address(), bytes, null);
      var options = PinnedPoolOptions.DEFAULTS.withUpstream(other);
      new PinnedMemoryPool(cuda, options).allocate(BYTES).close();
      assertThat(told).isEmpty();
    }
  }

  /** The block is in the pool again, and the hooks hear of it. */
  @Test
  void freeThatWhoeverWatchesRefuses_isMade_andEndsForHooks() {
    MemoryPool hooked = over(MemoryResource.direct());
    List<Long> ended = new ArrayList<>();
    hooked.addHook(
        new MemoryHook() {
          @Override
          public void freePostprocess(Block block) {
            ended.add(block.address());
          }
        });
    Buffer buffer = hooked.allocate(BYTES, stream);
    refusesFrees = true;
    assertThatThrownBy(buffer::close).hasMessage("refused on purpose");
    refusesFrees = false;
    assertThat(ended).containsExactly(buffer.address());
    assertThat(hooked.usedBytes()).isZero();
  }

  @Test
  void freeThatAHookRefuses_isMade_andEndsForAllHooks() {
    MemoryPool hooked = over(MemoryResource.direct());
    List<Long> ended = new ArrayList<>();
    hooked.addHook(
        new MemoryHook() {
          @Override
          public void freePreprocess(Block block) {
            throw new IllegalStateException("refused on purpose");
          }

          @Override
          public void freePostprocess(Block block) {
            ended.add(block.address());
          }
        });
    for (boolean refusesToo : new boolean[] {false, true}) {
      ended.clear();
      Buffer buffer = hooked.allocate(BYTES, stream);
      refusesFrees = refusesToo; // whoever watches
      assertThatThrownBy(buffer::close).hasMessage("refused on purpose");
      refusesFrees = false;
      assertThat(ended).containsExactly(buffer.address());
      assertThat(hooked.usedBytes()).isZero();
    }
  }

  /** No hook hears of it. */
  @Test
  void freeInsideAHook_isMade_alsoIfWhoeverWatchesRefuses() {
    MemoryPool hooked = over(MemoryResource.direct());
    Buffer freed = hooked.allocate(BYTES, stream);
    Buffer refused = hooked.allocate(BYTES, stream);
    Buffer outer = hooked.allocate(BYTES, stream);
    List<Long> ended = new ArrayList<>();
    hooked.addHook(
        new MemoryHook() {
          @Override
          public void freePreprocess(Block block) {
            freed.close();
            refusesFrees = true;
            refused.close();
          }

          @Override
          public void freePostprocess(Block block) {
            ended.add(block.address());
          }
        });
    assertThatThrownBy(outer::close).hasMessage("refused on purpose");
    refusesFrees = false;
    assertThat(ended).containsExactly(outer.address());
    assertThat(hooked.usedBytes()).isZero();
  }

  /** Both places: work that is queued may use either. */
  @Test
  void copiesOfTheHost_areToldWithWhatTheyReadAndWrite() {
    try (Arena arena = Arena.ofConfined();
        PinnedBuffer pinned = cuda.allocatePinned(16)) {
      MemorySegment host = arena.allocate(16);
      told.clear();
      pinned.copyFrom(host);
      assertThat(told)
          .containsExactly("writes 16 at " + pinned.address(), "reads 16 at " + host.address());
      told.clear();
      pinned.copyTo(host);
      assertThat(told)
          .containsExactly("reads 16 at " + pinned.address(), "writes 16 at " + host.address());
      told.clear();
      pinned.copyFrom(MemorySegment.ofArray(new byte[16]));
      assertThat(told).containsExactly("writes 16 at " + pinned.address());
    }
  }

  /** The driver is given none of them, and each may be what others use. */
  @Test
  void copiesOfSeveralParts_areToldOfEachThatIsOffTheHeap() {
    try (Arena arena = Arena.ofConfined();
        PinnedBuffer pinned = cuda.allocatePinned(48)) {
      MemorySegment one = arena.allocate(16);
      MemorySegment two = arena.allocate(16);
      MemorySegment heap = MemorySegment.ofArray(new byte[16]);
      told.clear();
      pinned.gatherFrom(List.of(one, heap, two));
      assertThat(told).contains("reads 16 at " + one.address(), "reads 16 at " + two.address());
    }
  }

  /** What is refused next has no bytes of the buffer. */
  @Test
  void copyToMemoryThatCannotBeWritten_isNotTold() {
    Memory memory = ((BufferBase) cuda.allocatePinned(16)).memory();
    MemorySegment heap = MemorySegment.ofArray(new byte[16]);
    MemorySegment closed;
    try (Arena arena = Arena.ofConfined()) {
      closed = arena.allocate(16);
      BlockReports.hostCopy(memory, closed, 16, false);
      BlockReports.hostCopy(memory, heap, 16, false);
      assertThat(copies).containsExactly(closed.address(), 0L);
      OnThreads.run(1, _ -> BlockReports.hostCopy(memory, closed, 16, false));
    }
    BlockReports.hostCopy(memory, closed, 16, false);
    BlockReports.hostCopy(memory, heap.asReadOnly(), 16, false);
    BlockReports.hostCopy(memory, heap, 16, true);
    assertThat(copies).hasSize(2);
    BlockReports.hostCopy(memory, MemorySegment.ofArray(new byte[32]).asSlice(16), 16, false);
    assertThat(copies).as("within an array is no address").endsWith(0L).hasSize(3);
  }

  /** What the chunks between have is not what was written there last, but what the host copied. */
  @Test
  void copiesOfHeapMemory_areToldOfTheChunksBetween() {
    try (Buffer buffer = cuda.allocate(16, stream);
        Scope _ = stream.use()) {
      buffer.copyFrom(MemorySegment.ofArray(new byte[16]));
      assertThat(told).filteredOn(each -> each.startsWith("writes 16 at ")).hasSize(1);
      buffer.copyTo(MemorySegment.ofArray(new byte[16]));
      assertThat(told).filteredOn(each -> each.startsWith("reads 16 at ")).hasSize(1);
    }
  }

  /** The bytes are where they belong, although what stood between is refused. */
  @Test
  void copyWhoseChunkIsRefusedWhenItGoesBack_saysThatAllWasWritten() {
    byte[] back = new byte[16];
    try (Buffer buffer = cuda.allocate(16, stream);
        Scope _ = stream.use()) {
      refusesFrees = true;
      assertThatThrownBy(() -> buffer.copyFrom(MemorySegment.ofArray(new byte[] {1, 2, 3})))
          .hasMessage(
              "refused on purpose; copy of 3 bytes to the device: bytes 0 to 3 were written");
      assertThatThrownBy(() -> buffer.copyTo(MemorySegment.ofArray(back)))
          .hasMessage(
              "refused on purpose; copy of 16 bytes to the host: bytes 0 to 16 were written");
      refusesFrees = false;
    }
    assertThat(back).startsWith(1, 2, 3);
  }

  /** The pinned memory is gone: copying would touch memory that is somebody else's by now. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void cudaThatClosesBeforeTheHostCopies_refusesTheCopy(boolean isPinned) {
    Buffer buffer = isPinned ? cuda.allocatePinned(16) : cuda.allocate(16, stream);
    MemorySegment host = MemorySegment.ofArray(new byte[16]);
    buffer.copyFrom(host);
    whenAccessed =
        () -> {
          whenAccessed = () -> {};
          Thread closing = Thread.ofPlatform().start(cuda::close);
          Await.until(() -> !closing.isAlive());
        };
    assertThatThrownBy(() -> buffer.copyTo(host))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("is closed")
        .hasMessageContaining("copy of 16 bytes to the host");
  }

  @ParameterizedTest
  @ValueSource(strings = {"caching", "hooked", "pinned"})
  void blockThatIsRefused_isLentNextTime(String kind) {
    MemoryPool hooked = over(MemoryResource.direct());
    hooked.addHook(new MemoryHook() {});
    Supplier<Buffer> allocate =
        switch (kind) {
          case "caching" -> () -> cuda.allocate(BYTES, stream);
          case "hooked" -> () -> hooked.allocate(BYTES, stream);
          default -> () -> cuda.allocatePinned(BYTES);
        };
    refused(allocate);
    long refused = last;
    try (Buffer again = allocate.get()) {
      assertThat(again.address()).isEqualTo(refused);
    }
  }

  @Test
  void blockThatIsRefused_goesBackToTheDriversPool() {
    var resource = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    refused(() -> resource.allocate(BYTES, stream));
    refused(() -> MemoryResource.async().allocate(BYTES, stream));
    stream.synchronize();
    assertThat(ordered).isZero();
  }

  /** In order of a stream that is captured, the free would be a node of the graph. */
  @Test
  void blockThatIsRefusedInACapture_isFreedBesideIt() {
    var resource = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    CudaGraph graph =
        stream.capture(() -> {
          refused(() -> resource.allocate(BYTES, stream));
          refused(() -> MemoryResource.async().allocate(BYTES, stream));
        });
    graph.close();
    assertThat(plainFrees).isEqualTo(2);
  }

  /** It is not in use, nor idle beyond what the limit counts. */
  @Test
  void blockThatIsRefused_countsOnceAtALimit() {
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda)) {
      pool.setLimit(MemoryLimit.ofBytes(1024));
      refused(() -> pool.allocate(BYTES, stream));
      try (Buffer _ = pool.allocate(BYTES, stream)) {
        assertThatThrownBy(() -> pool.allocate(1, stream))
            .isInstanceOf(OutOfDeviceMemoryException.class);
      }
      refused(() -> pool.allocate(BYTES, stream)); // what was idle before
      pool.allocate(BYTES, stream).close();
    }
    stream.synchronize();
    assertThat(ordered).isZero();
  }

  @Test
  void streamThatIsClosedMeanwhile_isThereUntilTheBlockIsReported() throws InterruptedException {
    CudaStream home = cuda.device(0).createStream();
    long handle = home.handle();
    List<Boolean> done = new ArrayList<>();
    whenLent =
        () -> {
          Thread closing = Thread.ofPlatform().start(home::close);
          try {
            closing.join(); // it has waited for the report as long as it does
          } catch (InterruptedException e) {
            throw new AssertionError(e);
          }
          done.add(cuda.driver().streams().streamQuery(0, handle));
        };
    cuda.allocate(BYTES, home).close();
    assertThat(done).hasSize(1);
    assertThat(home.isClosed()).isTrue();
  }

  /** The driver does not know the stream any more: its handle may be another's. */
  @Test
  void blockOfAStreamThatHasEnded_isToldWithoutTheStream() {
    CudaStream ending = cuda.device(0).createStream();
    Buffer buffer = cuda.allocate(BYTES, stream);
    Block block = ((BufferBase) buffer).block();
    for (CudaStream each : List.of(stream, ending)) {
      if (each == ending) {
        each.close();
      }
      told.clear();
      streams.clear();
      BlockReports.allocated(cuda.driver().blockListener(), block, 4096, each.state);
      assertThat(told).containsExactly("lent 1");
      assertThat(last).isEqualTo(4096);
      assertThat(streams).isEqualTo(each == ending ? List.of() : List.of(stream.handle()));
    }
    buffer.close();
  }

  private void refused(Supplier<Buffer> allocate) {
    told.clear();
    refuses = true;
    assertThatThrownBy(allocate::get).hasMessage("refused on purpose");
    refuses = false;
    assertThat(told).containsExactly("lent 1", "freed 1");
  }

  /** Tells what it is told, and throws if it is to refuse what is lent. */
  private final class Watched extends ForwardingDriver implements BlockListener {
    Watched(CudaDriver delegate) {
      super(delegate);
    }

    private final OrderedCalls orderedCalls =
        new ForwardingOrdered(delegate().ordered()) {
          @Override
          public long memAllocAsync(int device, long bytes, long stream) {
            ordered++;
            return super.memAllocAsync(device, bytes, stream);
          }

          @Override
          public long memAllocFromPoolAsync(int device, long bytes, long pool, long stream) {
            ordered++;
            return super.memAllocFromPoolAsync(device, bytes, pool, stream);
          }

          @Override
          public void memFreeAsync(int device, long address, long stream) {
            ordered--;
            super.memFreeAsync(device, address, stream);
          }
        };

    @Override
    public OrderedCalls ordered() {
      return orderedCalls;
    }

    private final MemoryCalls memoryCalls =
        new ForwardingMemory(delegate().memory()) {
          @Override
          public void memFree(int device, long address) {
            plainFrees++;
            super.memFree(device, address);
          }
        };

    @Override
    public MemoryCalls memory() {
      return memoryCalls;
    }

    @Override
    public BlockListener blockListener() {
      return this;
    }

    private void lent(Block block) {
      note("lent", block);
      whenLent.run();
      if (refuses) {
        throw new IllegalStateException("refused on purpose");
      }
    }

    private void note(String what, Block block) {
      told.add(what + " " + block.depth());
      last = block.address();
    }

    @Override
    public void blockAllocated(Block block, int device, long stream) {
      streams.add(stream);
      lent(block);
    }

    @Override
    public void blockAllocated(Block block) {
      lent(block);
    }

    @Override
    public void blockFreed(Block block) {
      note("freed", block);
      if (refusesFrees) {
        throw new IllegalStateException("refused on purpose");
      }
    }

    @Override
    public void usedElsewhere(long address, long bytes, int device, long stream) {
      usesElsewhere++;
    }

    @Override
    public void hostCopy(long address, long bytes, long target) {
      copies.add(target);
    }

    @Override
    public void hostAccess(long address, long bytes, boolean writes) {
      told.add("%s %d at %d".formatted(writes ? "writes" : "reads", bytes, address));
      whenAccessed.run();
    }
  }

  @Test
  void useByWorkOfOthers_isReported_ifThereIsMemory() {
    try (Buffer some = cuda.allocate(1, stream);
        Buffer none = cuda.allocate(0, stream)) {
      some.recordUse(stream);
      assertThat(usesElsewhere).isOne();
      none.recordUse(stream);
      assertThat(usesElsewhere).isOne();
    }
  }
}
