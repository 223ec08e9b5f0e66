package io.cuvette.internal.completion;

import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaException;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.PartialCopy;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.callback.Callback;
import io.cuvette.internal.hostcopy.HostParts;
import io.cuvette.internal.lifetime.ArenaHold;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.transfer.HostTransfers;
import io.cuvette.internal.transfer.Staging;
import io.cuvette.internal.transfer.Transfers;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Copies in order of a stream with a completion, until which both ends stay. What the driver can
 * copy by itself is queued: buffers are freed after that, and the arena of other memory is held.
 * What it cannot is copied by a thread of the library when the stream has come to it, which waits
 * meanwhile. Thread-safe.
 *
 * @param stream the stream
 * @param submit adds a callback to it
 * @param own a stream of the library's own, for copies while that one waits
 * @param staging the chunks
 */
public record AsyncCopies(
    OpenStream stream,
    Function<Callback, CompletableFuture<Void>> submit,
    Supplier<OpenStream> own,
    Staging staging) {
  private static final String WAY_OUT =
      " (expected: copyFrom or copyTo with the stream, which become a part of the graph)";

  /** Copies between buffers. */
  public CompletableFuture<Void> between(Memory target, Memory source) {
    check();
    CopyCompletion done = new CopyCompletion(source.byteSize(), true, () -> {});
    return queue(done, () -> Transfers.copyAsync(target, source, stream));
  }

  /** Copies from the host to the start of a buffer. */
  public CompletableFuture<Void> in(Memory target, MemorySegment source) {
    HostTransfers.checkIn(target, source, stream);
    check();
    return isForDriver(source)
        ? queue(
            new CopyCompletion(source.byteSize(), true, holdOfOthers("source", source)),
            () -> HostTransfers.copyInAsync(target, source, stream, staging))
        : staged(target, "source", source, true);
  }

  /** Copies the start of a buffer to the host. */
  public CompletableFuture<Void> out(Memory source, MemorySegment target) {
    HostTransfers.checkOut(source, target, stream);
    check();
    return isForDriver(target)
        ? queue(
            new CopyCompletion(target.byteSize(), true, holdOfOthers("target", target)),
            () -> HostTransfers.copyOutAsync(source, target, stream, staging))
        : staged(source, "target", target, false);
  }

  private void check() {
    stream.checkUsable();
    stream.checkNotCapturing("a copy with a completion", WAY_OUT);
  }

  private boolean isForDriver(MemorySegment host) {
    return host.byteSize() == 0 || HostTransfers.isPageLocked(host, stream);
  }

  /** What this library has page-locked stays anyway. */
  private Runnable holdOfOthers(String name, MemorySegment host) {
    boolean isOurs = host.byteSize() == 0 || stream.state.streams.views().find(host) != null;
    return isOurs ? () -> {} : hold(name, host);
  }

  /** Keeps the arena of memory open, and the memory reachable. */
  private static Runnable hold(String name, MemorySegment host) {
    Runnable letGo = ArenaHold.of(name, host);
    return () -> {
      try {
        letGo.run();
      } finally {
        Reference.reachabilityFence(host);
      }
    };
  }

  /** The same for a copy that its stream waits for, once there are not too many of these. */
  private Runnable holdInTurn(String name, MemorySegment host) {
    Runnable letGo = hold(name, host);
    try {
      staging.awaitTurn();
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, letGo);
      throw e;
    }
    return () -> letGo(letGo, staging::turnOver);
  }

  private CompletableFuture<Void> queue(CopyCompletion done, Runnable copy) {
    boolean isQueued = false;
    try {
      copy.run();
      isQueued = true;
      return follow(done, new Callback(stream.state, null, false));
    } catch (RuntimeException | Error e) {
      boolean mayBeQueued = isQueued || e instanceof CudaException || e instanceof Error;
      Failures.runAfter(e, () -> letGo(done, mayBeQueued));
      if (isQueued) {
        throw PartialCopy.explained(e, "the copy is queued, and nothing tells when it is done");
      }
      throw e;
    }
  }

  private CompletableFuture<Void> follow(CopyCompletion done, Callback callback) {
    var _ = submit.apply(callback).whenComplete((_, e) -> done.end(e));
    return done;
  }

  /** Lets go of both ends of a copy that nobody gets the completion of. */
  private void letGo(CopyCompletion done, boolean mayBeQueued) {
    try {
      if (mayBeQueued) {
        stream.awaitWork();
      }
    } finally {
      done.end(null);
    }
  }

  private CompletableFuture<Void> staged(
      Memory buffer, String name, MemorySegment host, boolean in) {
    Memory kept = buffer.kept();
    Runnable closeable = holdInTurn(name, host);
    CopyCompletion done = null;
    try {
      MemorySegment ofHost = buffer.hostMemory();
      HostParts parts = HostParts.of(name, host, !in);
      Runnable unlend = Block.lend(buffer);
      CopyCompletion made =
          new CopyCompletion(host.byteSize(), false, () -> letGo(unlend, closeable));
      done = made;
      checkIsThere(kept);
      BlockReports.usedElsewhere(kept, stream.state);
      Runnable copy = () -> copyInPlace(made, kept, ofHost, parts, in);
      return follow(made, Callback.ofCopy(stream.state, copy));
    } catch (RuntimeException | Error e) {
      CopyCompletion made = done;
      Failures.runAfter(e, made == null ? closeable : () -> made.end(null));
      throw e;
    }
  }

  private static void letGo(Runnable first, Runnable then) {
    try {
      first.run();
    } finally {
      then.run();
    }
  }

  /** It may have been closed, or cut, before it was kept. */
  private static void checkIsThere(Memory kept) {
    kept.hold();
    kept.unhold();
  }

  /** On a thread of the library, while the stream waits. */
  private void copyInPlace(
      CopyCompletion done,
      Memory kept,
      @Nullable MemorySegment ofHost,
      HostParts host,
      boolean in) {
    PartialCopy.checkGoesOn(done::isToStop);
    OpenStream other = own.get();
    done.begin();
    BlockListener listener = kept.on().session().driver().blockListener();
    if (listener != null) {
      listener.beginInPlace();
    }
    try {
      HostTransfers.copyNow(kept, ofHost, host, other, staging, in, false, done::isToStop);
    } catch (RuntimeException | Error e) { // what the device has of it is to be over, too
      Failures.runAfter(e, other::awaitWork);
      throw e;
    } finally {
      if (listener != null) {
        listener.endInPlace();
      }
    }
  }
}
