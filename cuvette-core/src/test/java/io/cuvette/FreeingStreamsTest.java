package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.ordered.FreeingStreams;
import io.cuvette.internal.session.Session;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Which streams a pool's end comes after: those with a free in them, as long as that takes. */
@Timeout(60)
class FreeingStreamsTest extends OrderingFixture {
  private static final int MANY = 40;

  private final FreeingStreams frees = new FreeingStreams();
  private final Session session = cuda.session();

  @Test
  void streamThatFrees_isWaitedFor_eachTimeAnew() {
    assertThat(frees.areDone(session)).isTrue();
    for (int i = 0; i < 3; i++) {
      busy.begin(home);
      frees.add(home.state);
      frees.add(home.state);
      assertThat(frees.areDone(session)).as("free %d", i).isFalse();
      assertThat(frees.areDone(session)).as("free %d", i).isFalse();
      busy.finish(home);
      assertThat(frees.areDone(session)).isTrue();
    }
  }

  @Test
  void eachOfManyStreams_isWaitedFor() {
    List<CudaStream> many = new ArrayList<>();
    for (int i = 0; i < MANY; i++) {
      many.add(stream());
      busy.begin(many.getLast());
      frees.add(many.getLast().state);
    }
    FreeingStreams all = new FreeingStreams();
    all.addAll(frees);
    for (CudaStream each : many.reversed()) {
      assertThat(frees.areDone(session)).isFalse();
      assertThat(all.areDone(session)).isFalse();
      busy.finish(each);
    }
    assertThat(frees.areDone(session)).isTrue();
    assertThat(all.areDone(session)).isTrue();
  }

  /** It has waited for all of them, and cannot be asked any more. */
  @Test
  @SuppressWarnings("try") // its end is what is tested
  void streamsOfAnotherCudaThatIsClosed_areDone() {
    try (Cuda other = Cuda.open(CudaOptions.simulated())) {
      frees.add(other.device(0).createStream().state);
      frees.add(other.device(0).nullStream().state);
      frees.add(other.device(0).legacyStream().state);
      frees.add(other.device(0).perThreadStream().state);
      other.close();
      assertThat(frees.areDone(session)).isTrue();
    }
  }

  /** A pool asks for its own session, and one that stands for several for none. */
  @Test
  @SuppressWarnings("try") // its end is what is tested
  void memoryOfAPool_isFreed_whereAnotherCudaThatFreedItIsClosed() {
    try (Cuda second = Cuda.open(CudaOptions.simulated());
        DeviceMemoryResource resource =
            new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS)) {
      FreeingStreams freeing = resource.pool().memory().freeing();
      freeing.add(second.device(0).createStream().state);
      freeing.add(second.device(0).nullStream().state);
      freeing.add(second.device(0).legacyStream().state);
      freeing.add(second.device(0).perThreadStream().state);
      second.close();
      assertThat(resource.pool().memory().freesAreDone()).isTrue();
      busy.begin(home);
      freeing.add(home.state);
      assertThat(resource.pool().memory().freesAreDone()).isFalse();
      busy.finish(home);
      assertThat(resource.pool().memory().freesAreDone()).isTrue();
    }
  }

  /** Imported memory can be freed by any Cuda of the process. */
  @Test
  void streamOfAnotherCudaThatIsOpen_isWaitedForAsOnesOwn() {
    List<BusyDriver> made = new ArrayList<>();
    try (Cuda second =
        Cuda.open(
            CudaOptions.simulated()
                .withDevice("sim:pace=eager")
                .withDecorator(driver -> {
                  made.add(new BusyDriver(driver));
                  return made.getFirst();
                }))) {
      CudaStream foreign = second.device(0).createStream(StreamOptions.NON_BLOCKING);
      for (Session of : Arrays.asList(session, second.session(), null)) {
        made.getFirst().begin(foreign);
        frees.add(foreign.state);
        assertThat(frees.areDone(of)).as("%s", of).isFalse();
        made.getFirst().finish(foreign);
        assertThat(frees.areDone(of)).as("%s", of).isTrue();
      }
    }
  }

  /** Others may be busy for long. */
  @Test
  void waitForADevice_isForItsStreamsAlone() {
    List<BusyDriver> made = new ArrayList<>();
    try (Cuda two =
        Cuda.open(
            CudaOptions.simulated()
                .withDevice("sim:pace=eager,devices=2")
                .withDecorator(driver -> {
                  made.add(new BusyDriver(driver));
                  return made.getFirst();
                }))) {
      CudaStream there = two.device(1).createStream(StreamOptions.NON_BLOCKING);
      made.getFirst().begin(there);
      frees.add(two.device(0).createStream(StreamOptions.NON_BLOCKING).state);
      frees.add(there.state);
      frees.await(two.device(0).core());
      assertThat(made.getFirst().waits()).isZero();
      frees.await(two.device(1).core());
      assertThat(made.getFirst().waits()).isOne();
      made.getFirst().finish(there);
    }
  }
}
