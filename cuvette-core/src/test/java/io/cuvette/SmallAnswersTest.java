package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cuvette.driver.CompilerException;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.internal.channel.Closing;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** What small parts answer that larger ones rest on. */
class SmallAnswersTest extends OverFakeSharing {
  private static final long GUARD_SECONDS = 60;

  /** A peer can make the last close of a file take as long as it likes. */
  @Test
  void closeThatHangs_isNotWaitedForToItsEnd() throws Exception {
    CountDownLatch goOn = new CountDownLatch(1);
    Set<Integer> closed = ConcurrentHashMap.newKeySet();
    var calls =
        new FakeDescriptors() {
          @Override
          public void close(int descriptor) {
            Latches.await(goOn);
            closed.add(descriptor);
          }
        };
    FutureTask<Boolean> closing =
        new FutureTask<>(() -> {
          Closing.close(calls, new int[] {5, 6}, 2);
          return closed.isEmpty();
        });
    Thread thread = Thread.ofPlatform().daemon().start(closing);
    try {
      assertThat(closing.get(GUARD_SECONDS / 2, TimeUnit.SECONDS)).isTrue();
    } finally {
      goOn.countDown();
    }
    thread.join();
    assertThat(calls.open()).isEmpty();
    assertThat(closed).containsExactlyInAnyOrder(5, 6);
  }

  @Test
  void pinnedResource_isFoundByItsUuid() {
    UUID uuid = UUID.randomUUID();
    try (AllocationHandle handle = handle(uuid);
        PinnedMemoryResource one = PinnedMemoryResource.fromAllocationHandle(cuda, handle)) {
      assertThat(PinnedMemoryResource.fromRegistry(cuda, uuid)).isSameAs(one);
    }
  }

  /** Whatever a simulated device is to have. */
  @Test
  void simulatedDevice_isAlwaysAvailable() {
    assertThat(Drivers.isAvailable("sim")).isTrue();
    assertThat(Drivers.isAvailable("sim:devices=2")).isTrue();
    assertThat(Drivers.isAvailable("other")).isFalse();
  }

  /** Also with no bytes at all, which would need nothing. */
  @Test
  void resourceOfAClosedCuda_takesNothingBack() {
    Cuda own = Cuda.open(CudaOptions.simulated());
    var resource = new DeviceMemoryResource(own.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    assertThat(resource.attributes().toString())
        .startsWith("PoolAttributes[pool 0x")
        .doesNotContain("null");
    long address = resource.allocate(64).address();
    resource.deallocate(address, 64);
    resource.deallocate(0, 0);
    own.close();
    assertThatIllegalStateException().isThrownBy(() -> resource.deallocate(0, 0));
    assertThatIllegalStateException().isThrownBy(() -> resource.deallocate(address, 64));
  }

  @Test
  void futureInACapture_isRefusedByItsName() {
    try (CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING)) {
      stream
          .capture(() -> {
            assertThatIllegalStateException()
                .isThrownBy(stream::onComplete)
                .withMessageContaining("onComplete");
            assertThatIllegalStateException()
                .isThrownBy(() -> stream.addCallback(() -> {}))
                .withMessageContaining("addCallback");
          })
          .close();
    }
  }

  @Test
  void simulation_isWhatTheDriverSays() {
    for (boolean isSimulated : new boolean[] {true, false}) {
      CudaOptions options =
          CudaOptions.simulated()
              .withDecorator(driver ->
                  new ForwardingDriver(driver) {
                    @Override
                    public boolean isSimulated() {
                      return isSimulated;
                    }
                  });
      try (Cuda own = Cuda.open(options)) {
        assertThat(own.isSimulated()).isEqualTo(isSimulated);
      }
    }
  }

  @Test
  void failureOfACompiler_hasWhatItWasMadeOf_alsoWithAnotherLog() {
    CompilerException failure = new CompilerException("nvrtcCall(x=1)", 6, "NAME", "a log");
    CompilerException other = failure.withLog("another");
    for (CompilerException each : List.of(failure, other)) {
      assertThat(each.call()).isEqualTo("nvrtcCall(x=1)");
      assertThat(each.code()).isEqualTo(6);
      assertThat(each.status()).isEqualTo("NAME");
      assertThat(each).hasMessageStartingWith("nvrtcCall(x=1): NAME (6)\n");
    }
    assertThat(failure.log()).isEqualTo("a log");
    assertThat(other.log()).isEqualTo("another");
    assertThat(other).hasCause(failure);
  }
}
