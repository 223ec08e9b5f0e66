package io.cuvette.internal.completion;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.hostcopy.PartialCopy;
import io.cuvette.internal.lifetime.ArenaHold;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.transfer.HostTransfers;
import io.cuvette.internal.transfer.Staging;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.concurrent.CompletableFuture;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Copies in order of a stream with a completion, until which both ends stay. What is page-locked
 * the device copies: buffers are freed after that anyway, and the arena of memory that others have
 * page-locked is held. Other memory is copied before the call returns, and needs no more. No thread
 * copies while the stream waits. Thread-safe.
 *
 * @param stream the stream
 * @param complete gives what completes once the stream has come to it
 * @param staging the chunks
 */
public record AsyncCopies(
    OpenStream stream, Supplier<CompletableFuture<Void>> complete, Staging staging) {
  private static final String WAY_OUT =
      " (expected: the copy with the stream that gives none, which becomes a part of the graph)";

  /** What a device has nobody takes back, and what goes through chunks is copied already. */
  private static final class Completion extends CompletableFuture<Void> {
    @Override
    public boolean cancel(boolean mayInterruptIfRunning) {
      return isCancelled();
    }

    void end(@Nullable Throwable failure) {
      if (failure == null) {
        complete(null);
      } else {
        completeExceptionally(failure);
      }
    }
  }

  /**
   * Queues a copy that needs nothing held: its memory off the devices is buffers' own, or is copied
   * before the call returns.
   *
   * @param copy queues it in the stream
   */
  public CompletableFuture<Void> queue(Runnable copy) {
    check();
    return queue(copy, () -> {});
  }

  /** Copies native memory to the start of a buffer. */
  public CompletableFuture<Void> in(Memory target, MemorySegment source) {
    check();
    HostTransfers.checkIn(target, source, stream);
    Runnable letGo = hold("source", source);
    return queue(() -> HostTransfers.copyInAsync(target, source, stream, staging), letGo);
  }

  /** Copies the start of a buffer to native memory. */
  public CompletableFuture<Void> out(Memory source, MemorySegment target) {
    check();
    HostTransfers.checkOut(source, target, stream);
    Runnable letGo = hold("target", target);
    return queue(() -> HostTransfers.copyOutAsync(source, target, stream, staging), letGo);
  }

  private void check() {
    stream.checkUsable();
    stream.checkNotCapturing("a copy with a completion", WAY_OUT);
  }

  /** Keeps memory that the device copies and this library does not know; what it knows stays. */
  private Runnable hold(String name, MemorySegment host) {
    if (host.byteSize() == 0 || !HostTransfers.isPageLockedByOthers(host, stream)) {
      return () -> {};
    }
    Runnable letGo = ArenaHold.of(name, host);
    return () -> {
      try {
        letGo.run();
      } finally {
        Reference.reachabilityFence(host);
      }
    };
  }

  private CompletableFuture<Void> queue(Runnable copy, Runnable letGo) {
    boolean isQueued = false;
    try {
      Completion done = new Completion();
      copy.run();
      isQueued = true;
      var _ =
          complete
              .get()
              .whenComplete((_, failure) -> {
                try {
                  letGo.run();
                } finally {
                  done.end(failure);
                }
              });
      return done;
    } catch (RuntimeException | Error e) {
      boolean mayBeQueued = isQueued || e instanceof CudaException || e instanceof Error;
      Failures.runAfter(e, () -> letGoOf(letGo, mayBeQueued));
      if (isQueued) {
        throw PartialCopy.explained(e, "the copy is queued, and nothing tells when it is done");
      }
      throw e;
    }
  }

  /** Lets go of memory of a copy that nobody gets the completion of. */
  private void letGoOf(Runnable letGo, boolean mayBeQueued) {
    try {
      if (mayBeQueued) {
        stream.awaitWork();
      }
    } finally {
      letGo.run();
    }
  }
}
