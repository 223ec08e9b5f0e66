package io.cuvette.cli.replay;

import io.cuvette.cli.OpenPool;
import java.util.ArrayList;
import java.util.List;

/**
 * Live and held memory over the operations of a trace, in at most some points. Each stands for the
 * operations since the one before: the most that was live meanwhile, and what is held at the end;
 * without a pool, the most that was in blocks. Not thread-safe.
 */
final class Timeline {
  private final int operations;
  private final int most;
  private final OpenPool pool;
  private final List<List<Long>> points = new ArrayList<>();
  private long live;
  private long blocks;

  Timeline(Trace trace, int most, OpenPool pool) {
    this.operations = trace.operations();
    this.most = most;
    this.pool = pool;
  }

  /** Operation, live bytes, held bytes of each point. */
  List<List<Long>> points() {
    return points;
  }

  /**
   * Adds an operation.
   *
   * @param done how many there were, with it
   * @param liveBytes the bytes requested that are live after it
   * @param blockBytes those of their blocks, which is what is held without a pool
   */
  void add(int done, long liveBytes, long blockBytes) {
    live = Math.max(live, liveBytes);
    blocks = Math.max(blocks, blockBytes);
    long end = operations * (points.size() + 1L) / Math.min(most, operations);
    if (done >= end) {
      OpenPool.Held held = pool.held();
      points.add(List.of((long) done, live, held == null ? blocks : held.now().getAsLong()));
      live = liveBytes;
      blocks = blockBytes;
    }
  }
}
