package io.cuvette.internal.pending;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.EngineMemory;
import io.cuvette.StreamOptions;
import io.cuvette.internal.stream.BareMemory;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.stream.StreamUse;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Queues end with their streams, and what comes too late is in none of them. */
@Timeout(60)
class FreeQueuesTest {
  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final CudaStream home = stream();
  private final CudaStream user = stream();
  private final CudaStream other = stream();
  private final FreeQueues<BareMemory> queues = new FreeQueues<>();

  private CudaStream stream() {
    return cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  }

  @AfterEach
  void close() {
    cuda.close();
  }

  private static DriverStream of(CudaStream stream) {
    return EngineMemory.streamOf(stream);
  }

  /** A closed block whose use is not known to be done. */
  private static BareMemory used(CudaStream home, CudaStream by) {
    BareMemory block = new BareMemory(of(home));
    block.use(of(by));
    assertThat(block.numberUses(of(home))).isTrue();
    return block;
  }

  private void addAndTake(CudaStream home, CudaStream by) {
    assertThat(queues.add(used(home, by), of(home))).isTrue();
    for (FreeQueue<BareMemory> each : queues.all()) {
      while (each.takeAny() != null) {}
    }
  }

  @Test
  void queuesOfStreamsThatAreClosed_areForgotten_asTheNextIsMade() {
    addAndTake(home, user);
    addAndTake(user, home);
    addAndTake(home, other);
    assertThat(queues.all()).hasSize(3);
    user.close();
    addAndTake(other, home);
    assertThat(queues.all()).hasSize(2).noneMatch(each -> each.user == of(user));
  }

  @Test
  void queueWithABlock_isKept_thoughItsStreamIsClosed() {
    BareMemory block = used(home, user);
    BareMemory late = used(home, user);
    assertThat(queues.add(block, of(home))).isTrue();
    user.close();
    addAndCount();
    assertThat(queues.add(late, of(home))).isTrue();
    assertThat(queues.all()).hasSize(2);
    FreeQueue<BareMemory> first = queues.all().iterator().next();
    assertThat(first.takeAny()).isSameAs(block);
    assertThat(first.takeAny()).isSameAs(late);
  }

  private void addAndCount() {
    assertThat(queues.add(used(home, other), of(home))).isTrue();
    assertThat(queues.all()).hasSize(2);
  }

  @Test
  void queueThatHasEnded_takesNothingMore_andOneOfOpenStreamsDoesNotEnd() {
    FreeQueue<BareMemory> queue = new FreeQueue<>(of(user), of(home));
    assertThat(queue.endIfOver()).isFalse();
    BareMemory block = used(home, user);
    StreamUse use = Objects.requireNonNull(block.uses());
    assertThat(queue.add(block, use)).isTrue();
    home.close();
    assertThat(queue.endIfOver()).isFalse();
    assertThat(queue.takeAny()).isSameAs(block);
    assertThat(queue.endIfOver()).isTrue();
    assertThat(queue.add(block, use)).isFalse();
    assertThat(queue.takeAny()).isNull();
  }
}
