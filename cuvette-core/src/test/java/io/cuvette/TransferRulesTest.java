package io.cuvette;

import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.EventCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.instrument.TracingDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What copies and fills refuse before the driver has anything of them, and what they cost. */
@Timeout(30)
class TransferRulesTest {
  private static final int BYTES = 64;
  private static final int MANY_BYTES = 5_000_000;

  private final List<String> calls = new CopyOnWriteArrayList<>();
  private boolean failsToMakeAnEvent;
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.DEFAULTS
              .withDriver(SimulatedDriver.open(SimulatedOptions.DEFAULTS.withDevices(3)))
              .withDecorator(
                  driver -> TracingDriver.of(new Failing(driver), call -> calls.add(call.call()))));
  private final CudaStream stream = cuda.device(0).createStream();
  private final Buffer buffer = cuda.allocate(BYTES, stream);

  @AfterEach
  void close() {
    cuda.close();
  }

  private long count(String call) {
    return calls.stream().filter(each -> each.startsWith(call)).count();
  }

  private void assertRefused(ThrowingCallable operation, Class<?> as, String... words) {
    calls.clear();
    assertThatThrownBy(operation).isInstanceOf(as).hasMessageContainingAll(words);
    assertThat(count("memcpy") + count("memset")).as("queued: %s", calls).isZero();
  }

  @Test
  void nativeMemory_isCopiedOnStreamsOfTheBuffersDeviceAlone() {
    CudaStream other = cuda.device(1).createStream();
    String expected = "(expected: a stream of %s)".formatted(cuda.device(0));
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment host = arena.allocate(BYTES);
      assertRefused(() -> buffer.copyFrom(host, other), IllegalArgumentException.class, expected);
      assertRefused(() -> buffer.copyTo(host, other), IllegalArgumentException.class, expected);
      assertRefused(() -> buffer.fill((byte) 1, other), IllegalArgumentException.class, expected);
    }
  }

  @Test
  void copyBetweenDevices_isOnAStreamOfOneOfThem_whichMayUseTheOther() {
    CudaStream second = cuda.device(1).createStream();
    CudaStream third = cuda.device(2).createStream();
    Buffer far = cuda.allocate(BYTES, second);
    assertRefused(
        () -> far.copyFrom(buffer, third),
        IllegalArgumentException.class,
        "(expected: a stream of %s or %s)".formatted(cuda.device(1), cuda.device(0)));
    buffer.fill((byte) 1, stream);
    stream.synchronize();
    far.copyFrom(buffer, second);
    assertThat(count("ctxEnablePeerAccess(")).isPositive();
    assertThat(count("memcpyPeerAsync(")).isOne();
    second.synchronize();
  }

  /** Host memory fits every device, but not the device memory that it is copied from or to. */
  @Test
  void hostMemory_isCopiedOnAnyStream_andDeviceMemoryOnItsOwn() {
    CudaStream other = cuda.device(1).createStream();
    PinnedBuffer host = cuda.allocatePinned(BYTES);
    PinnedBuffer second = cuda.allocatePinned(BYTES);
    host.fill((byte) 7, other);
    second.copyFrom(host, other);
    other.synchronize();
    assertThat(second.segment().get(ValueLayout.JAVA_BYTE, BYTES - 1)).isEqualTo((byte) 7);
    CudaStream third = cuda.device(2).createStream();
    for (ThrowingCallable call :
        List.<ThrowingCallable>of(
            () -> buffer.copyFrom(host, third), () -> host.copyFrom(buffer, third))) {
      assertRefused(call, IllegalArgumentException.class, "expected: a stream of ");
    }
  }

  /** Whose copies go through a stream of the device that has the memory, which it joins again. */
  @Test
  void memoryOfADeviceThatLetsOthersIn_isCopiedByOneCall_andOtherMemoryByAStreamBetween() {
    CudaStream there = cuda.device(1).createStream(StreamOptions.NON_BLOCKING);
    var pool = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    try (Scope _ = cuda.device(1).use();
        Buffer plain = MemoryResource.direct().allocate(BYTES, stream);
        Buffer pooled = pool.allocate(BYTES, stream);
        PinnedBuffer host = cuda.allocatePinned(BYTES)) {
      stream.synchronize();
      for (boolean isLetIn : new boolean[] {false, true}) {
        if (isLetIn) {
          pool.peerAccessibleBy().add(cuda.device(1));
        }
        for (Buffer each : List.of(plain, pooled)) {
          calls.clear();
          host.copyFrom(each, there);
          each.copyFrom(host, there);
          boolean isDirect = isLetIn || each.equals(plain);
          assertThat(count("streamCreate")).as("of %s", each).isEqualTo(isDirect ? 0 : 2);
          assertThat(count("memcpyAsync(")).as("of %s", each).isEqualTo(2);
          there.synchronize();
        }
      }
    }
    stream.synchronize();
  }

  /** The stream between could not go before the capture ends. */
  @Test
  void copyForADeviceThatIsNotLetIn_isRefusedInACapture_whichGoesOn() {
    CudaStream there = cuda.device(1).createStream(StreamOptions.NON_BLOCKING);
    var pool = new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    try (Scope _ = cuda.device(1).use();
        Buffer plain = MemoryResource.direct().allocate(BYTES, stream);
        Buffer pooled = pool.allocate(BYTES, stream);
        PinnedBuffer host = cuda.allocatePinned(BYTES)) {
      stream.synchronize();
      there.beginCapture(CaptureOptions.DEFAULTS);
      for (ThrowingCallable call :
          List.<ThrowingCallable>of(
              () -> host.copyFrom(pooled, there), () -> pooled.copyFrom(host, there))) {
        assertRefused(
            call,
            IllegalStateException.class,
            "copy: %s is capturing a graph, and its device has no access to the pool of %s"
                .formatted(there, cuda.device(0)));
        assertThat(count("streamCreate")).isZero();
      }
      host.copyFrom(plain, there);
      try (CudaGraph graph = there.endCapture()) {
        assertThat(graph.nodes().nodes()).hasSize(1);
      }
    }
    stream.synchronize();
  }

  /** And takes no memory, but where devices are not let in. */
  @Test
  void fill_isOneCallOfTheDriver_whateverTheMemoryIs() {
    for (Buffer filled :
        List.of(
            buffer,
            buffer.slice(1, BYTES - 1),
            cuda.allocatePinned(BYTES),
            cuda.directPinned().allocate(BYTES),
            MemoryResource.managed().allocate(BYTES, stream))) {
      for (long bytes : new long[] {1, filled.byteSize()}) {
        calls.clear();
        filled.slice(0, bytes).fill((byte) 1, stream);
        assertThat(count("memset")).as("of %s", filled).isOne();
        assertThat(count("memcpy") + count("memAlloc")).as("of %s", filled).isZero();
      }
    }
    stream.synchronize();
  }

  /** Else it would be in the graph, and the wait for it would be refused after that. */
  @Test
  void waitingCallsInAStreamThatCaptures_addNothingToTheGraph() {
    Buffer source = cuda.allocate(BYTES, stream);
    CudaDriver others = cuda.driver();
    others.captures().streamBeginCapture(0, stream.handle(), 2);
    try (Scope _ = stream.use()) {
      for (ThrowingCallable call :
          List.<ThrowingCallable>of(
              () -> buffer.copyFrom(source),
              () -> buffer.fill((byte) 1),
              () -> buffer.copyFrom(MemorySegment.ofArray(new byte[BYTES])),
              () -> buffer.copyTo(MemorySegment.ofArray(new byte[BYTES])))) {
        assertRefused(call, IllegalStateException.class, "is capturing a graph");
      }
    }
    others.graphs().graphDestroy(others.captures().streamEndCapture(0, stream.handle()));
  }

  /** The stream is waited for, where a chunk is enough: nobody asks whether it is done. */
  @Test
  void heapCopyOfOneChunk_isTwoCalls() {
    for (int bytes : new int[] {1, 4 << 10, (64 << 10) + 1}) {
      MemorySegment heap = MemorySegment.ofArray(new byte[bytes]);
      assertTwoCalls(bytes, "memcpyAsync(", buffer -> buffer.copyFrom(heap));
      assertTwoCalls(bytes, "memcpyAsync(", buffer -> buffer.copyTo(heap));
    }
    assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
  }

  /** The driver stages few bytes for a device, and is slow with them on their way back. */
  @Test
  void copyOfLittleNativeMemory_isTwoCalls() {
    for (int bytes : new int[] {1, 4 << 10, 64 << 10}) {
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment direct = arena.allocate(bytes);
        assertTwoCalls(bytes, "memcpyHtoDAsync(", buffer -> buffer.copyFrom(direct));
        assertTwoCalls(bytes, "memcpyAsync(", buffer -> buffer.copyTo(direct));
      }
    }
  }

  /** As its own functions do with it, which need not wait. */
  @Test
  void memoryThatOthersPageLocked_isGivenToTheDriver() {
    int bytes = 200_000;
    MemorySegment locked = Arena.ofAuto().allocate(bytes);
    cuda.driver().memory().memHostRegister(0, locked, 0);
    try (Scope _ = stream.use();
        Buffer buffer = cuda.allocate(bytes, stream)) {
      for (ThrowingCallable in :
          List.<ThrowingCallable>of(
              () -> buffer.copyFrom(locked), () -> buffer.copyFrom(locked, stream))) {
        assertOneCopy("memcpyHtoDAsync(", in);
      }
      for (ThrowingCallable out :
          List.<ThrowingCallable>of(
              () -> buffer.copyTo(locked), () -> buffer.copyTo(locked, stream))) {
        assertOneCopy("memcpyDtoHAsync(", out);
      }
    }
    stream.synchronize();
    cuda.driver().memory().memHostUnregister(0, locked.address());
  }

  private void assertOneCopy(String call, ThrowingCallable copy) {
    calls.clear();
    assertThatCode(copy).doesNotThrowAnyException();
    assertThat(calls.stream().filter(each -> each.startsWith("memcpy")).toList())
        .singleElement()
        .asString()
        .startsWith(call);
  }

  /** Nobody here knows how long it stays, nor that it is all page-locked, nor that it is there. */
  @Test
  void memoryThatIsPageLockedInPart_orOfAFile_isNotGivenToTheDriver(@TempDir Path folder)
      throws IOException {
    int bytes = 200_000;
    MemorySegment memory = Arena.ofAuto().allocate(2 * bytes);
    MemorySegment mapped;
    try (FileChannel file = FileChannel.open(folder.resolve("file"), CREATE_NEW, READ, WRITE)) {
      mapped = file.map(FileChannel.MapMode.READ_WRITE, 0, bytes, Arena.ofAuto());
    }
    cuda.driver().memory().memHostRegister(0, mapped, 0);
    try (Scope _ = stream.use();
        PinnedBuffer _ = cuda.registerHost(memory.asSlice(0, bytes));
        Buffer buffer = cuda.allocate(bytes, stream)) {
      for (MemorySegment host : List.of(memory.asSlice(bytes / 2, bytes), mapped)) {
        host.fill((byte) 5);
        calls.clear();
        buffer.copyFrom(host, stream);
        buffer.copyFrom(host);
        host.fill((byte) 6);
        buffer.copyTo(host, stream);
        buffer.copyTo(host);
        assertThat(count("memcpyHtoD") + count("memcpyDtoH")).as("of %s", host).isZero();
        assertThat(host.toArray(ValueLayout.JAVA_BYTE)).containsOnly(5);
      }
    }
    cuda.driver().memory().memHostUnregister(0, mapped.address());
  }

  /** Its owner may have closed the arena, and what is page-locked there is the driver's word. */
  @Test
  @SuppressWarnings("restricted")
  void memoryThatOthersPageLocked_isRefusedAsAnyOther() {
    int bytes = 200_000;
    Buffer large = cuda.allocate(bytes, stream);
    MemorySegment locked = Arena.ofAuto().allocate(bytes);
    cuda.driver().memory().memHostRegister(0, locked, 0);
    MemorySegment closed;
    try (Arena arena = Arena.ofConfined()) {
      closed = MemorySegment.ofAddress(locked.address()).reinterpret(bytes, arena, null);
    }
    Class<?> state = IllegalStateException.class;
    String isClosed = "the arena of %s is closed".formatted(closed);
    assertRefused(() -> large.copyTo(closed), state, "target: " + isClosed);
    assertRefused(() -> large.copyFrom(closed), state, "source: " + isClosed);
    assertRefused(
        () -> large.copyTo(locked.asReadOnly()),
        IllegalArgumentException.class,
        "target: ",
        "is read-only");
    large.close();
    assertRefused(() -> large.copyTo(locked), state, "is closed");
    assertRefused(() -> large.copyFrom(locked), state, "is closed");
  }

  private void assertTwoCalls(int bytes, String copy, Consumer<Buffer> work) {
    try (Scope _ = stream.use();
        Buffer buffer = cuda.allocate(bytes, stream)) {
      work.accept(buffer); // which brings the page-locked memory
      calls.clear();
      work.accept(buffer);
      assertThat(calls).as("%d bytes", bytes).hasSize(2);
      assertThat(calls.getFirst()).startsWith(copy);
      assertThat(calls.getLast()).startsWith("streamSynchronize(");
    }
  }

  @Test
  void heapCopyThatFindsNoEvent_givesItsChunksBack_andSaysWhatWasWritten() {
    failsToMakeAnEvent = true;
    try (Scope _ = stream.use();
        Buffer large = cuda.allocate(MANY_BYTES, stream)) {
      MemorySegment heap = MemorySegment.ofArray(new byte[MANY_BYTES]);
      assertThatThrownBy(() -> large.copyFrom(heap))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("copy of %d bytes to the device", MANY_BYTES)
          .hasMessageContaining("written");
      failsToMakeAnEvent = false;
    }
    assertThat(cuda.defaultPinnedMemoryPool().stats().allocations()).isPositive();
    assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
  }

  private final class Failing extends ForwardingDriver {
    private final EventCalls eventCalls;

    Failing(CudaDriver delegate) {
      super(delegate);
      this.eventCalls =
          new ForwardingEvents(delegate.events()) {
            @Override
            public long eventCreate(int device, int flags) {
              if (failsToMakeAnEvent) {
                throw new CudaException(CudaStatus.OUT_OF_MEMORY, "cuEventCreate", "on purpose");
              }
              return super.eventCreate(device, flags);
            }
          };
    }

    @Override
    public EventCalls events() {
      return eventCalls;
    }
  }
}
