package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.StreamCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingStreams;
import io.cuvette.internal.streamcache.CachedBlock;
import io.cuvette.internal.streamcache.StreamCache;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Which cached memory of other streams a request takes. */
class IdleStreamsTest {
  private static final long KIB = 1L << 10;

  private boolean busy;

  /** The one that is done all the same. */
  private @Nullable CudaStream idle;

  private final Set<Long> asked = new HashSet<>();

  /** What is done next between a stream's answer and who asked. */
  private Runnable afterQuery = () -> {};

  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(Busy::new));
  private final MemoryPool pool = new MemoryPool(cuda);
  private CudaStream one;
  private CudaStream two;
  private CudaStream three;

  /** Reachable: the end of one that the collector found asks whether it is done. */
  private final List<CudaStream> streams = new ArrayList<>();

  private CudaStream stream() {
    streams.add(cuda.device(0).createStream(StreamOptions.NON_BLOCKING));
    return streams.getLast();
  }

  @BeforeEach
  void makeStreams() {
    one = stream();
    two = stream();
    three = stream();
  }

  @AfterEach
  void closeAll() {
    cuda.close();
  }

  /** In whichever order they came back. */
  @Test
  void ofEqualBlocks_thoseOfTheStreamThatAllocatedFirst_areTaken() {
    busy = true;
    List<Buffer> blocks = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      blocks.add(pool.allocate(64 * KIB, stream()));
    }
    blocks.reversed().forEach(Buffer::close);
    streams.stream().filter(each -> each != three).forEach(three::waitFor);
    for (Buffer next : blocks) {
      assertThat(pool.allocate(64 * KIB, three).address()).isEqualTo(next.address());
    }
    assertThat(asked).isEmpty();
  }

  @Test
  void bestFitOverAllIdleStreams_isTaken() {
    Buffer large = pool.allocate(256 * KIB, one);
    Buffer fits = pool.allocate(64 * KIB, two);
    large.close();
    fits.close();
    try (Buffer taken = pool.allocate(60 * KIB, three)) {
      assertThat(taken.address()).isEqualTo(fits.address());
    }
    assertThat(pool.totalBytes()).isEqualTo(320 * KIB);
    assertThat(pool.stats().crossStreamReuses()).isEqualTo(1);
  }

  /** In whichever order they came back. */
  @Test
  void ofBlocksThatFitAlike_theOneOfTheStreamThatAllocatedFirst_isTaken() {
    Buffer first = pool.allocate(64 * KIB, two);
    Buffer second = pool.allocate(64 * KIB, one);
    pool.allocate(256 * KIB, two).close();
    second.close();
    first.close();
    try (Buffer taken = pool.allocate(64 * KIB, three);
        Buffer next = pool.allocate(64 * KIB, three)) {
      assertThat(taken.address()).isEqualTo(first.address());
      assertThat(next.address()).isEqualTo(second.address());
    }
  }

  @Test
  void partOfAChunk_isTakenBeforeAWholeChunkThatFitsWorse() {
    Buffer head = pool.allocate(64 * KIB, one);
    head.close();
    Buffer used = pool.allocate(32 * KIB, one);
    pool.allocate(256 * KIB, one).close();
    try (used;
        Buffer taken = pool.allocate(32 * KIB, two)) {
      assertThat(taken.address()).isEqualTo(used.address() + 32 * KIB);
    }
  }

  @Test
  void blockFarLargerThanTheRequest_staysWithItsStream() {
    pool.allocate(1024 * KIB, one).close();
    try (Buffer small = pool.allocate(8 * KIB, two);
        Buffer again = pool.allocate(1024 * KIB, one)) {
      assertThat(small.blockBytes() + again.blockBytes()).isEqualTo(1032 * KIB);
      assertThat(pool.totalBytes()).isEqualTo(1032 * KIB);
    }
  }

  /** The last that is not far larger. */
  @Test
  void blockOfEightTimesTheRequest_isTaken() {
    pool.allocate(512 * KIB, one).close();
    try (Buffer _ = pool.allocate(64 * KIB, two)) {
      assertThat(pool.totalBytes()).isEqualTo(512 * KIB);
      assertThat(pool.stats().crossStreamReuses()).isEqualTo(1);
    }
  }

  /** The block that fitted is gone when the stream has answered. */
  @Test
  void blockFarLargerThanTheRequest_isNotTakenInThePlaceOfOneThatFitted() {
    Buffer fits = pool.allocate(64 * KIB, one);
    Buffer large = pool.allocate(1024 * KIB, one);
    Buffer other = pool.allocate(8 * KIB, one);
    fits.close();
    large.close();
    afterQuery =
        () -> {
          assertThat(pool.allocate(64 * KIB, one).address()).isEqualTo(fits.address());
          other.close();
        };
    try (Buffer small = pool.allocate(60 * KIB, two)) {
      assertThat(small.address()).isNotEqualTo(large.address());
      assertThat(pool.totalBytes()).isEqualTo((64 + 1024 + 8 + 60) * KIB);
    }
  }

  @Test
  void blockFarLargerThanTheRequest_isTakenWhereThePoolCannotGrow() {
    pool.setLimit(cuda.device(0), new MemoryLimit.Bytes(1024 * KIB));
    Buffer head = pool.allocate(1024 * KIB, one);
    head.close();
    Buffer used = pool.allocate(8 * KIB, one);
    try (used;
        Buffer small = pool.allocate(8 * KIB, two)) {
      assertThat(small.address()).isEqualTo(used.address() + 8 * KIB);
      assertThat(pool.totalBytes()).isEqualTo(1024 * KIB);
    }
  }

  @Test
  void memoryOfABusyStream_isNotTaken() {
    busy = true;
    Buffer buffer = pool.allocate(64 * KIB, one);
    buffer.close();
    try (Buffer taken = pool.allocate(64 * KIB, two)) {
      assertThat(taken.address()).isNotEqualTo(buffer.address());
      assertThat(pool.totalBytes()).isEqualTo(128 * KIB);
    }
  }

  /** A miss asks eight streams at most: the next one asks those that come after them. */
  @Test
  void idleStreamBehindManyBusyOnes_hasItsTurn_withALaterMiss() {
    List<Buffer> freed = new ArrayList<>();
    for (int i = 0; i < 12; i++) {
      idle = stream();
      freed.add(pool.allocate(64 * KIB, idle));
    }
    freed.forEach(Buffer::close);
    busy = true;
    try (Buffer first = pool.allocate(64 * KIB, one);
        Buffer second = pool.allocate(64 * KIB, one)) {
      assertThat(freed).as("none is idle").noneMatch(free -> free.address() == first.address());
      assertThat(second.address()).isEqualTo(freed.getLast().address());
    }
  }

  @Test
  void streamWithoutABlockThatFits_isNotAsked_inThePlaceOfOneThatHasOne() {
    List<Buffer> freed = new ArrayList<>();
    for (int i = 0; i < 12; i++) {
      freed.add(pool.allocate(32 * KIB, stream()));
    }
    freed.add(pool.allocate(64 * KIB, two));
    freed.forEach(Buffer::close);
    asked.clear();
    try (Buffer _ = pool.allocate(64 * KIB, one)) {
      assertThat(pool.stats().crossStreamReuses()).isOne();
      assertThat(asked).containsExactly(two.state.handle);
    }
  }

  @Test
  void waitForAStream_isForWhatWasFreedBeforeIt_andNotForWhatIsFreedMeanwhile() {
    Buffer before = pool.allocate(64 * KIB, one);
    Buffer meanwhile = pool.allocate(64 * KIB, one);
    StreamCache arena = (StreamCache) ((CachedBlock) EngineMemory.of(before).block()).arena;
    before.close();
    arena.awaitFrees();
    assertThat(arena.fit(64 * KIB).isDone()).isTrue();
    afterQuery = meanwhile::close;
    arena.awaitFrees();
    assertThat(arena.fit(64 * KIB).isDone()).isFalse();
    arena.awaitFrees();
    assertThat(arena.fit(64 * KIB).isDone()).isTrue();
  }

  @Test
  void poolThatCloses_asAMissAsksAStream_growsNoMore() {
    Buffer used = pool.allocate(64 * KIB, two);
    pool.allocate(64 * KIB, one).close();
    afterQuery = pool::close;
    assertThatThrownBy(() -> pool.allocate(64 * KIB, two))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageEndingWith("is closed");
    assertThat(pool.totalBytes()).isEqualTo(used.blockBytes());
    used.close();
    assertThat(pool.totalBytes()).isZero();
  }

  /** The chunk has left the stream that had it, and comes to none. */
  @Test
  void streamThatCloses_asAMissAsksAnother_losesNoChunk() {
    pool.allocate(64 * KIB, two).close();
    pool.freeAllBlocks();
    long free = cuda.device(0).memoryInfo().freeBytes();
    pool.allocate(64 * KIB, one).close();
    afterQuery = two::close;
    assertThatThrownBy(() -> pool.allocate(64 * KIB, two))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage(two + " is closed");
    pool.assertConsistent();
    assertThat(pool.usedBytes()).isZero();
    pool.freeAllBlocks();
    assertThat(pool.totalBytes()).isZero();
    assertThat(cuda.device(0).memoryInfo().freeBytes()).isEqualTo(free);
  }

  @Test
  void smallBlocks_stayWithTheirStream() {
    pool.allocate(2 * KIB, one).close();
    try (Buffer taken = pool.allocate(2 * KIB, two)) {
      assertThat(taken.blockBytes()).isEqualTo(2 * KIB);
      assertThat(pool.totalBytes()).isEqualTo(4 * KIB);
      assertThat(pool.stats().crossStreamReuses()).isZero();
    }
  }

  @Test
  void blockOfTheLeastSizeForIt_isTakenOfAnotherStream() {
    pool.allocate(4 * KIB, one).close();
    try (Buffer _ = pool.allocate(4 * KIB, two)) {
      assertThat(pool.totalBytes()).isEqualTo(4 * KIB);
      assertThat(pool.stats().crossStreamReuses()).isOne();
    }
  }

  /** Streams that closed memory waits for are among the eight that a miss asks. */
  @Test
  void missThatAsksForClosedMemory_asksTheFewerStreamsForTheirs() {
    List<Buffer> closed = new ArrayList<>();
    for (int i = 0; i < 12; i++) {
      closed.add(pool.allocate(64 * KIB, stream()));
    }
    for (int i = 0; i < 5; i++) {
      Buffer waiting = pool.allocate(2 * KIB, one);
      waiting.fill((byte) 1, stream());
      closed.add(waiting);
    }
    busy = true;
    closed.forEach(Buffer::close);
    asked.clear();
    pool.allocate(64 * KIB, one).close();
    assertThat(asked).as("four for what is closed, four for theirs").hasSize(8);
  }

  /** A driver whose streams are never done while the test says so. */
  private final class Busy extends ForwardingDriver {
    Busy(CudaDriver driver) {
      super(driver);
    }

    private final StreamCalls streamCalls =
        new ForwardingStreams(delegate().streams()) {
          @Override
          public boolean streamQuery(int device, long stream) {
            boolean _ = asked.add(stream);
            boolean isBusy = busy && (idle == null || idle.handle() != stream);
            boolean isDone = !isBusy && super.streamQuery(device, stream);
            Runnable now = afterQuery;
            afterQuery = () -> {};
            now.run();
            return isDone;
          }
        };

    @Override
    public StreamCalls streams() {
      return streamCalls;
    }
  }
}
