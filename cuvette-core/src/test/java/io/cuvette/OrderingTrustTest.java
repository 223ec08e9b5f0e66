package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.Fit;
import io.cuvette.internal.streamcache.Request;
import io.cuvette.internal.streamcache.StreamCache;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which waits tell the pools that memory is in order, and which do not. */
@Timeout(60)
class OrderingTrustTest extends OrderingFixture {
  private static final int RACES = 2_000;

  /** Fewer have to do on a machine that is slow. */
  private static final long RACES_NANOS = TimeUnit.SECONDS.toNanos(20);

  @ParameterizedTest
  @EnumSource
  void eventOfWhichTheHandleIsKnown_isNotTrusted(Kind kind) {
    MemoryResource pool = pool(kind);
    Buffer buffer = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, other);
    busy.begin(other);
    try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
      event.record(other);
      assertThat(event.handle()).isNotZero();
      home.waitFor(event);
    }
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
  }

  /** It may do so before or after this one, which nothing tells. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void eventThatAnotherProcessCanRecord_isNotTrusted(boolean isRecordedBefore) {
    MemoryResource pool = pool(Kind.CACHING);
    Buffer buffer = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, other);
    busy.begin(other);
    EventOptions options = EventOptions.ORDER_ONLY.withInterprocess(true);
    try (CudaEvent event = cuda.device(0).createEvent(options)) {
      if (isRecordedBefore) {
        event.record(other);
        export(event);
      } else {
        export(event);
        event.record(other);
      }
      home.waitFor(event);
    }
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
    busy.finish(other);
    assertThat(stats(pool).pendingBytes()).isZero();
  }

  @ParameterizedTest
  @EnumSource
  void eventThatAnotherProcessRecordedAnew_doesNotTellOfTheFirstStream(Kind kind) {
    MemoryResource pool = pool(kind);
    Buffer buffer = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, other);
    busy.begin(other);
    CudaDevice device = cuda.device(0);
    EventDescriptor descriptor =
        new EventDescriptor(false, new UUID(7, 7), device.uuid(), new byte[64]);
    try (CudaEvent event = device.importEvent(descriptor)) {
      event.record(other);
      assertThat(event.isDone()).isFalse();
      cuda.driver().events().eventRecord(0, calls.imported.get(), home.state.handle);
      assertThat(event.isDone()).isTrue();
      event.synchronize();
    }
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
  }

  @ParameterizedTest
  @EnumSource
  void eventThatAGraphRecordedAnew_doesNotTellOfTheFirstStream(Kind kind) {
    MemoryResource pool = pool(kind);
    Buffer buffer = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, other);
    busy.begin(other);
    try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY);
        GraphDefinition definition = new GraphDefinition(cuda.device(0))) {
      GraphNode node = definition.root().record(event);
      long handle = ((GraphNodeParams.EventRecord) node.parameters()).event();
      event.record(other);
      assertThat(event.isDone()).isFalse();
      cuda.driver().events().eventRecord(0, handle, home.state.handle); // as the graph does
      assertThat(event.isDone()).isTrue();
    }
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
  }

  private static void export(CudaEvent event) {
    try {
      EventDescriptor _ = event.descriptor();
    } catch (CudaException e) {
      // there are no descriptors here; it may have been made all the same
    }
  }

  /** Who records last is known to the device alone. */
  @Test
  void eventRecordedByTwoThreadsAtOnce_isNotTakenForTheOtherRecord() throws InterruptedException {
    CudaStream third = stream();
    try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
      long start = System.nanoTime();
      for (int i = 0; i < RACES && System.nanoTime() - start < RACES_NANOS; i++) {
        long numberOfOther = other.state.clock.now();
        long numberOfThird = third.state.clock.now();
        CountDownLatch ready = new CountDownLatch(2);
        Thread beside = Thread.ofPlatform().start(() -> recordTogether(event, third, ready));
        recordTogether(event, other, ready);
        beside.join();
        home.waitFor(event);
        boolean isOther = calls.recordedLast.get() == other.state.handle;
        assertThat(knows(other, numberOfOther) && !isOther).as("round %d", i).isFalse();
        assertThat(knows(third, numberOfThird) && isOther).as("round %d", i).isFalse();
      }
    }
  }

  private static void recordTogether(CudaEvent event, CudaStream stream, CountDownLatch ready) {
    ready.countDown();
    Latches.spin(ready);
    event.record(stream);
  }

  /** Whether the first stream takes work of another one, noted with a number, as ordered. */
  private boolean knows(CudaStream stream, long number) {
    return home.state.clock.isAfter(stream.state.clock, number, Long.MAX_VALUE);
  }

  /** It orders what the graph does, and not what the stream does now. */
  @ParameterizedTest
  @EnumSource
  void waitInACapture_doesNotTellOfWorkBefore(Kind kind) {
    MemoryResource pool = pool(kind);
    Buffer buffer = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, other);
    busy.begin(other);
    try (CudaGraph graph =
        home.capture(() -> {
          other.waitFor(home);
          home.waitFor(other);
        })) {
      buffer.close();
      assertThat(graph.isClosed()).isFalse();
      assertThat(cuda.device(0).core().spareEvents.count())
          .as("events that the graph has")
          .isZero();
      assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
    }
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
    busy.finish(other);
    assertThat(stats(pool).pendingBytes()).isZero();
  }

  /** It is as late as the stream that it came to, which waits for its own one by now. */
  @Test
  void restOfAChunkThatMoved_isNotTakenForWhatTheNextStreamHadBefore() {
    MemoryPool pool = new MemoryPool(cuda);
    CudaStream third = stream();
    pool.allocate(BYTES / 4, home).close(); // so that it has an arena
    third.waitFor(home);
    Buffer whole = pool.allocate(4 * BYTES, other);
    whole.fill((byte) 1, other);
    whole.close();
    busy.begin(other);
    busy.begin(home);
    home.waitFor(other);
    other.close();
    try (Buffer part = pool.allocate(2 * BYTES, home);
        Buffer apart = pool.allocate(2 * BYTES, third)) {
      assertThat(part.address()).as("moved with the rest").isEqualTo(whole.address());
      assertThat(apart.address()).isNotEqualTo(whole.address() + 2 * BYTES);
    }
  }

  /** The answer of a stream is about what was there when it was asked. */
  @Test
  void restOfAChunkThatMoved_isNotTakenByWhoAskedBefore() {
    MemoryPool pool = new MemoryPool(cuda);
    Buffer large = pool.allocate(16 * BYTES, home);
    StreamCache arena = (StreamCache) ((CachedBlock) EngineMemory.of(large).block()).arena;
    large.close();
    Buffer whole = pool.allocate(18 * BYTES, other);
    whole.close();
    Fit before = arena.fit(BYTES);
    other.close();
    try (Buffer moved = pool.allocate(17 * BYTES, home)) {
      Request request = new Request(arena, BYTES, BYTES, stream().core(), new Refusals());
      assertThat(moved.address()).isEqualTo(whole.address());
      assertThat(arena.fit(BYTES).bytes()).as("the rest").isEqualTo(BYTES);
      assertThat(arena.lendTo(request, before)).isNull();
    }
  }

  /** Noted before the record, and queued after it. */
  @ParameterizedTest
  @EnumSource
  void workOfAThreadThatIsSlower_isNotCovered(Kind kind) {
    MemoryResource pool = pool(kind);
    Buffer buffer = pool.allocate(BYTES, home);
    busy.begin(other);
    calls.atFill.set(() -> home.waitFor(other));
    buffer.fill((byte) 1, other);
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
  }

  @ParameterizedTest
  @EnumSource
  void workOfAThreadThatIsQuickerThanTheEndOfTheRecord_isNotCovered(Kind kind) {
    MemoryResource pool = pool(kind);
    Buffer buffer = pool.allocate(BYTES, home);
    busy.begin(other);
    calls.afterRecord.set(() -> buffer.fill((byte) 1, other));
    home.waitFor(other);
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
  }

  @ParameterizedTest
  @EnumSource
  void memoryFreedAfterTheHandOver_isNotTaken(Kind kind) {
    MemoryResource pool = pool(kind);
    busy.begin(home);
    Buffer before = pool.allocate(BYTES, home);
    Buffer buffer = pool.allocate(BYTES << 4, home);
    Buffer last = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, home);
    last.close();
    other.waitFor(home);
    buffer.fill((byte) 2, home);
    buffer.close();
    before.close();
    Buffer again = pool.allocate(BYTES, home); // what was freed before is in the index now
    long held = stats(pool).heldBytes();
    Buffer next = pool.allocate(BYTES << 4, other);
    assertThat(stats(pool).heldBytes()).isGreaterThan(held);
    again.close();
    next.close();
  }

  /** The block has the use of either. */
  @ParameterizedTest
  @EnumSource
  void usesOfTwoStreamsWithOneHandle_areTwo(Kind kind) {
    MemoryResource pool = pool(kind);
    CudaStream first = stream();
    Buffer buffer = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, first);
    long handle = first.state.handle;
    first.close();
    calls.nextStream.set(handle);
    CudaStream next = stream();
    buffer.fill((byte) 1, next);
    busy.begin(next);
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
  }

  /** What it is waited for is another's than what the closed one did. */
  @ParameterizedTest
  @EnumSource
  void streamWithTheHandleOfAClosedOne_doesNotTellOfItsWork(Kind kind) {
    MemoryResource pool = pool(kind);
    CudaStream first = stream();
    Buffer buffer = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, first);
    busy.begin(first);
    long handle = first.state.handle;
    first.close();
    calls.nextStream.set(handle);
    CudaStream next = stream();
    assertThat(next.state.handle).isEqualTo(handle);
    home.waitFor(next);
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
    Buffer used = pool.allocate(BYTES, home);
    used.fill((byte) 1, next);
    used.close();
    busy.finish(next);
    assertThat(stats(pool).pendingBytes()).isZero();
  }

  @ParameterizedTest
  @EnumSource
  void eventRecordedAnewElsewhere_doesNotTellOfTheFirstStream(Kind kind) {
    MemoryResource pool = pool(kind);
    Buffer buffer = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, other);
    busy.begin(other);
    try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
      event.record(other);
      event.record(stream());
      home.waitFor(event);
    }
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
  }

  /** The device has recorded it in the other stream first, which nothing tells. */
  @ParameterizedTest
  @EnumSource
  void eventRecordedInTwoStreamsAtOnce_doesNotTellOfEither(Kind kind) {
    MemoryResource pool = pool(kind);
    Buffer buffer = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, other);
    busy.begin(other);
    try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
      calls.atRecord.set(() -> event.record(other));
      event.record(home);
      assertThat(event.isDone()).isTrue();
    }
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
  }

  /** The answer is of what the device has recorded by then. */
  @ParameterizedTest
  @EnumSource
  void eventRecordedAnewAsItIsAsked_doesNotTellOfTheFirstStream(Kind kind) {
    MemoryResource pool = pool(kind);
    Buffer buffer = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, other);
    busy.begin(other);
    try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
      event.record(other);
      calls.atQuery.set(() -> event.record(home));
      assertThat(event.isDone()).isTrue();
    }
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
  }

  @ParameterizedTest
  @EnumSource
  void eventRecordedAnewAsAStreamWaits_doesNotTellOfTheFirstStream(Kind kind) {
    MemoryResource pool = pool(kind);
    Buffer buffer = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, other);
    busy.begin(other);
    CudaStream third = stream();
    try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
      event.record(other);
      calls.atWait.set(() -> event.record(third));
      home.waitFor(event);
    }
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
  }

  /** What the driver has answered, or queued, is about the record before. */
  @ParameterizedTest
  @EnumSource
  void eventRecordedAnewBeforeACallReturns_doesNotTellOfTheSecondStream(Kind kind) {
    for (boolean asks : new boolean[] {true, false}) {
      MemoryResource pool = pool(kind);
      Buffer buffer = pool.allocate(BYTES, home);
      try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
        event.record(home);
        (asks ? calls.afterQuery : calls.afterWait)
            .set(() -> {
              buffer.fill((byte) 1, other);
              busy.begin(other);
              event.record(other);
            });
        if (asks) {
          assertThat(event.isDone()).isTrue();
        } else {
          home.waitFor(event);
        }
      }
      buffer.close();
      assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
      busy.finish(other);
    }
  }

  /** Somebody else may close the memory while the driver is about the wait. */
  @ParameterizedTest
  @EnumSource
  void waitThatIsNotMadeYet_isNotBelieved(Kind kind) {
    MemoryResource pool = pool(kind);
    Buffer buffer = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, other);
    busy.begin(other);
    AtomicLong pending = new AtomicLong();
    calls.atWait.set(() -> {
      buffer.close();
      pending.set(stats(pool).pendingBytes());
    });
    home.waitFor(other);
    assertThat(pending).hasValue(BYTES);
    assertThat(stats(pool).pendingBytes()).isZero();
  }

  @ParameterizedTest
  @EnumSource
  void waitThatTheDriverRefuses_isNotBelieved(Kind kind) {
    MemoryResource pool = pool(kind);
    Buffer buffer = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, other);
    busy.begin(other);
    calls.atWait.set(() -> {
      throw new CudaException(CudaStatus.INVALID_VALUE.code(), "cuStreamWaitEvent");
    });
    assertThatThrownBy(() -> home.waitFor(other)).isInstanceOf(CudaException.class);
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
  }

  @ParameterizedTest
  @EnumSource
  void recordThatTheDriverRefuses_leavesTheEventUnknown(Kind kind) {
    MemoryResource pool = pool(kind);
    try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
      event.record(other);
      Buffer buffer = pool.allocate(BYTES, home);
      buffer.fill((byte) 1, other);
      busy.begin(other);
      busy.refuse(1);
      assertThatThrownBy(() -> event.record(other)).isInstanceOf(CudaException.class);
      home.waitFor(event);
      buffer.close();
      assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
    }
  }

  @ParameterizedTest
  @EnumSource
  void streamThatIsFoundBusy_tellsOfNothing(Kind kind) {
    MemoryResource pool = pool(kind);
    Buffer buffer = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, other);
    busy.begin(other);
    assertThat(other.isDone()).isFalse();
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
  }

  /** What was queued before and after the record, as the wait comes later. */
  @ParameterizedTest
  @EnumSource
  void workAfterTheRecordOfAnEvent_isNotCovered(Kind kind) {
    MemoryResource pool = pool(kind);
    busy.begin(other);
    Buffer before = pool.allocate(BYTES, home);
    before.fill((byte) 1, other);
    Buffer after = pool.allocate(BYTES, home);
    try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
      event.record(other);
      after.fill((byte) 1, other);
      home.waitFor(event);
    }
    before.close();
    assertThat(stats(pool).pendingBytes()).isZero();
    after.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
  }

  @ParameterizedTest
  @EnumSource
  void workAfterTheHandOver_isNotCovered(Kind kind) {
    MemoryResource pool = pool(kind);
    busy.begin(other);
    Buffer buffer = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, other);
    home.waitFor(other);
    buffer.fill((byte) 2, other);
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
  }
}
