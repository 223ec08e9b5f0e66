package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** How many calls of the driver it costs to keep memory that several streams use in order. */
@Timeout(60)
class OrderingCostTest extends OrderingFixture {
  private static final int ROUNDS = 100;
  private static final int BLOCKS = 1000;
  private static final int STREAMS = 64;
  private static final int MOST_ASKED = 8;
  private static final int MOST_KEPT = 64;

  @ParameterizedTest
  @EnumSource
  void freesWithUsesOfABusyStream_recordNothing_andAskOnceWhetherItIs(Kind kind) {
    MemoryResource pool = pool(kind);
    List<Buffer> buffers = new ArrayList<>();
    for (int i = 0; i < ROUNDS; i++) {
      buffers.add(pool.allocate(BYTES, home));
      buffers.getLast().fill((byte) 1, other);
    }
    busy.begin(other);
    calls.reset();
    buffers.forEach(Buffer::close);
    assertThat(calls.records).hasValue(0);
    assertThat(calls.queries).hasValue(1);
    assertThat(stats(pool).pendingBytes()).isEqualTo(ROUNDS * BYTES);
  }

  @ParameterizedTest
  @EnumSource
  void aThousandPendingBlocks_areOneQuestion(Kind kind) {
    MemoryResource pool = pool(kind);
    List<Buffer> buffers = new ArrayList<>();
    for (int i = 0; i < BLOCKS; i++) {
      buffers.add(pool.allocate(BYTES, home));
      buffers.getLast().fill((byte) 1, other);
    }
    busy.begin(other);
    buffers.forEach(Buffer::close);
    calls.reset();
    Buffer first = pool.allocate(BYTES << 8, home);
    assertThat(calls.queries.get() + calls.records.get()).isBetween(1, 2);
    calls.reset();
    Buffer second = pool.allocate(BYTES << 8, home);
    assertThat(calls.queries).hasValue(1);
    assertThat(calls.records).hasValue(0);
    assertThat(stats(pool).pendingBytes()).isEqualTo(BLOCKS * BYTES);
    busy.finish(other);
    assertThat(stats(pool).pendingBytes()).isZero();
    first.close();
    second.close();
  }

  /**
   * A block of two streams waits for one after the other; the second is asked about earlier work
   * first, whose event says nothing of what the block waits for. Whichever of them is the first.
   */
  @ParameterizedTest
  @EnumSource
  void blockOfTwoStreamsThatAreDone_comesBackWithOneLook(Kind kind) {
    MemoryResource pool = pool(kind);
    CudaStream third = stream();
    for (CudaStream askedBefore : List.of(other, third)) {
      busy.begin(other);
      busy.begin(third);
      closeUsedBy(pool, askedBefore);
      assertThat(stats(pool).pendingBytes()).as("marks its work").isEqualTo(BYTES);
      closeUsedBy(pool, other, third);
      closeUsedBy(pool, third, other);
      busy.finish(other);
      busy.finish(third);
      assertThat(stats(pool).pendingBytes()).as("%s before", askedBefore).isZero();
    }
  }

  private void closeUsedBy(MemoryResource pool, CudaStream... users) {
    try (Buffer buffer = pool.allocate(BYTES, home)) {
      for (CudaStream user : users) {
        buffer.fill((byte) 1, user);
      }
    }
  }

  /**
   * Whether the last use, the close and the wait of the first stream come in one order or other.
   */
  @ParameterizedTest
  @EnumSource
  void pipelineOfTwoStreams_recordsOneEventForEachHandOver(Kind kind) {
    MemoryResource pool = pool(kind);
    busy.begin(home);
    busy.begin(other);
    for (int order = 0; order < 3; order++) {
      calls.reset();
      long held = 0;
      for (int i = 0; i < ROUNDS; i++) {
        Buffer buffer = pool.allocate(BYTES, home);
        buffer.fill((byte) 1, home);
        other.waitFor(home);
        buffer.fill((byte) 2, other);
        if (order == 0) {
          buffer.close();
          home.waitFor(other);
        } else if (order == 1) {
          home.waitFor(other);
          buffer.close();
        } else {
          try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
            event.record(other);
            buffer.close();
            home.waitFor(event);
          }
        }
        held = i == 0 ? stats(pool).heldBytes() : held;
        calls.queries.set(i == 0 ? 0 : calls.queries.get());
      }
      assertThat(calls.records).as("order %d", order).hasValueLessThanOrEqualTo(2 * ROUNDS + 1);
      assertThat(calls.queries).as("order %d", order).hasValue(0);
      assertThat(calls.creates).as("order %d", order).hasValueLessThan(order < 2 ? 3 : ROUNDS + 3);
      assertThat(stats(pool).heldBytes()).as("order %d", order).isEqualTo(held);
    }
  }

  @ParameterizedTest
  @EnumSource
  void memoryOfAStreamThatIsWaitedFor_isTakenWithoutAQuestion(Kind kind) {
    MemoryResource pool = pool(kind);
    busy.begin(home);
    Buffer kept = pool.allocate(BYTES, home);
    Buffer buffer = pool.allocate(BYTES << 4, home);
    Buffer last = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, home);
    buffer.close();
    last.close();
    Buffer again = pool.allocate(BYTES, home); // what was freed before is in the index now
    long held = stats(pool).heldBytes();
    other.waitFor(home);
    calls.reset();
    Buffer next = pool.allocate(BYTES << 4, other);
    assertThat(calls.queries).hasValue(0);
    assertThat(calls.records).hasValue(0);
    assertThat(stats(pool).heldBytes()).isEqualTo(held);
    List.of(kept, again, next).forEach(Buffer::close);
  }

  @ParameterizedTest
  @EnumSource
  void memoryOfAStreamThatWasFoundDone_orWaitedFor_isFreeWithoutAQuestion(Kind kind) {
    MemoryResource pool = pool(kind);
    List<Runnable> ways = List.of(() -> assertThat(other.isDone()).isTrue(), other::synchronize);
    for (Runnable way : ways) {
      Buffer buffer = pool.allocate(BYTES, home);
      buffer.fill((byte) 1, other);
      way.run();
      calls.reset();
      buffer.close();
      assertThat(stats(pool).pendingBytes()).isZero();
      assertThat(calls.queries).hasValue(0);
      assertThat(calls.records).hasValue(0);
    }
  }

  @ParameterizedTest
  @EnumSource
  void memoryUsedBeforeAnEventThatWasFoundDone_orWaitedFor_isFreeWithoutAQuestion(Kind kind) {
    MemoryResource pool = pool(kind);
    try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
      List<Runnable> ways = List.of(() -> assertThat(event.isDone()).isTrue(), event::synchronize);
      for (Runnable way : ways) {
        Buffer buffer = pool.allocate(BYTES, home);
        buffer.fill((byte) 1, other);
        event.record(other);
        way.run();
        calls.reset();
        buffer.close();
        assertThat(stats(pool).pendingBytes()).isZero();
        assertThat(calls.queries).hasValue(0);
        assertThat(calls.records).hasValue(0);
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void eventThatIsRecordedAgain_tellsAsMuchAsTheFirstTime(Kind kind) {
    MemoryResource pool = pool(kind);
    busy.begin(other);
    try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
      for (int i = 0; i < 3; i++) {
        Buffer buffer = pool.allocate(BYTES, home);
        buffer.fill((byte) 1, other);
        event.record(other);
        home.waitFor(event);
        buffer.close();
        assertThat(stats(pool).pendingBytes()).as("record %d", i).isZero();
      }
    }
    assertThat(calls.queries).hasValue(0);
  }

  /** What a mark of one stream tells nothing of, another one records next. */
  @ParameterizedTest
  @EnumSource
  void eventsOfMarks_areRecordedAgain(Kind kind) {
    MemoryResource pool = pool(kind);
    for (int i = 0; i < ROUNDS; i++) {
      CudaStream user = i % 2 == 0 ? home : other;
      Buffer buffer = pool.allocate(BYTES, stream());
      buffer.fill((byte) 1, user);
      busy.begin(user);
      buffer.close();
      assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
      busy.finish(user);
      assertThat(stats(pool).pendingBytes()).isZero();
    }
    assertThat(calls.creates).hasValue(1);
    assertThat(calls.records).hasValue(ROUNDS);
  }

  @ParameterizedTest
  @EnumSource
  void eventsThatAreKept_areFew_andGoWithTheCachedMemory(Kind kind) {
    MemoryResource pool = pool(kind);
    List<CudaStream> users = new ArrayList<>();
    for (int i = 0; i < 2 * MOST_KEPT; i++) {
      users.add(stream());
      Buffer buffer = pool.allocate(BYTES, home);
      buffer.fill((byte) 1, users.getLast());
      busy.begin(users.getLast());
      buffer.close();
    }
    assertThat(stats(pool).pendingBytes()).isEqualTo(2 * MOST_KEPT * BYTES);
    assertThat(calls.live).as("one mark for each stream").hasValue(2 * MOST_KEPT);
    users.forEach(busy::finish);
    assertThat(stats(pool).pendingBytes()).isZero();
    assertThat(calls.live).hasValue(MOST_KEPT);
    if (pool instanceof MemoryPool caching) {
      caching.freeAllBlocks();
    } else {
      ((ElasticMemoryPool) pool).freeAllBlocks();
    }
    assertThat(calls.live).hasValue(0);
    other.waitFor(home);
    assertThat(calls.live).hasValue(1);
  }

  @ParameterizedTest
  @EnumSource
  void missWithManyBusyStreams_asksEightAtMost(Kind kind) {
    MemoryResource pool = pool(kind);
    List<Buffer> buffers = new ArrayList<>();
    for (int i = 0; i < STREAMS; i++) {
      CudaStream stream = stream();
      buffers.add(pool.allocate(BYTES << 4, stream));
      buffers.getLast().fill((byte) 1, stream);
      busy.begin(stream);
    }
    buffers.forEach(Buffer::close);
    calls.reset();
    pool.allocate(BYTES << 4, home).close();
    assertThat(calls.queries.get() + calls.records.get()).isLessThanOrEqualTo(MOST_ASKED);
    for (int i = 0; i < STREAMS; i++) { // which have memory pending as well
      CudaStream user = stream();
      busy.begin(user);
      Buffer used = pool.allocate(BYTES, home);
      used.fill((byte) 1, user);
      used.close();
    }
    calls.reset();
    pool.allocate(BYTES << 5, home).close();
    assertThat(calls.queries).as("of both together").hasValueLessThanOrEqualTo(MOST_ASKED);
  }
}
