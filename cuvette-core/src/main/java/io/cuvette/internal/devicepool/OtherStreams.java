package io.cuvette.internal.devicepool;

import io.cuvette.internal.base.Rotation;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.clock.StreamClock;
import io.cuvette.internal.index.BlockArena;
import io.cuvette.internal.streamcache.Fit;
import io.cuvette.internal.streamcache.Request;
import io.cuvette.internal.streamcache.StreamCache;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Takes memory that is free in the arenas of other streams, whose work is done. The stream is
 * queried first, and then only that is taken which was free before: its answer covers every use
 * before the memory was freed, and nobody misses memory that is not given out in the end.
 * Thread-safe.
 */
public final class OtherStreams {
  /** So often another thread may free something between the question and the taking. */
  private static final int TRIES = 8;

  private final CachingDevicePool devicePool;
  private final Rotation turn = new Rotation();
  private final AtomicLong reuses = new AtomicLong();

  public OtherStreams(CachingDevicePool devicePool) {
    this.devicePool = devicePool;
  }

  /** How often memory of another stream was taken. */
  public long reuses() {
    return reuses.get();
  }

  /**
   * The best fit of at most {@code most} bytes over several arenas; the next best if that arena's
   * stream is busy. What is known to come before needs no question.
   */
  public @Nullable Face takeBest(List<StreamCache> from, Request request, long most, Asks asks) {
    List<Fit> fits = new ArrayList<>();
    for (StreamCache arena : from) {
      Fit fit = arena == request.arena() ? null : arena.fit(request.rounded());
      if (fit != null && fit.bytes() <= most) {
        fits.add(fit);
      }
    }
    fits.sort(Comparator.comparingLong(Fit::bytes)); // of alike ones the oldest arena's is first
    StreamClock clock = request.arena().stream.clock;
    for (Fit fit : fits) {
      Face found = fit.isBefore(clock) ? take(fit, request) : null;
      if (found != null) {
        reuses.incrementAndGet();
        return found;
      }
    }
    for (Fit fit : turn.of(fits, asks.left())) {
      Face found = asks.mayAsk() ? takeFrom(fit, request, most) : null;
      if (found != null) {
        reuses.incrementAndGet();
        return found;
      }
    }
    return null;
  }

  private @Nullable Face takeFrom(Fit first, Request request, long most) {
    StreamCache from = first.arena();
    Fit fit = first;
    for (int i = 0; i < TRIES && fit != null && fit.bytes() <= most; i++) {
      if (!fit.isDone() && !from.stream.isIdleSoon()) {
        return null;
      }
      Face found = take(fit, request);
      if (found != null) {
        return found;
      }
      fit = from.fit(request.rounded());
    }
    return null;
  }

  /** A chunk that is asked for entire moves to the asking arena; a part of one is only lent. */
  private @Nullable Face take(Fit fit, Request request) {
    StreamCache from = fit.arena();
    int inHand = from.takeInHand(request.rounded(), fit);
    return inHand == BlockArena.NONE ? from.lendTo(request, fit) : move(from, inHand, request);
  }

  private Face move(StreamCache from, int inHand, Request request) {
    int chunk = from.chunk(inHand);
    Face moved = null;
    try {
      devicePool.chunks.get(chunk).block().use(request.stream().state);
      moved = devicePool.adopt(chunk, request);
    } finally {
      from.forget(inHand);
      if (moved == null) {
        devicePool.freeMoved(chunk);
      }
    }
    return moved;
  }
}
