package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.devicepool.CachesOfStream;
import io.cuvette.internal.fence.CachingPool;
import io.cuvette.internal.fence.Relief;
import io.cuvette.internal.lifetime.Ending;
import io.cuvette.internal.pending.PendingFrees;
import io.cuvette.internal.pinnedpool.PinnedPoolCore;
import io.cuvette.internal.stream.Streams;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Pools release memory for each other as long as they have some, and are not kept any longer. */
class ReliefTest {
  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final Streams real = cuda.engine().streams();
  private final List<CachingPool> known = new ArrayList<>();
  private final Relief relief =
      (Relief)
          Proxy.newProxyInstance(
              Relief.class.getClassLoader(), new Class<?>[] {Relief.class}, this::note);
  private final Streams streams =
      new Streams(
          real.session(),
          real.listener(),
          relief,
          new PendingFrees<>(Ending::releaseAgain),
          CachesOfStream::new);

  private @Nullable Object note(Object proxy, Method method, @Nullable Object[] arguments)
      throws ReflectiveOperationException {
    switch (method.getName()) {
      case "add" -> known.add((CachingPool) arguments[0]);
      case "remove" -> known.remove((CachingPool) arguments[0]);
      default -> {
        return method.invoke(real.relief(), arguments);
      }
    }
    return null;
  }

  @AfterEach
  void close() {
    cuda.close();
  }

  private PinnedPoolCore pool() {
    PinnedAllocator upstream = cuda.directPinned();
    return new PinnedPoolCore(
        this,
        streams,
        new PinnedChunks(upstream, () -> upstream),
        MemoryLimit.none(),
        BufferKind.PINNED);
  }

  @Test
  void poolThatIsClosed_isKnownAsLongAsItHasMemory() {
    PinnedPoolCore pool = pool();
    assertThat(known).containsExactly(pool);
    PinnedBuffer buffer = (PinnedBuffer) pool.allocate(1, cuda.currentStream().core());
    PinnedPoolCore other = pool();
    ((PinnedBuffer) other.allocate(1, cuda.currentStream().core())).close();
    assertThat(known).containsExactly(pool, other);
    pool.close(this);
    other.close(this);
    assertThat(known).containsExactly(pool);
    buffer.close();
    assertThat(known).isEmpty();
  }
}
