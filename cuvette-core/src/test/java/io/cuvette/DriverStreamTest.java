package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.StreamCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingMemory;
import io.cuvette.instrument.ForwardingStreams;
import io.cuvette.instrument.TracingDriver;
import io.cuvette.internal.stream.DriverStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the library asks about a stream, and what is left of one that is closed. */
@Timeout(60)
class DriverStreamTest {
  private final List<String> calls = new CopyOnWriteArrayList<>();
  private @Nullable BusyDriver made;
  private @Nullable CudaStatus failure;
  private @Nullable Runnable atCreate;
  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(this::decorated));
  private final BusyDriver driver = Objects.requireNonNull(made);
  private final CudaDevice device = cuda.device(0);
  private final CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);

  private CudaDriver decorated(CudaDriver simulated) {
    made = new BusyDriver(new Failing(simulated));
    return TracingDriver.of(made, call -> calls.add(call.call()));
  }

  /** Fails frees of memory, if it is told with what, and is not alone as it makes a stream. */
  private final class Failing extends ForwardingDriver {
    Failing(CudaDriver delegate) {
      super(delegate);
    }

    private final MemoryCalls memoryCalls =
        new ForwardingMemory(delegate().memory()) {
          @Override
          public void memFree(int device, long address) {
            CudaStatus as = failure;
            if (as != null) {
              failure = null;
              throw new CudaException(as, "cuMemFree", "on purpose");
            }
            super.memFree(device, address);
          }
        };

    @Override
    public MemoryCalls memory() {
      return memoryCalls;
    }

    private final StreamCalls streamCalls =
        new ForwardingStreams(delegate().streams()) {
          @Override
          public long streamCreateWithPriority(int device, int flags, int priority) {
            Runnable first = atCreate;
            atCreate = null;
            if (first != null) {
              first.run();
            }
            return super.streamCreateWithPriority(device, flags, priority);
          }
        };

    @Override
    public StreamCalls streams() {
      return streamCalls;
    }
  }

  @AfterEach
  void close() {
    driver.finish(stream);
    cuda.close();
  }

  private static String hex(long handle) {
    return Long.toHexString(handle);
  }

  private List<String> callsAbout(long handle) {
    return calls.stream()
        .filter(call -> call.matches(".*\\b(0x%s|%d)\\b.*".formatted(hex(handle), handle)))
        .toList();
  }

  private long count(String call) {
    return calls.stream().filter(each -> each.startsWith(call + "(")).count();
  }

  @Test
  void closedStream_isNotAskedAnyMore() {
    long handle = stream.state.handle;
    device.synchronize();
    assertThat(callsAbout(handle)).isNotEmpty();
    stream.close();
    assertThat(callsAbout(handle).getLast()).startsWith("streamDestroy(");
    calls.clear();
    device.synchronize();
    device.createStream().close();
    assertThat(stream.state.isIdle()).isTrue();
    assertThat(stream.state.marker()).isNull();
    assertThat(callsAbout(handle)).isEmpty();
  }

  @Test
  void busyStreamThatIsClosed_isIdleWhenItsWorkIsDone_andLeavesNoEvent() {
    stream.handle(); // asked through marks from now on
    driver.begin(stream);
    assertThat(stream.state.isIdle()).isFalse();
    assertThat(driver.liveEvents()).isOne();
    stream.close();
    assertThat(stream.state.isIdle()).isFalse();
    assertThat(stream.state.isOver()).isFalse();
    assertThat(stream.state.marker()).isNotNull();
    driver.finish(stream);
    cuda.engine().streams().ended().pollAll();
    assertThat(driver.liveEvents()).isZero();
    assertThat(stream.state.isOver()).isTrue();
  }

  /** Whoever opens or closes a stream looks after those that were closed before. */
  @Test
  void eventsOfClosedStreams_goWithTheNextStreams() {
    CudaStream next = device.createStream(StreamOptions.NON_BLOCKING);
    driver.begin(stream);
    stream.close();
    assertThat(driver.liveEvents()).isOne();
    driver.finish(stream);
    next.close();
    assertThat(driver.liveEvents()).isZero();
  }

  @Test
  void deviceThatIsWaitedFor_waitsForClosedStreamsToo() {
    driver.begin(stream);
    stream.close();
    assertThat(driver.waits()).isZero();
    device.synchronize();
    assertThat(driver.waits()).isOne();
    assertThat(driver.liveEvents()).isZero();
  }

  @Test
  void sideStream_isMadeOnce_andEndsWithTheOther() {
    CudaStream before = device.createStream();
    DriverStream side = stream.state.side.get();
    long created = count("streamCreateWithPriority");
    assertThat(stream.state.side.get()).isSameAs(side);
    assertThat(count("streamCreateWithPriority")).isEqualTo(created).isPositive();
    assertThat(side.handle).isNotEqualTo(before.state.handle).isNotEqualTo(stream.state.handle);
    stream.close();
    assertThat(side.isClosed()).isTrue();
    assertThat(callsAbout(side.handle).getLast()).startsWith("streamDestroy(");
  }

  @Test
  void sideStreamThatTwoMakeAtOnce_isOne_andTheOtherEnds() {
    List<DriverStream> first = new ArrayList<>();
    atCreate = () -> first.add(stream.state.side.get());
    assertThat(stream.state.side.get()).isSameAs(first.getFirst());
    assertThat(count("streamDestroy")).isOne();
    assertThat(callsAbout(first.getFirst().handle)).noneMatch(call -> call.contains("Destroy"));
  }

  @Test
  void waitForAStreamOfNobodyElse_isTheDriversOwn() {
    stream.synchronize();
    assertThat(count("streamSynchronize")).isOne();
    assertThat(count("eventCreate")).isZero();
    assertThat(stream.isDone()).isTrue();
    assertThat(count("streamQuery")).isOne();
  }

  /** Such a question would invalidate a capture that begins at this moment. */
  @Test
  void streamThatOthersKnow_isNeverAskedItself() {
    stream.handle();
    calls.clear();
    assertThat(stream.isDone()).isTrue();
    stream.synchronize();
    device.synchronize();
    assertThat(stream.state.isIdleSoon()).isTrue();
    stream.close();
    assertThat(count("streamQuery")).isZero();
    assertThat(count("streamSynchronize")).isZero();
  }

  /** A mark that is not reached stays the one that is asked for, once for each question. */
  @Test
  void busyStreamThatOthersKnow_isMarkedOnce() {
    stream.handle();
    assertThat(stream.state.isIdle()).isTrue();
    driver.begin(stream);
    calls.clear();
    for (int i = 0; i < 3; i++) {
      assertThat(stream.state.isIdle()).isFalse();
    }
    assertThat(count("eventCreate")).isOne();
    assertThat(count("eventQuery")).isEqualTo(3);
  }

  /** A device takes a moment to come to an event in an idle stream. */
  @Test
  void idleStreamThatOthersKnow_hasAMomentToSaySo() {
    stream.handle();
    driver.begin(stream);
    driver.atNextQuery(() -> driver.atNextQuery(() -> driver.finish(stream)));
    assertThat(stream.state.isIdleSoon()).isTrue();
    assertThat(driver.liveEvents()).isZero();
  }

  @Test
  void markThatCouldNotBeAskedFor_isAskedForLater() {
    stream.handle();
    driver.begin(stream);
    driver.atNextQuery(DriverStreamTest::fail);
    assertThatThrownBy(stream.state::isIdle).isInstanceOf(CudaException.class);
    assertThat(driver.liveEvents()).isOne();
    driver.finish(stream);
    assertThat(stream.state.isIdle()).isTrue();
    assertThat(driver.liveEvents()).isZero();
  }

  @Test
  void markOfAStreamThatIsClosedMeanwhile_isGivenBack() {
    stream.handle();
    driver.begin(stream);
    driver.atNextQuery(stream::close);
    assertThat(stream.state.isIdle()).isFalse();
    assertThat(stream.isClosed()).isTrue();
    driver.finish(stream);
    cuda.engine().streams().ended().pollAll();
    assertThat(driver.liveEvents()).isZero();
  }

  @Test
  void closedStreamThatCannotBeAsked_isNotOver() {
    driver.begin(stream);
    stream.close();
    driver.finish(stream);
    driver.atNextQuery(DriverStreamTest::fail);
    assertThat(stream.state.isOver()).isFalse();
    assertThat(stream.state.isOver()).isTrue();
  }

  private static void fail() {
    throw new CudaException(CudaStatus.UNKNOWN, "cuEventQuery", "on purpose");
  }

  /** Such a question costs a call for each copy and fill in the null stream. */
  @Test
  void nullStream_isNotAskedForCaptures_untilSomebodyCouldBeginOne() {
    CudaStream shared = device.nullStream();
    try (Buffer buffer = cuda.allocate(64, shared)) {
      buffer.fill((byte) 1, shared);
      assertThat(count("streamIsCapturing")).isZero();
      stream.handle();
      buffer.fill((byte) 1, shared);
      assertThat(count("streamIsCapturing")).isPositive();
    }
  }

  @Test
  void whetherAStreamBlocks_isAskedOnce_andOnlyOfOthers() {
    assertThat(stream.isNonBlocking()).isTrue();
    try (CudaStream blocking = device.createStream()) {
      assertThat(blocking.isNonBlocking()).isFalse();
    }
    assertThat(device.nullStream().isNonBlocking()).isFalse();
    assertThat(count("streamGetFlags")).isZero();
    long handle = cuda.driver().streams().streamCreateWithPriority(0, 1, 0);
    CudaStream wrapped = device.wrapStream(handle, this);
    assertThat(wrapped.isNonBlocking()).isTrue();
    assertThat(wrapped.isNonBlocking()).isTrue();
    assertThat(count("streamGetFlags")).isOne();
    wrapped.close();
    cuda.driver().streams().streamDestroy(0, handle);
  }

  @Test
  void blockingStreamOfOthers_isNoNonBlockingOne() {
    long handle = cuda.driver().streams().streamCreateWithPriority(0, 0, 0);
    CudaStream wrapped = device.wrapStream(handle, this);
    assertThat(wrapped.isNonBlocking()).isFalse();
    assertThat(wrapped.isNonBlocking()).isFalse();
    assertThat(count("streamGetFlags")).isOne();
    wrapped.close();
    cuda.driver().streams().streamDestroy(0, handle);
  }

  @Test
  void wrappedStream_endsWithItsLastWrapper_andIsNotDestroyed() {
    long handle = cuda.driver().streams().streamCreateWithPriority(0, 1, 0);
    CudaStream one = device.wrapStream(handle, this);
    CudaStream two = device.wrapStream(handle, this);
    assertThat(one).isEqualTo(two).hasSameHashCodeAs(two);
    one.close();
    one.close();
    assertThat(one.isClosed()).isTrue();
    assertThat(two.isClosed()).isFalse();
    assertThatThrownBy(one::synchronize).hasMessageEndingWith("is closed");
    two.synchronize();
    two.close();
    assertThat(two.state.isClosed()).isTrue();
    CudaStream later = device.wrapStream(handle, this);
    assertThat(later).isNotEqualTo(two);
    assertThat(later.isClosed()).isFalse();
    later.close();
    assertThat(count("streamDestroy")).isZero();
  }

  @Test
  void capturingStream_cannotBeAskedOrWaitedFor_butIsNotDone() {
    cuda.driver().captures().streamBeginCapture(0, stream.handle(), 2);
    assertThat(stream.state.isCapturing()).isTrue();
    assertThat(stream.state.isIdle()).isFalse();
    assertThat(stream.state.isIdleSoon()).isFalse();
    assertThat(stream.state.awaitWork()).isFalse();
    assertThatThrownBy(stream::synchronize).hasMessageContaining("is capturing a graph");
    cuda.driver()
        .graphs()
        .graphDestroy(cuda.driver().captures().streamEndCapture(0, stream.handle()));
    assertThat(stream.state.isCapturing()).isFalse();
    assertThat(stream.state.awaitWork()).isTrue();
    stream.synchronize();
  }

  /** The capture is not its own: the driver would refuse to end it, and may crash. */
  @Test
  void streamThatJoinedACapture_doesNotEndItAsItIsClosed() {
    CudaStream other = device.createStream(StreamOptions.NON_BLOCKING);
    stream.beginCapture(CaptureOptions.DEFAULTS);
    other.waitFor(stream);
    other.close();
    assertThat(count("streamEndCapture")).isZero();
    assertThat(stream.isCapturing()).isTrue();
    stream.endCapture().close();
  }

  /** No event marks its work, so that only a wait for the device tells. */
  @Test
  void streamThatIsClosedWhileItCaptures_isIdleOnceTheDeviceWasWaitedFor() {
    CudaDriver others = cuda.driver();
    long handle = others.streams().streamCreateWithPriority(0, 1, 0);
    CudaStream wrapped = device.wrapStream(handle, this);
    others.captures().streamBeginCapture(0, handle, 2);
    wrapped.close();
    assertThat(wrapped.state.isIdle()).isFalse();
    others.graphs().graphDestroy(others.captures().streamEndCapture(0, handle));
    assertThat(wrapped.state.isIdle()).isFalse();
    device.synchronize();
    assertThat(wrapped.state.isIdle()).isTrue();
  }

  @Test
  void cudaThatCloses_endsCapturesOfItsStreams_andNotOfOthers() {
    CudaDriver others = cuda.driver();
    long handle = others.streams().streamCreateWithPriority(0, 1, 0);
    device.wrapStream(handle, this);
    others.captures().streamBeginCapture(0, handle, 2);
    others.captures().streamBeginCapture(0, stream.handle(), 2);
    calls.clear();
    cuda.close();
    assertThat(calls.stream().filter(call -> call.startsWith("streamEndCapture(")))
        .singleElement()
        .satisfies(call -> assertThat(callsAbout(stream.state.handle)).contains(call));
  }

  /** Idle memory of the driver's pools goes back in order of its stream, which must be there. */
  @Test
  void idleMemory_isGivenBackBeforeItsStreamEnds() {
    DeviceMemoryResource resource =
        new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS);
    resource.allocate(1 << 20, stream).close();
    resource.allocate(1 << 20, device.createStream()).close(); // that of others stays
    assertThat(count("memFreeAsync")).isZero();
    stream.close();
    List<String> order =
        calls.stream()
            .filter(call -> call.startsWith("memFreeAsync(") || call.startsWith("streamDestroy("))
            .toList();
    assertThat(order)
        .satisfiesExactly(
            first -> assertThat(first).startsWith("memFreeAsync("),
            last -> assertThat(last).startsWith("streamDestroy("));
  }

  @Test
  void cachedMemoryOfAClosedStream_isEverybodys() {
    Buffer first = cuda.allocate(4096, stream);
    first.close();
    stream.close();
    try (CudaStream next = device.createStream(StreamOptions.NON_BLOCKING);
        Buffer again = cuda.allocate(4096, next)) {
      assertThat(again.address()).isEqualTo(first.address());
    }
  }

  @Test
  void memoryThatStaysCached_keepsNoForgottenStreamReachable() {
    CudaStream stands = stream.forUpstream();
    assertThat(stands).isNotSameAs(stream).isEqualTo(stream);
    CudaStream nobodys = device.nullStream();
    assertThat(nobodys.forUpstream()).isSameAs(nobodys);
  }

  /** It may wait for the callback, so it does not wait. */
  @Test
  void waitInsideACallback_leavesItsMarkToOthers() {
    driver.begin(stream);
    List<Boolean> waited = new ArrayList<>();
    try (CudaStream other = device.createStream(StreamOptions.NON_BLOCKING)) {
      other.addCallback(() -> waited.add(stream.state.await())).join();
    }
    assertThat(waited).containsExactly(false);
    driver.finish(stream);
    cuda.engine().streams().ended().pollAll();
    assertThat(driver.liveEvents()).isZero();
  }

  @Test
  void waitThatFails_leavesItsMarkToOthers() {
    stream.handle();
    driver.begin(stream);
    stream.close();
    failure = CudaStatus.INVALID_VALUE;
    assertThatThrownBy(device::synchronize).isInstanceOf(CudaException.class);
    driver.finish(stream);
    device.synchronize();
    assertThat(driver.liveEvents()).isZero();
  }

  /** Else what must not be done in a capture would become a part of the graph. */
  @Test
  void streamThatCaptures_isNotAsked() {
    stream.capture(() -> assertThat(stream.state.ask(() -> true)).isFalse()).close();
    assertThat(stream.state.ask(() -> true)).isTrue();
    assertThat(stream.state.ask(() -> false)).isFalse();
    try (CudaStream blocking = device.createStream()) {
      CudaStream none = device.nullStream(); // which takes turns with it
      blocking.capture(() -> assertThat(none.state.ask(() -> true)).isFalse()).close();
      assertThat(none.state.ask(() -> true)).isTrue();
    }
  }

  /** Memory that lives long sees many come and go. */
  @Test
  void streamsThatAreClosed_areForgottenByMemoryTheyUsed() {
    try (Buffer buffer = cuda.allocate(512, stream)) {
      for (int i = 0; i < 200; i++) {
        try (CudaStream other = device.createStream(StreamOptions.NON_BLOCKING)) {
          buffer.recordUse(other);
        }
      }
      int uses = 0;
      for (var use = ((BufferBase) buffer).block().uses(); use != null; use = use.next()) {
        uses++;
      }
      assertThat(uses).isBetween(1, 100);
    }
  }

  /** Else its end would wait for a call that is over. */
  @Test
  void workOfTheNullStream_thatIsRefusedBesideACapture_doesNotHoldIt() {
    CudaStream blocking = device.createStream();
    CudaStream nullStream = device.nullStream();
    Buffer buffer = cuda.allocate(512, nullStream);
    blocking
        .capture(() ->
            assertThatThrownBy(() -> buffer.fill((byte) 1, nullStream))
                .isInstanceOf(IllegalStateException.class))
        .close();
    assertThat(nullStream.state.ending().holds()).isZero();
  }
}
