package io.cuvette.internal.space;

import io.cuvette.internal.index.BlockTable;

/** The search for the place of one block that no free run has room for. Not thread-safe. */
final class Placement {
  private final Space space;
  private final BlockTable blocks;
  private final long units;
  private final int tag;
  private final Place best = new Place();

  /** A search for so many units that a stream may use. */
  Placement(Space space, long units, int tag) {
    this.space = space;
    this.blocks = space.blocks;
    this.units = units;
    this.tag = tag;
  }

  Place find() {
    for (int i = 0; i < space.holes(); i++) {
      placeIn(space.hole(i));
    }
    return best;
  }

  private void placeIn(int hole) {
    int left = hole;
    for (int run = blocks.prev(left);
        run != Space.NONE && space.isUsable(run, tag);
        run = blocks.prev(run)) {
      if (space.isHole(run)) {
        return; // that one looks at the whole gap
      }
      left = run;
    }
    long extent = 0;
    int right = left;
    for (int run = left; space.isUsable(run, tag); run = blocks.next(run)) {
      extent += blocks.units(run);
      right = run;
    }
    if (extent >= units) {
      offerAll(left, right, extent);
    }
  }

  /** Begins with each free run of a gap, and ends with each. */
  private void offerAll(int left, int right, long extent) {
    boolean isTail = blocks.next(right) == space.guard();
    long rank = isTail ? Long.MAX_VALUE - 1 : extent;
    int run = left;
    while (true) {
      if (run == left || space.isFree(run)) {
        forward(run, right, rank);
      }
      if (space.isFree(run)) {
        backward(run, left, rank);
      }
      if (run == right) {
        return;
      }
      run = blocks.next(run);
    }
  }

  private void forward(int from, int right, long rank) {
    long rest = units;
    long cost = 0;
    for (int run = from; ; run = blocks.next(run)) {
      long part = Math.min(rest, blocks.units(run));
      cost += space.isHole(run) ? space.up(part) : 0;
      rest -= part;
      if (rest == 0) {
        best.offer(from, 0, cost, rank);
        return;
      }
      if (run == right || cost > best.cost) {
        return;
      }
    }
  }

  private void backward(int from, int left, long rank) {
    long rest = units;
    long cost = 0;
    for (int run = from; ; run = blocks.prev(run)) {
      long part = Math.min(rest, blocks.units(run));
      cost += space.isHole(run) ? space.up(part) : 0;
      rest -= part;
      if (rest == 0) {
        best.offer(run, blocks.units(run) - part, cost, rank);
        return;
      }
      if (run == left || cost > best.cost) {
        return;
      }
    }
  }
}
