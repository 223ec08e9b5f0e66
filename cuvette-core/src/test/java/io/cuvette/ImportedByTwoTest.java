package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.ForwardingCaptures;
import io.cuvette.instrument.ForwardingDriver;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Memory that two Cudas of one process import through a driver that knows only processes. */
class ImportedByTwoTest extends OverFakeSharing {
  private static final Duration HELD = Duration.ofMillis(200);

  private final Cuda first = Cuda.open(CudaOptions.simulated().withDriver(sameMachine()));
  private final Cuda second = Cuda.open(CudaOptions.simulated().withDriver(sameMachine()));
  private final CudaStream one = first.device(0).createStream();
  private final CudaStream two = second.device(0).createStream();

  private CudaDriver sameMachine() {
    return new ForwardingDriver(driver) {
      @Override
      public boolean isSimulated() {
        return false;
      }

      private volatile boolean closed;

      private final CaptureCalls captureCalls =
          new ForwardingCaptures(delegate().captures()) {
            @Override
            public int streamIsCapturing(int device, long stream) {
              if (closed) {
                driver.wrong.add("a question to a driver that is closed");
              }
              return super.streamIsCapturing(device, stream);
            }
          };

      @Override
      public CaptureCalls captures() {
        return captureCalls;
      }

      @Override
      public void close() {
        closed = true;
      }
    };
  }

  @AfterEach
  void closeBoth() {
    first.close();
    second.close();
    assertThat(first.engine().imports().size()).isZero();
  }

  private DeviceMemoryResource mapped(CudaDevice owner) {
    try (AllocationHandle handle = handle(null)) {
      return DeviceMemoryResource.fromAllocationHandle(owner, handle);
    }
  }

  @Test
  void endOfOne_leavesWhatTheOtherHasQueued() {
    CudaDevice elsewhere = first.device(1);
    driver.poolDevice = 1;
    CudaStream held = elsewhere.createStream();
    DeviceBuffer waiting = mapped(elsewhere).importBuffer(descriptor(1, 0, 64), held);
    CountDownLatch gate = gate(held);
    held.close();
    waiting.close();
    assertThat(driver.frees).as("it waits for the stream that is gone").hasValue(0);
    driver.poolDevice = 0;
    mapped(second.device(0)).importBuffer(descriptor(2, 0, 64), two);
    second.close();
    assertThat(driver.frees).as("that of the second alone").hasValue(1);
    gate.countDown();
  }

  /** The pool of a Cuda that ends is destroyed, so the other one has the memory of its own. */
  @Test
  void samePoolByItsUuid_isAskedForByEachCuda_andOnceByOne() {
    UUID uuid = UUID.randomUUID();
    List<DeviceBuffer> open = new ArrayList<>();
    try (AllocationHandle handle = handle(uuid)) {
      for (Cuda cuda : List.of(first, second)) {
        int before = driver.imports.get();
        for (int round = 0; round < 3; round++) {
          CudaDevice device = cuda.device(0);
          try (var again = DeviceMemoryResource.fromAllocationHandle(device, handle)) {
            open.add(again.importBuffer(descriptor(1, 0, 64)));
          }
        }
        assertThat(driver.imports).hasValue(before + 1);
      }
    }
    assertThat(driver.mappings()).isEqualTo(1);
    assertThat(driver.poolsOpen).as("one for each Cuda").hasValue(2);
    first.close();
    assertThat(driver.frees).hasValue(0);
    Reference.reachabilityFence(open);
  }

  /** The other queues its last work when the one that ends has waited for the device. */
  @Test
  void endOfTheLastUser_waitsForTheStreamsOfTheOther() throws Exception {
    DeviceBuffer earlier = mapped(first.device(0)).importBuffer(descriptor(1, 0, 64), one);
    DeviceBuffer last = mapped(second.device(0)).importBuffer(descriptor(1, 0, 64), two);
    CompletableFuture<CountDownLatch> queued = new CompletableFuture<>();
    second
        .engine()
        .session()
        .children()
        .add(() -> {
          CountDownLatch gate = gate(one);
          earlier.close();
          queued.complete(gate);
        });
    Thread closing = Thread.ofPlatform().start(second::close);
    CountDownLatch gate = queued.get();
    assertThat(closing.join(HELD)).isFalse();
    assertThat(driver.frees).hasValue(0);
    gate.countDown();
    closing.join();
    assertThat(driver.frees).hasValue(1);
    Reference.reachabilityFence(last);
  }

  @Test
  void streamsOfAnEndedUser_areDone_andNotAskedAgain() {
    CudaStream never = first.device(0).nullStream(); // which no one closes
    DeviceBuffer earlier = mapped(first.device(0)).importBuffer(descriptor(1, 0, 64), never);
    DeviceBuffer last = mapped(second.device(0)).importBuffer(descriptor(1, 0, 64), two);
    CountDownLatch gate = gate(never);
    earlier.close();
    gate.countDown();
    first.close();
    last.close();
    assertThat(driver.frees).hasValue(1);
  }
}
