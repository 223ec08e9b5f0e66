package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.index.Seeds;
import io.cuvette.internal.pending.PendingFrees;
import io.cuvette.internal.streamcache.CachedBlock;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Random frees, looks and waits: no block comes back before its streams, and all do after. */
@Timeout(60)
class PendingProgramsTest extends OrderingFixture {
  private static final int SEEDS = 15;
  private static final int STEPS = 120;
  private static final int STREAMS = 5;

  /** Frees blocks of one pool at random, and knows for which streams each has to wait. */
  private final class Program {
    private final SplittableRandom random;
    private final MemoryPool pool = new MemoryPool(cuda);
    private final List<CudaStream> streams = new ArrayList<>();
    private final Set<CudaStream> working = new HashSet<>();
    private final List<CachedBlock> given = new ArrayList<>();
    private final PendingFrees<CachedBlock> pending = new PendingFrees<>(this::give);

    /** With the streams that have not been idle since it was closed. */
    private final Map<CachedBlock, Set<CudaStream>> closed = new LinkedHashMap<>();

    /** All streams that used a block, but the one in whose order it goes back. */
    private final Map<CachedBlock, Set<CudaStream>> used = new HashMap<>();

    /** Reachable: the collector takes back what is not. */
    private final List<Buffer> buffers = new ArrayList<>();

    Program(SplittableRandom random) {
      this.random = random;
      for (int i = 0; i < STREAMS; i++) {
        streams.add(stream());
      }
    }

    private void give(CachedBlock block) {
      assertThat(closed.remove(block)).as("given back early, or twice").isEmpty();
      given.add(block);
    }

    void run() {
      for (int i = 0; i < STEPS; i++) {
        step(random.nextInt(12));
        assertThat(pending.blocks()).isEqualTo(closed.size());
        assertThat(pending.bytes())
            .isEqualTo(closed.keySet().stream().mapToLong(CachedBlock::blockBytes).sum());
        assertThat(pending.requestedBytes())
            .isEqualTo(closed.keySet().stream().mapToLong(CachedBlock::requestedBytes).sum());
        assertThat(pending.isEmpty()).isEqualTo(closed.isEmpty());
      }
      streams.forEach(this::finish);
      pending.poll();
      assertThat(closed).isEmpty();
    }

    private void step(int what) {
      CudaStream any = streams.get(random.nextInt(STREAMS));
      switch (what) {
        case 0, 1, 2, 3, 4 -> free(any);
        case 5, 6 -> finish(any);
        case 7 -> begin(any);
        case 8 -> pending.pollKnown();
        case 9 -> pollSome(1 + random.nextInt(3));
        case 10 -> pollAll();
        default -> awaitOne();
      }
    }

    private void begin(CudaStream stream) {
      busy.begin(stream);
      working.add(stream);
    }

    private void finish(CudaStream stream) {
      busy.finish(stream);
      working.remove(stream);
      closed.values().forEach(each -> each.remove(stream));
    }

    private void free(CudaStream of) {
      buffers.add(pool.allocate(random.nextLong(1, 5000), of));
      CachedBlock block = (CachedBlock) ((BufferBase) buffers.getLast()).block();
      Set<CudaStream> users = new HashSet<>();
      for (CudaStream each : streams) {
        if (random.nextInt(3) == 0) {
          block.use(each.state);
          users.add(each);
        }
      }
      CudaStream order = streams.get(random.nextInt(STREAMS));
      boolean isUnordered = random.nextInt(6) == 0;
      users.add(of);
      if (!isUnordered) {
        users.remove(order);
      }
      used.put(block, Set.copyOf(users));
      users.retainAll(working);
      closed.put(block, users);
      pending.free(block, isUnordered ? null : order.state);
    }

    private void pollSome(int most) {
      Set<CudaStream> wanted = new HashSet<>();
      closed.keySet().forEach(each -> wanted.addAll(used.getOrDefault(each, Set.of())));
      assertThat(pending.poll(most)).isBetween(0, Math.min(most, wanted.size()));
    }

    private void pollAll() {
      pending.poll();
      for (CachedBlock each : closed.keySet()) {
        assertThat(used.get(each)).as("waits for nothing").containsAnyElementsOf(working);
      }
    }

    /** A wait for an event ends at once here: as if the stream had come to it. */
    private void awaitOne() {
      @Nullable CachedBlock wanted = null;
      for (CachedBlock each : closed.keySet()) {
        wanted = wanted == null || random.nextBoolean() ? each : wanted;
      }
      CachedBlock one = wanted;
      if (one == null) {
        assertThat(pending.<Boolean>await(() -> true)).as("there is nothing").isNull();
        return;
      }
      closed.values().forEach(Set::clear);
      assertThat(pending.await(() -> given.contains(one) ? one : null)).isSameAs(one);
      pending.poll();
      Map<CachedBlock, Set<CudaStream>> rest = new LinkedHashMap<>(closed);
      if (random.nextBoolean()) {
        assertThat(pending.<Boolean>await(() -> null)).isNull();
      } else {
        pending.await();
      }
      assertThat(closed).isEmpty();
      assertThat(given).containsAll(rest.keySet());
    }
  }

  @Test
  void blocks_comeBackOnceTheirStreamsAreDone_andAreCountedUntilThen() {
    Seeds.forEach(SEEDS, random -> new Program(random).run());
  }

  /** Its pool is torn down: nobody asks for it any more. */
  @Test
  void blocksOfEveryState_areForgotten_andNeverComeBack() {
    List<CachedBlock> given = new ArrayList<>();
    PendingFrees<CachedBlock> pending = new PendingFrees<>(given::add);
    MemoryPool pool = new MemoryPool(cuda);
    List<Buffer> buffers = new ArrayList<>();
    busy.begin(other);
    for (int i = 0; i < 4; i++) {
      buffers.add(pool.allocate(BYTES, home));
      CachedBlock block = (CachedBlock) ((BufferBase) buffers.getLast()).block();
      block.use(other.state);
      switch (i) {
        case 0 -> pending.free(block, home.state); // in a queue
        case 1 -> pending.free(block, null); // with an event
        case 2 -> pending.add(block);
        default -> { // there is no heap for an event
          busy.failAfter(0, new OutOfMemoryError("none left"));
          pending.free(block, null);
        }
      }
      assertThat(pending.blocks()).isEqualTo(i + 1);
    }
    for (int i = 0; i < 2; i++) {
      pending.clear();
      assertThat(pending.blocks()).isZero();
      assertThat(pending.bytes()).isZero();
      assertThat(pending.requestedBytes()).isZero();
      assertThat(pending.isEmpty()).isTrue();
      busy.finish(other);
      pending.poll();
      pending.await();
    }
    assertThat(given).isEmpty();
    assertThat(pending.blocks()).isZero();
  }
}
