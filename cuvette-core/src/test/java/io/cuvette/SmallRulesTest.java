package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.FirstFailure;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingMemory;
import io.cuvette.instrument.TraceRing;
import io.cuvette.instrument.TracedCall;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.ByteSize;
import io.cuvette.internal.base.Locked;
import io.cuvette.internal.base.PerThread;
import io.cuvette.internal.base.Spans;
import io.cuvette.internal.base.WireFormat;
import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.block.HostView;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.channel.Closing;
import io.cuvette.internal.channel.PoolHandle;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.ordered.FreeingStreams;
import io.cuvette.internal.paged.PageExport;
import io.cuvette.internal.paged.PageFiles;
import io.cuvette.internal.pool.Chunks;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.ThreadState;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.sim.internal.share.ProcessId;
import io.cuvette.sim.internal.share.SharedRing;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Rules of small classes that no other test is about. */
@Timeout(60)
class SmallRulesTest {
  private static final int REMEMBERED = 32;
  private static final ScopedValue<Integer> SCOPE = ScopedValue.newInstance();

  @Test
  void capture_isActiveWhileItIsValid() {
    assertThat(CaptureInfo.of(0, 7, 8)).isEqualTo(new CaptureInfo(0, 0, 0));
    assertThat(CaptureInfo.of(0, 0, 0).isActive()).isFalse();
    assertThat(CaptureInfo.of(1, 7, 8).isActive()).isTrue();
    assertThat(CaptureInfo.of(2, 7, 8).isActive()).isFalse();
    assertThat(CaptureInfo.of(2, 7, 8).isCapturing()).isTrue();
  }

  /** Its value is kept weakly: one that somebody has is found again. */
  @Test
  void closedValueOfAThread_isTheSameAsLongAsSomebodyHasIt() {
    List<Object> made = new ArrayList<>();
    PerThread<Object> values =
        new PerThread<>(() -> {
          made.add(new Object());
          return made.getLast();
        });
    Object first = values.get();
    values.close();
    assertThat(values.get()).isSameAs(first);
    assertThat(values.get()).isSameAs(first);
    assertThat(made).hasSize(1);
    Object mine = new Object();
    values.set(mine);
    assertThat(values.get()).isSameAs(mine);
    assertThat(values.get()).isSameAs(mine);
    assertThat(made).hasSize(1);
  }

  /** All are closed whatever the first says, and the first failure is the one reported. */
  @Test
  void descriptorsThatFailToClose_areAllClosed_andTheFirstFailureIsThrown() {
    List<Integer> closed = Collections.synchronizedList(new ArrayList<>());
    var calls =
        new FakeDescriptors() {
          @Override
          public void close(int descriptor) {
            closed.add(descriptor);
            if (descriptor != 2) {
              throw new IllegalStateException("close of " + descriptor);
            }
          }
        };
    assertThat(calls.isAvailable()).isTrue();
    assertThatThrownBy(() -> Closing.closeNow(calls, new int[] {1, 2, 3, 4}, 3))
        .hasMessage("close of 1");
    assertThat(closed).containsExactly(1, 2, 3);
    IllegalArgumentException failure = new IllegalArgumentException("mine");
    Closing.closeAfter(failure, calls, 2);
    assertThat(failure).hasNoSuppressedExceptions();
    // The thread that closes may need longer than it is waited for, on a busy machine.
    while (failure.getSuppressed().length == 0) {
      Closing.closeAfter(failure, calls, 4);
    }
    assertThat(failure.getSuppressed())
        .singleElement()
        .hasToString("java.lang.IllegalStateException: close of 4");
  }

  /** Waiting for the thread that closes takes it for a moment. */
  @Test
  void interruptOfAThreadThatCloses_staysWithIt() {
    Thread owner = Thread.currentThread();
    List<Integer> closed = Collections.synchronizedList(new ArrayList<>());
    var calls =
        new FakeDescriptors() {
          @Override
          public void close(int descriptor) {
            boolean _ = Await.until(() -> !owner.isInterrupted(), 1_000_000_000); // it waits then
            closed.add(descriptor);
          }
        };
    Thread.currentThread().interrupt();
    Closing.close(calls, new int[] {1, 2, 3}, 2);
    assertThat(Thread.interrupted()).isTrue();
    Await.until(() -> closed.size() == 2); // a thread of its own goes on on a busy machine
  }

  @Test
  void recordWhoseEntryIsUsedAgain_isNotDoneWithTheOldOne() {
    try (Arena arena = Arena.ofConfined()) {
      SharedRing ring = new SharedRing(arena.allocate(SharedRing.BYTES, 8));
      long first = ring.begin();
      ring.publish(first, ProcessId.current());
      ring.done(first);
      assertThat(ring.isDone(first)).isTrue();
      for (int i = 1; i < SharedRing.ENTRIES; i++) {
        assertThat(ring.begin()).isEqualTo(first + i);
      }
      long again = ring.begin();
      ring.publish(again, ProcessId.current());
      assertThat(ring.newest()).isEqualTo(again);
      assertThat(ring.isDone(again)).isFalse();
      assertThat(ring.isDone(first)).as("what has no entry any more").isTrue();
      ring.done(again);
      assertThat(ring.isDone(again)).isTrue();
    }
  }

  @Test
  void ring_takesTheCallsOfAllThreads() throws InterruptedException {
    TraceRing ring = new TraceRing(2);
    TracedCall call = new TracedCall(1, "main", "memAlloc()", null, null, 1, 2);
    for (int i = 0; i < 3; i++) {
      Thread.ofPlatform().daemon().start(() -> ring.accept(call)).join();
    }
    assertThat(ring.calls()).hasSize(2);
    assertThat(ring.dropped()).isEqualTo(1);
  }

  /** Else what is kept by number would grow for ever. */
  @Test
  void chunkThatGoes_leavesItsNumberToTheNext() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      Chunks chunks = new Chunks();
      for (int i = 0; i < 100; i++) {
        Memory memory = ((BufferBase) cuda.allocate(512)).memory();
        int number = chunks.add(memory, 512);
        assertThat(number).isZero();
        Objects.requireNonNull(chunks.remove(number)).giveBack();
      }
    }
  }

  @Test
  void lostContext_namesTheOperationThatTheProgramCalledLast() {
    FirstFailure failure = new FirstFailure();
    List<String> texts = new ArrayList<>();
    assertThatCode(() -> inner(failure, texts)).doesNotThrowAnyException();
    assertThat(texts).containsExactly("in inner");
  }

  private static void inner(FirstFailure failure, List<String> texts) {
    texts.add(failure.explain(CudaStatus.ILLEGAL_ADDRESS, "call()"));
  }

  /** A pool lives as long as its Cuda, and has seen any number of streams by then. */
  @Test
  void streamsThatAreOver_areNotRemembered() throws InterruptedException {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      FreeingStreams freeing = new FreeingStreams();
      List<CudaStream> streams = new ArrayList<>();
      for (int i = 0; i < REMEMBERED; i++) {
        streams.add(cuda.device(0).createStream());
        freeing.add(streams.getLast().state);
      }
      List<WeakReference<DriverStream>> gone = new ArrayList<>();
      streams.forEach(stream -> gone.add(new WeakReference<>(stream.state)));
      streams.forEach(CudaStream::close);
      streams.clear();
      freeing.add(cuda.device(0).nullStream().state);
      boolean areGone =
          Tries.isCollected(() -> {
            cuda.device(0).synchronize();
            return gone.stream().allMatch(each -> each.refersTo(null));
          });
      assertThat(areGone).isTrue();
      assertThat(freeing.areDone(null)).isTrue();
    }
  }

  /** A hook in a hook: the thread is inside the outer one still, when the inner one returns. */
  @Test
  void codeThatWasCalledInsideOther_leavesTheThreadInThat() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      ThreadState state = cuda.engine().session().state();
      state.enterCode("outer");
      state.enterCode("inner");
      state.leave();
      assertThatThrownBy(() -> state.checkOutsideCode("call")).hasMessageContaining("for outer");
      state.leave();
      state.checkOutsideCode("call");
    }
  }

  @Test
  void resourceThatIsCalledThroughAnother_isInsideItselfAllTheSame() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      ThreadState state = cuda.engine().session().state();
      state.enter("first");
      state.enter("second");
      assertThatThrownBy(() -> state.enter("first"))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("re-entrant allocation: first allocated from itself");
      state.leave();
      state.checkReentry("second");
      state.leave();
      state.checkReentry("first");
    }
  }

  @Test
  void memoryBesideWhatIsThere_doesNotOverlapIt() {
    Spans spans = new Spans();
    for (long start : new long[] {2048, 3072, 1024}) {
      assertThat(spans.add(start, 1024, "upstream's").start()).isEqualTo(start);
    }
    for (long start : new long[] {1023, 2047, 4095}) {
      assertThatThrownBy(() -> spans.add(start, 2, "upstream's"))
          .isInstanceOf(IllegalStateException.class);
    }
    assertThat(spans.bytes()).isEqualTo(3072);
    spans.clear();
    assertThat(spans.bytes()).isZero();
    assertThat(spans.add(1023, 2, "upstream's").bytes()).isEqualTo(2);
  }

  /** Else its memory is never given back. */
  @Test
  void arenaOfAViewThatTheDriverRefuses_isClosed() {
    List<Arena> arenas = new ArrayList<>();
    CudaOptions options = CudaOptions.simulated().withDecorator(sim -> withoutViews(sim, arenas));
    try (Cuda cuda = Cuda.open(options);
        PinnedBuffer buffer = cuda.allocatePinned(64)) {
      assertThatThrownBy(buffer::segment).hasMessageContaining("on purpose");
      assertThat(arenas).hasSize(1).noneMatch(each -> each.scope().isAlive());
    }
  }

  private static CudaDriver withoutViews(CudaDriver sim, List<Arena> arenas) {
    MemoryCalls memory =
        new ForwardingMemory(sim.memory()) {
          @Override
          public MemorySegment hostView(int device, long address, long bytes, Arena arena) {
            arenas.add(arena);
            throw new CudaException(CudaStatus.NOT_PERMITTED, "view", "on purpose");
          }
        };
    return new ForwardingDriver(sim) {
      @Override
      public MemoryCalls memory() {
        return memory;
      }
    };
  }

  @Test
  void bytes_haveTheUnitOfWhichThereIsOneAtLeast() {
    assertThat(ByteSize.format(1023)).isEqualTo("1023 B");
    assertThat(ByteSize.format(1024)).isEqualTo("1.00 KiB");
    assertThat(ByteSize.format(-(1L << 20))).isEqualTo("-1.00 MiB");
    assertThat(ByteSize.format(Long.MAX_VALUE)).isEqualTo("8.00 EiB");
  }

  /** Else what stands behind would be taken for the checksum, or be cut off. */
  @Test
  void valueOfAnotherSizeThanItsContent_isNotSealed() {
    for (int bytes : new int[] {0, 3, 4, 5, 8}) {
      ByteBuffer value = WireFormat.begin(1, WireFormat.HEADER_BYTES + bytes);
      if (bytes == Integer.BYTES) {
        assertThat(WireFormat.end(value)).hasSize(WireFormat.HEADER_BYTES + bytes);
      } else {
        assertThatThrownBy(() -> WireFormat.end(value))
            .isInstanceOf(AssertionError.class)
            .hasMessage(bytes + " bytes are left for the checksum");
      }
    }
  }

  /** The one that ends first began last. */
  @Test
  void waitForADevice_coversWhatBeganBefore() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      Device device = cuda.device(0).core();
      long first = device.beginWait();
      device.endWait(device.beginWait());
      device.endWait(first);
      assertThat(device.isAwaitedSince(first)).isTrue();
      assertThat(device.isAwaitedSince(device.waits())).isFalse();
    }
  }

  /** What was allocated for it is not left. */
  @Test
  void waitForADevice_whoseFreeFails_freesOnceMore() {
    AtomicInteger frees = new AtomicInteger();
    try (Cuda cuda =
        Cuda.open(CudaOptions.simulated().withDecorator(sim -> failingOnce(sim, frees)))) {
      Device device = cuda.device(0).core();
      assertThatThrownBy(device::awaitWork).hasMessageContaining("on purpose");
      assertThat(frees).hasValue(2);
      assertThat(device.awaitWork()).isTrue();
    }
  }

  private static CudaDriver failingOnce(CudaDriver sim, AtomicInteger frees) {
    MemoryCalls memory =
        new ForwardingMemory(sim.memory()) {
          @Override
          public void memFree(int device, long address) {
            if (frees.incrementAndGet() == 1) {
              throw new CudaException(CudaStatus.NOT_PERMITTED, "cuMemFree", "on purpose");
            }
            super.memFree(device, address);
          }
        };
    return new ForwardingDriver(sim) {
      @Override
      public MemoryCalls memory() {
        return memory;
      }
    };
  }

  @Test
  @SuppressWarnings("restricted")
  void byteBuffer_isAsLargeAsTheJdkMakesIt() {
    int most = Integer.MAX_VALUE - 8;
    MemorySegment all = MemorySegment.NULL.reinterpret(most + 1L); // which nobody reads
    assertThatThrownBy(all::asByteBuffer).isInstanceOf(IllegalStateException.class);
    assertThat(HostView.byteBuffer(all.asSlice(1)).capacity()).isEqualTo(most);
    assertThatThrownBy(() -> HostView.byteBuffer(all))
        .hasMessageContaining("2147483640 bytes (expected: <= 2147483639; take slices)");
  }

  @Test
  void numbersOfOptions_areGoodUpToTheirBounds() {
    CompilerOptions options = CompilerOptions.DEFAULTS;
    for (int good : new int[] {1, 255}) {
      assertThatCode(() -> options.withMaxRegisters(good)).doesNotThrowAnyException();
    }
    for (int wrong : new int[] {-1, 0, 256}) {
      assertThatThrownBy(() -> options.withMaxRegisters(wrong))
          .isInstanceOf(IllegalArgumentException.class);
    }
    LinkerOptions linked = LinkerOptions.of("sm_90");
    for (int level = 0; level <= 3; level++) {
      LinkerOptions fast = linked.withOptimization(level);
      assertThat(fast.flags()).containsOnlyKeys("-O" + level);
      assertThat(fast.withOptimization(0).flags()).containsOnlyKeys("-O0");
    }
    for (int good : new int[] {1, 2, 254, 255}) {
      assertThat(linked.withMaxRegisters(good).flags()).containsEntry("-maxrregcount", "" + good);
    }
    for (ThrowingCallable wrong :
        List.<ThrowingCallable>of(
            () -> linked.withOptimization(-1),
            () -> linked.withOptimization(4),
            () -> linked.withMaxRegisters(-1),
            () -> linked.withMaxRegisters(0),
            () -> GrowableOptions.ofMaxBytes(-1),
            () -> GrowableOptions.ofMaxBytes(0),
            () -> GrowableOptions.ofMaxBytes((1L << 47) + 1))) {
      assertThatThrownBy(wrong).isInstanceOf(IllegalArgumentException.class);
    }
    assertThatThrownBy(() -> linked.withMaxRegisters(256))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("registers: 256 (expected: 1 to 255)");
    assertThat(GrowableOptions.ofMaxBytes(1).maxBytes()).isEqualTo(1);
    assertThat(GrowableOptions.ofMaxBytes(1L << 47).maxBytes()).isEqualTo(1L << 47);
    assertThat(new MemoryLimit.Fraction(1).bytesOf(1000)).isEqualTo(1000);
    for (double wrong : new double[] {0, -0.1, 1.001, Double.NaN}) {
      assertThatThrownBy(() -> new MemoryLimit.Fraction(wrong))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void pages_areAsManyAsAMessageCanHave() {
    FakeDescriptors calls = new FakeDescriptors();
    UUID id = new UUID(1, 2);
    try (PoolHandle page = new PoolHandle(calls, calls.memoryFile("page", 0), null)) {
      for (int count : new int[] {1, PageHandles.MOST_PAGES}) {
        assertThat(PageHandles.of(pages(page, count), count, id, id).pages()).isEqualTo(count);
      }
      int more = PageHandles.MOST_PAGES + 1;
      assertThatThrownBy(() -> PageHandles.of(pages(page, more), more, id, id))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("PageHandles: 4097 pages (expected: at most 4096)");
    }
    assertThat(calls.open()).isEmpty();
  }

  /** The same page again and again, of a byte each. */
  private static PageExport pages(PoolHandle page, int count) {
    long[] sizes = new long[count];
    Arrays.fill(sizes, 1);
    return new PageExport(0, new PageFiles(Collections.nCopies(count, page), sizes));
  }

  /** What the library calls in between is part of it, and so is what Java does for it. */
  @Test
  void lostContext_namesTheOutermostOperation() {
    FirstFailure failures = new FirstFailure();
    String expected = "in lostContext_namesTheOutermostOperation";
    List<String> found = new ArrayList<>();
    found.add(innerOperation(failures));
    List.of(failures).forEach(each -> found.add(innerOperation(each)));
    found.add(Locked.get(new ReentrantLock(), () -> innerOperation(failures)));
    found.add(ScopedValue.where(SCOPE, 1).call(() -> innerOperation(failures)));
    assertThat(found)
        .hasSize(4)
        .allSatisfy(each -> assertThat(each).matches(expected + "($|; the first call .*)"));
  }

  private static String innerOperation(FirstFailure failures) {
    return failures.explain(CudaStatus.ILLEGAL_ADDRESS, "call");
  }

  @Test
  void ring_keepsACallAtLeast() {
    assertThatCode(() -> new TraceRing(1)).doesNotThrowAnyException();
    for (int wrong : new int[] {0, -1}) {
      assertThatThrownBy(() -> new TraceRing(wrong))
          .hasMessage("capacity: %d (expected: >= 1)".formatted(wrong));
    }
  }

  /** Who tries does without: any other failure is no answer. */
  @Test
  void sourceOfMemory_thatIsTried_givesNoneWhereMemoryIsOut() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      OpenStream stream = cuda.currentStream().core();
      for (CudaStatus status : CudaStatus.values()) {
        CudaException failure = new CudaException(status, "upstream", "the test's");
        ChunkSource source =
            (_, _) -> {
              throw failure;
            };
        if (status == CudaStatus.OUT_OF_MEMORY) {
          assertThat(source.tryAllocate(64, stream)).isNull();
        } else {
          assertThatThrownBy(() -> source.tryAllocate(64, stream)).isSameAs(failure);
        }
        assertThatThrownBy(() -> source.allocate(64, stream)).isSameAs(failure);
      }
    }
  }
}
