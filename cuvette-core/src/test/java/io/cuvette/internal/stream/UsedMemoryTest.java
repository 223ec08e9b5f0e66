package io.cuvette.internal.stream;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.EngineMemory;
import io.cuvette.StreamOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Which streams memory remembers. */
class UsedMemoryTest {
  private static final int MANY = 200;
  private static final int FEW = 40;
  private static final int ROUNDS = 500;

  /** So many streams are looked through for those that are over. */
  private static final int LOOKED_THROUGH = 32;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final CudaStream home = stream();
  private final CudaStream one = stream();
  private final CudaStream two = stream();
  private final BareMemory block = new BareMemory(of(home));

  private CudaStream stream() {
    return cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
  }

  private static DriverStream of(CudaStream stream) {
    return EngineMemory.streamOf(stream);
  }

  private List<DriverStream> users() {
    List<DriverStream> users = new ArrayList<>();
    for (StreamUse use = block.uses(); use != null; use = use.next()) {
      users.add(use.stream());
    }
    return users;
  }

  @AfterEach
  void close() {
    cuda.close();
  }

  @Test
  void streamThatUsesItAgain_isRememberedOnce() {
    for (int i = 0; i < MANY; i++) {
      block.use(of(one));
      block.use(of(two));
    }
    assertThat(users()).containsExactlyInAnyOrder(of(one), of(two));
  }

  @Test
  void streamsThatCameAndWent_areForgotten_andNoneThatIsThere() {
    block.use(of(one));
    for (int i = 0; i < MANY; i++) {
      CudaStream brief = stream();
      block.use(of(brief));
      brief.close();
      assertThat(users()).hasSizeLessThan(FEW);
    }
    block.use(of(two));
    assertThat(users()).contains(of(one), of(two));
  }

  @Test
  void streamsThatAreThere_areAllRemembered_howeverManyTheyAre() {
    List<DriverStream> all = new ArrayList<>();
    for (int i = 0; i < 3 * LOOKED_THROUGH; i++) {
      all.add(of(stream()));
      block.use(all.getLast());
      assertThat(users()).containsExactlyInAnyOrderElementsOf(all);
    }
  }

  /** Else the memory would wait for all work of a stream that others keep busy. */
  @Test
  void streamsThatComeAfter_leaveWhatIsKnownOfThoseBefore() {
    block.useHeld(of(one), null);
    StreamUse first = block.useOf(of(one));
    for (int others = 1; others < LOOKED_THROUGH; others++) {
      block.use(of(stream()));
      assertThat(block.useOf(of(one))).as("beside %d others", others).isSameAs(first);
    }
    assertThat(users()).hasSize(LOOKED_THROUGH);
  }

  /** Nobody could say later whether their work is done. */
  @Test
  void usesInStreamsWithoutAClock_areNotNumbered() {
    DriverStream without = of(cuda.device(0).nullStream());
    assertThat(without.clock.isRunning()).isFalse();
    assertThat(of(home).clock.isRunning()).isTrue();
    assertThat(block.numberUses(of(one))).isTrue();
    assertThat(users()).as("its own stream counts too").containsExactly(of(home));
    assertThat(new BareMemory(without).numberUses(without)).isTrue();
    BareMemory ofNone = new BareMemory(without);
    assertThat(ofNone.numberUses(of(one))).isFalse();
    assertThat(ofNone.uses()).isNull();
    BareMemory used = new BareMemory(of(home));
    used.use(without);
    assertThat(used.numberUses(of(one))).isFalse();
    assertThat(used.useOf(of(home))).as("nothing is changed").isNull();
  }

  @Test
  void streamsOfThreadsThatUseItAtOnce_areAllRemembered() throws InterruptedException {
    List<DriverStream> streams = List.of(of(one), of(two));
    for (int round = 0; round < ROUNDS; round++) {
      BareMemory shared = new BareMemory(of(home));
      AtomicInteger ready = new AtomicInteger();
      List<Thread> threads = new ArrayList<>();
      for (DriverStream each : streams) {
        threads.add(
            Thread.ofPlatform()
                .start(() -> {
                  ready.incrementAndGet();
                  while (ready.get() < streams.size()) {
                    Thread.onSpinWait();
                  }
                  shared.use(each);
                }));
      }
      for (Thread each : threads) {
        each.join();
      }
      for (DriverStream each : streams) {
        assertThat(shared.useOf(each)).as("round %d", round).isNotNull();
      }
    }
  }
}
