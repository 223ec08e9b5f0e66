package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.instrument.TracingDriver;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.stream.DriverStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Everything that takes a stream refuses one that cannot be used, before the driver has it. */
@Timeout(60)
class StreamRefusalsTest {
  private static final int BYTES = 64;

  private final List<String> calls = new CopyOnWriteArrayList<>();
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.simulated()
              .withDecorator(driver -> TracingDriver.of(driver, call -> calls.add(call.call()))));
  private final CudaDevice device = cuda.device(0);
  private final CudaStream fine = device.createStream(StreamOptions.NON_BLOCKING);
  private final MemoryPool pool = new MemoryPool(cuda);
  private final DeviceMemoryResource resource = new DeviceMemoryResource(device);
  private final Buffer buffer = cuda.allocate(BYTES, fine);
  private final Buffer source = cuda.allocate(BYTES, fine);
  private final Buffer ofResource = resource.allocate(BYTES, fine);
  private final PinnedBuffer pinned = cuda.allocatePinned(BYTES);
  private final ManagedBuffer managed = cuda.allocateManaged(BYTES);
  private final MemorySegment host = Arena.ofAuto().allocate(BYTES);
  private final CudaEvent event = fine.record();
  private final CudaGraph graph = fine.capture(() -> {});
  private final CudaGraphExec executable = graph.instantiate();
  private final CopyBox box = CopyBox.of(BYTES / 4, 2).withSource(0, BYTES / 2);

  @AfterEach
  void close() {
    cuda.close();
  }

  private Map<String, Consumer<CudaStream>> ofStreams() {
    Map<String, Consumer<CudaStream>> all = new LinkedHashMap<>();
    all.put("isCapturing", CudaStream::isCapturing);
    all.put("isDone", CudaStream::isDone);
    all.put("synchronize", CudaStream::synchronize);
    all.put("record", CudaStream::record);
    all.put("record(event)", stream -> stream.record(event));
    all.put("event.record", event::record);
    all.put("waitFor(event)", stream -> stream.waitFor(event));
    all.put("waitFor(handle)", stream -> stream.waitFor(event.handle()));
    all.put("waitFor(stream)", stream -> stream.waitFor(fine));
    all.put("waitFor of it", fine::waitFor);
    all.put("capture", stream -> stream.capture(() -> {}));
    all.put("beginCapture", stream -> stream.beginCapture(CaptureOptions.DEFAULTS));
    all.put("endCapture", CudaStream::endCapture);
    all.put("captureCallback", stream -> stream.captureCallback(() -> {}));
    all.put("captureChild", stream -> stream.captureChild(graph));
    all.put("addCallback", stream -> stream.addCallback(() -> {}));
    all.put("onComplete", CudaStream::onComplete);
    all.put("use", CudaStream::use);
    all.put("launch of a graph", executable::launch);
    all.put("upload of a graph", executable::upload);
    all.put("useCublas", device::useCublas);
    return all;
  }

  private Map<String, Consumer<CudaStream>> ofBuffers() {
    Map<String, Consumer<CudaStream>> all = new LinkedHashMap<>();
    all.put("copyFrom", stream -> buffer.copyFrom(source, stream));
    all.put("copyTo", stream -> buffer.copyTo(source, stream));
    all.put("copyFrom(pinned)", stream -> buffer.copyFrom(pinned, stream));
    all.put("copyFrom(host)", stream -> buffer.copyFrom(host, stream));
    all.put("copyTo(host)", stream -> buffer.copyTo(host, stream));
    all.put("copyFromAsync", stream -> buffer.copyFromAsync(source, stream));
    all.put("copyToAsync", stream -> buffer.copyToAsync(source, stream));
    all.put("copyFromAsync(host)", stream -> buffer.copyFromAsync(host, stream));
    all.put("copyToAsync(host)", stream -> buffer.copyToAsync(host, stream));
    all.put("copyFrom(box)", stream -> buffer.copyFrom(source, box, stream));
    all.put("copyFrom(host, box)", stream -> buffer.copyFrom(pinned.segment(), box, stream));
    all.put("copyTo(host, box)", stream -> buffer.copyTo(pinned.segment(), box, stream));
    all.put("gatherFrom", stream -> buffer.gatherFrom(List.of(pinned.segment()), stream));
    all.put("scatterTo", stream -> buffer.scatterTo(List.of(pinned.segment()), stream));
    all.put("fill(byte)", stream -> buffer.fill((byte) 1, stream));
    all.put("fill(int)", stream -> buffer.fill(1, stream));
    all.put("fillShorts", stream -> buffer.fillShorts((short) 1, stream));
    all.put("fillInts", stream -> buffer.fillInts(1, stream));
    all.put("recordUse", buffer::recordUse);
    all.put("batch", stream -> CopyBatch.of(List.of(buffer), List.of(source)).copy(stream));
    all.put("prefetch", stream -> managed.prefetch(MemoryLocation.device(device), stream));
    all.put("allocate", stream -> cuda.allocate(BYTES, stream));
    all.put("pool.allocate", stream -> pool.allocate(BYTES, stream));
    all.put("resource.allocate", stream -> resource.allocate(BYTES, stream));
    all.put("resource.deallocate", stream -> resource.deallocate(ofResource, stream));
    return all;
  }

  /** The thread itself has a stream of that handle, which would be taken in its place. */
  @Test
  void streamOfAnotherThread_isRefused_whateverItIsFor() throws Exception {
    CudaStream theirs;
    try (ExecutorService other = Executors.newSingleThreadExecutor()) {
      theirs = other.submit(device::perThreadStream).get();
      calls.clear();
      checkRefused(theirs);
      assertThat(calls)
          .noneMatch(call -> call.matches("(mem|stream|launch|graphLaunch|eventRecord).*"));
    }
    CudaStream _ = device.perThreadStream(); // where it is found that the other thread has ended
    checkRefused(theirs);
    assertThat(buffer.isClosed()).isFalse();
  }

  private void checkRefused(CudaStream ofAnotherThread) {
    Map<String, Consumer<CudaStream>> all = ofStreams();
    all.putAll(ofBuffers());
    List.of("waitFor of it").forEach(all::remove); // which is there in the driver's own way
    all.forEach((name, call) ->
        assertThat(catchThrowable(() -> call.accept(ofAnotherThread)))
            .as(name)
            .isInstanceOf(WrongThreadException.class)
            .hasMessageStartingWith(ofAnotherThread.state + " belongs to "));
    assertThat(ofAnotherThread.state.ending().holds()).isZero();
  }

  @Test
  void streamThatIsClosed_isRefused_whateverItIsFor() {
    for (boolean isExposed : new boolean[] {false, true}) {
      CudaStream closed = device.createStream(StreamOptions.NON_BLOCKING);
      if (isExposed) {
        assertThat(closed.handle()).isNotZero();
      }
      closed.close();
      Map<String, Consumer<CudaStream>> all = ofStreams();
      all.putAll(ofBuffers());
      calls.clear();
      all.forEach((name, call) ->
          assertThat(catchThrowable(() -> call.accept(closed)))
              .as(name)
              .isInstanceOf(IllegalStateException.class)
              .hasMessageEndingWith("is closed"));
      assertThat(calls)
          .noneMatch(call -> call.matches("(mem|launch|graphLaunch|eventRecord).*"))
          .noneMatch(call -> call.contains(Long.toHexString(closed.state.handle)));
      checkSilent(closed.state, closed.state + " is closed");
    }
  }

  /** What is asked of a stream that has ended is answered without the driver. */
  private void checkSilent(DriverStream ended, String refusal) {
    calls.clear();
    assertThat(ended.ask(() -> true)).isFalse();
    assertThat(ended.isCapturing()).isFalse();
    assertThat(ended.capture()).isNull();
    assertThat(ended.capturing.captureAtEnd()).isNull();
    assertThatThrownBy(() -> ended.checkNotCapturing("a call", ""))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage(ended + " is closed");
    assertThatThrownBy(ended::hold).isInstanceOf(IllegalStateException.class).hasMessage(refusal);
    assertThat(calls).isEmpty();
  }

  @Test
  void streamsOfAClosedCuda_areRefused_andAnswerNothing() {
    List<CudaStream> streams =
        List.of(
            fine,
            device.nullStream(),
            device.perThreadStream(),
            device.wrapStream(fine.handle(), this),
            device.createStream());
    assertThat(streams).allMatch(stream -> stream.state.ask(() -> true));
    Map<String, Consumer<CudaStream>> all = ofStreams();
    all.remove("waitFor(handle)");
    cuda.close();
    String refusal = catchThrowable(cuda::checkOpen).getMessage();
    for (CudaStream stream : streams) {
      all.forEach((name, call) ->
          assertThat(catchThrowable(() -> call.accept(stream)))
              .as("%s of %s", name, stream)
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("closed"));
      checkSilent(stream.state, refusal);
      assertThat(stream.isClosed()).as("%s", stream).isNotEqualTo(stream.state.isBuiltIn());
    }
  }

  /** Each stream of a capture takes its own, and of that capture alone. */
  @Test
  void memoryOfACapture_isThatOfOneStreamInIt() {
    CudaStream other = device.createStream(StreamOptions.NON_BLOCKING);
    CudaStream apart = device.createStream(StreamOptions.NON_BLOCKING);
    fine.beginCapture(CaptureOptions.DEFAULTS);
    other.waitFor(fine);
    apart.beginCapture(CaptureOptions.DEFAULTS);
    Capture mine = Objects.requireNonNull(fine.state.capture());
    Capture theirs = Objects.requireNonNull(apart.state.capture());
    DriverStream ofFine = fine.state.streams.ofCapture(fine.state, mine);
    DriverStream ofOther = fine.state.streams.ofCapture(other.state, mine);
    DriverStream ofApart = fine.state.streams.ofCapture(apart.state, theirs);
    assertThat(fine.state.streams.ofCapture(fine.state, mine)).isSameAs(ofFine);
    assertThat(ofFine.isMemoryOf(fine.state, mine)).isTrue();
    assertThat(ofOther.isMemoryOf(other.state, mine)).isTrue();
    assertThat(ofApart.isMemoryOf(apart.state, theirs)).isTrue();
    assertThat(ofFine.isMemoryOf(other.state, mine)).isFalse();
    assertThat(ofOther.isMemoryOf(fine.state, mine)).isFalse();
    assertThat(ofApart.isMemoryOf(fine.state, mine)).isFalse();
    assertThat(ofFine.isMemoryOf(apart.state, theirs)).isFalse();
    assertThat(fine.state.isMemoryOf(fine.state, mine)).isFalse();
    for (DriverStream each : List.of(ofFine, ofOther, ofApart)) {
      assertThat(each.memoryOf()).isSameAs((each == ofApart ? theirs : mine).memory);
      assertThat(each.isOfCapture()).isTrue();
      assertThat(each.isForGraphs()).isTrue();
      calls.clear();
      assertThat(each.await()).as("nobody can wait for it").isFalse();
      assertThat(each.isIdle()).isFalse();
      assertThat(each.isClosing()).isFalse();
      assertThat(calls).isEmpty();
    }
    assertThat(fine.state.memoryOf()).isNull();
    other.record().close();
    fine.waitFor(other);
    fine.endCapture().close();
    apart.endCapture().close();
    device.createStream().close(); // which looks after captures that are over
    assertThat(List.of(ofFine, ofOther, ofApart)).allMatch(each -> each.isIdle() && each.isOver());
  }
}
