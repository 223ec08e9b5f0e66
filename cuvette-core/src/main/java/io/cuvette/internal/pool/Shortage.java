package io.cuvette.internal.pool;

import io.cuvette.RecoveryStep;
import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.lifetime.LeakTracker;
import io.cuvette.internal.lifetime.Reclaim;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What a pool does before an allocation fails: one step after the other, searching again after
 * each. Every step is bounded; no lock is held. Confined to the allocating thread.
 *
 * @param <B> what is searched for
 */
public abstract class Shortage<B> {
  /** How long other threads may be faster, again and again. */
  private static final long PATIENCE_NANOS = 2_000_000_000;

  private final Reclaim reclaim;
  private final Refusals refusals;

  public Shortage(LeakTracker leaks, Refusals refusals) {
    this.reclaim = new Reclaim(leaks);
    this.refusals = refusals;
  }

  /** Whether the limit alone forbids the size. */
  public abstract boolean isBeyondLimit();

  /** Goes through the steps, in turn with other threads if one would take what another frees. */
  public abstract B inTurn(Supplier<B> steps);

  /** Searches, and requests from upstream if that may help; null if memory is missing. */
  public abstract @Nullable B search();

  /** Releases what is cached to upstream; the bytes. */
  public abstract long releaseCached();

  /** Notifies the pressure listeners; whether any of them released something. */
  public boolean pressure() {
    return false;
  }

  /** Waits for streams and other threads, and searches. */
  public abstract @Nullable B awaitOnce();

  /** Whether memory that is not in use could do, if no other thread takes it. */
  public abstract boolean mayHave();

  /** How often memory was taken so far: whether others got what this thread waited for. */
  public abstract long takes();

  /** Whether the collector has found a buffer of the pool that was not taken back yet. */
  public abstract boolean hasForgotten();

  /** The failure after the last step, with what upstream threw as its cause. */
  public abstract RuntimeException outOfMemory(RecoveryStep step);

  public final B run() {
    if (isBeyondLimit()) {
      throw outOfMemory(RecoveryStep.LIMIT);
    }
    return inTurn(this::tryAll);
  }

  private B tryAll() {
    B found = searchAndRelease();
    long start = System.nanoTime();
    boolean given = found == null && pressure();
    while (given) {
      refusals.retry();
      found = searchAndRelease();
      found = found == null ? await() : found;
      given = found == null && System.nanoTime() - start < PATIENCE_NANOS && pressure();
    }
    found = found == null ? await() : found;
    found = found == null ? reclaim() : found;
    if (found == null) {
      throw outOfMemory(RecoveryStep.RECLAIM);
    }
    return found;
  }

  public final @Nullable B searchAndRelease() {
    B found = search();
    if (found == null) {
      if (releaseCached() > 0) {
        refusals.retry();
      }
      found = search();
    }
    return found;
  }

  /** Waits for others, again if other threads took what there was, and there is more. */
  private @Nullable B await() {
    long start = System.nanoTime();
    B found;
    boolean others;
    do {
      long before = takes();
      found = awaitOnce();
      others =
          found == null
              && mayHave()
              && takes() != before
              && System.nanoTime() - start < PATIENCE_NANOS;
    } while (others);
    return found;
  }

  private @Nullable B reclaim() {
    return reclaim.search(
        this::hasForgotten,
        () -> {
          refusals.retry();
          return await();
        });
  }
}
