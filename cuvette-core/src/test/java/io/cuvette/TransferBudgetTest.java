package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.TransferCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingEvents;
import io.cuvette.instrument.ForwardingTransfers;
import io.cuvette.internal.base.Await;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The page-locked memory that all transfers may have: what one took is there for the next. */
@Timeout(60)
class TransferBudgetTest {
  private static final int MIB = 1 << 20;

  private boolean failsToEndEvents;

  /** What the next copy to the device waits for. */
  private volatile @Nullable CompletableFuture<Void> gate;

  private final AtomicInteger unlocked = new AtomicInteger();
  private volatile CompletableFuture<Void> isCopying = new CompletableFuture<>();
  private final Cuda cuda =
      Cuda.open(
          CudaOptions.DEFAULTS
              .withDriver(new Scripted(SimulatedDriver.open(SimulatedOptions.DEFAULTS)))
              .withTransferBytes(MIB));
  private final Buffer buffer = cuda.allocate(4 * MIB);

  @AfterEach
  void nothingIsUsed() {
    assertThat(cuda.staging().usedBytes()).isZero();
    cuda.close();
  }

  private void copy(int bytes) {
    buffer.copyFrom(MemorySegment.ofArray(new byte[bytes]));
  }

  @Test
  void whatThePinnedPoolHadNoMemoryFor_isNotUsed() {
    for (long limit : new long[] {4096, MIB / 2}) { // for no chunk, and for one
      cuda.defaultPinnedMemoryPool().setLimit(MemoryLimit.ofBytes(limit));
      copy(4 * MIB);
      assertThat(cuda.staging().usedBytes()).isZero();
    }
  }

  /** While the device copies one, the host fills the other. */
  @Test
  void oneTransfer_hasTwoChunksAtLeast() {
    copy(4 * MIB);
    assertThat(cuda.defaultPinnedMemoryPool().stats().growths()).isEqualTo(2);
  }

  @Test
  void chunksWhoseEventsCannotBeEnded_areNotUsed() {
    failsToEndEvents = true;
    assertThatThrownBy(() -> copy(4 * MIB)).isInstanceOf(CudaException.class);
    failsToEndEvents = false;
    assertThat(cuda.defaultPinnedMemoryPool().usedBytes()).isZero();
  }

  /** What is bounded is the memory of the blocks, which are larger. */
  @Test
  void chunk_countsWithWhatThePoolRoundsItUpTo() throws Exception {
    CompletableFuture<Void> open = new CompletableFuture<>();
    gate = open;
    Thread copying = Thread.ofPlatform().start(() -> copy(300_000));
    try {
      isCopying.get(40, TimeUnit.SECONDS);
      long block = cuda.defaultPinnedMemoryPool().usedBytes();
      assertThat(block).isGreaterThan(320_000);
      assertThat(cuda.staging().usedBytes()).isGreaterThanOrEqualTo(block);
    } finally {
      open.complete(null);
      copying.join();
    }
  }

  /** It goes on without page-locked memory after a while. */
  @Test
  void interruptedThread_thatWaitsForOtherTransfers_copiesAndStaysInterrupted() throws Exception {
    CompletableFuture<Void> open = new CompletableFuture<>();
    gate = open;
    Thread first = Thread.ofPlatform().start(() -> copy(4 * MIB));
    isCopying.get(40, TimeUnit.SECONDS);
    try {
      assertThat(cuda.staging().usedBytes()).as("all of it").isEqualTo(MIB);
      Thread.currentThread().interrupt();
      copy(100_000);
      assertThat(Thread.interrupted()).isTrue();
    } finally {
      open.complete(null);
      first.join();
    }
  }

  /** It is soon done, and then there is page-locked memory for the next. */
  @Test
  void transferThatWaitsForAnother_getsItsChunk() throws Exception {
    assertThat(Tries.oneSucceeds(this::isPageLockedBehindAnother)).isTrue();
  }

  /** Whether both copies had page-locked memory; one that gets no processor goes without. */
  private boolean isPageLockedBehindAnother() throws Exception {
    unlocked.set(0);
    CompletableFuture<Void> open = new CompletableFuture<>();
    CompletableFuture<Void> begun = new CompletableFuture<>();
    isCopying = begun;
    gate = open;
    Thread first = Thread.ofPlatform().start(() -> copy(MIB));
    begun.get(40, TimeUnit.SECONDS);
    Thread second = Thread.ofPlatform().start(() -> copy(600_000));
    boolean _ = Await.until(() -> second.getState() == Thread.State.TIMED_WAITING, 100_000_000);
    open.complete(null);
    first.join();
    second.join();
    return unlocked.get() == 0;
  }

  private final class Scripted extends ForwardingDriver {
    private final EventCalls eventCalls;
    private final TransferCalls transferCalls;

    Scripted(CudaDriver delegate) {
      super(delegate);
      this.eventCalls =
          new ForwardingEvents(delegate.events()) {
            @Override
            public void eventDestroy(int device, long event) {
              if (failsToEndEvents) {
                throw new CudaException(CudaStatus.UNKNOWN, "cuEventDestroy", "on purpose");
              }
              super.eventDestroy(device, event);
            }
          };
      this.transferCalls =
          new ForwardingTransfers(delegate.transfers()) {
            @Override
            public void memcpyHtoDAsync(
                int device, long target, MemorySegment source, long stream) {
              unlocked.incrementAndGet();
              super.memcpyHtoDAsync(device, target, source, stream);
            }

            @Override
            public void memcpyAsync(int device, long target, long source, long bytes, long stream) {
              CompletableFuture<Void> wanted = gate;
              if (wanted != null) {
                gate = null;
                isCopying.complete(null);
                wanted.join();
              }
              super.memcpyAsync(device, target, source, bytes, stream);
            }
          };
    }

    @Override
    public EventCalls events() {
      return eventCalls;
    }

    @Override
    public TransferCalls transfers() {
      return transferCalls;
    }
  }
}
