package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingMemory;
import io.cuvette.internal.callback.CallbackFlags;
import io.cuvette.internal.session.Device;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The words that streams wait at are used again, lie in their memory, and end with it. */
class CallbackFlagsTest {
  private static final int WORDS = (64 << 10) / Integer.BYTES;

  /** What the driver gave, which it keeps: what is written too late is seen. */
  private final List<MemorySegment> given = new ArrayList<>();

  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(this::keeping));
  private final Device device = CudaDevice.coreOf(cuda.device(0));
  private final CallbackFlags flags = new CallbackFlags(cuda.engine().session());

  private CudaDriver keeping(CudaDriver driver) {
    MemoryCalls memory =
        new ForwardingMemory(driver.memory()) {
          @Override
          public MemorySegment memHostAlloc(int device, long bytes, int flags) {
            given.add(super.memHostAlloc(device, bytes, flags));
            return given.getLast();
          }

          @Override
          public void memFreeHost(int device, long address) {}
        };
    return new ForwardingDriver(driver) {
      @Override
      public MemoryCalls memory() {
        return memory;
      }

      @Override
      public void close() {}
    };
  }

  @AfterEach
  void close() {
    cuda.close();
  }

  @Test
  void wordThatIsReleased_isTakenAgain() {
    for (int i = 0; i < 2 * WORDS; i++) {
      flags.take(device).release();
    }
    assertThat(given).hasSize(1);
  }

  @Test
  void moreWordsThanTheirMemoryHas_areInMore() {
    List<CallbackFlags.Flag> all = new ArrayList<>();
    for (int i = 0; i < WORDS; i++) {
      all.add(flags.take(device));
    }
    assertThat(given).hasSize(1);
    all.add(flags.take(device));
    assertThat(given).hasSize(2);
    all.forEach(CallbackFlags.Flag::release);
    for (int i = 0; i < WORDS; i++) {
      assertThat(given.getFirst().getAtIndex(ValueLayout.JAVA_INT, i)).isOne();
    }
    assertThat(given.getLast().get(ValueLayout.JAVA_INT, 0)).isOne();
    Set<CallbackFlags.Flag> again = new HashSet<>();
    for (int i = 0; i <= WORDS; i++) {
      again.add(flags.take(device));
    }
    assertThat(again).as("each once").hasSize(WORDS + 1);
    assertThat(again.containsAll(all)).isTrue();
    assertThat(given).hasSize(2);
  }

  /** The driver has their memory back then. */
  @Test
  void wordThatIsReleasedAfterTheEnd_isLeftAlone() throws InterruptedException {
    CallbackFlags.Flag late = flags.take(device);
    cuda.close();
    Thread releasing = Thread.ofPlatform().daemon().start(late::release);
    assertThat(releasing.join(Duration.ofSeconds(40))).as("nothing is in its way").isTrue();
    assertThat(given.getFirst().get(ValueLayout.JAVA_INT, 0)).isZero();
  }

  @Test
  void wordsOfMemoryThatHasEnded_areGivenToNobody() {
    CallbackFlags.Flag used = flags.take(device);
    used.release();
    assertThat(flags.take(device)).isSameAs(used);
    used.release(); // so that there is one to take again, beside fresh ones
    cuda.close();
    assertThatThrownBy(() -> flags.take(device)).isInstanceOf(IllegalStateException.class);
  }
}
