package io.cuvette.internal.space;

import io.cuvette.internal.index.BlockTable;

/** Walks over a space and checks what it promises. Confined to one thread. */
final class SpaceCheck {
  private final Space space;
  private final BlockTable blocks;
  private final long[] freeUnits;
  private final int[] freeRuns;
  private int holes;
  private int large;
  private long pieceEnd;

  SpaceCheck(Space space) {
    this.space = space;
    this.blocks = space.blocks;
    this.freeUnits = new long[space.tags()];
    this.freeRuns = new int[space.tags()];
  }

  void run() {
    int first = space.guard();
    while (blocks.prev(first) != Space.NONE) {
      first = blocks.prev(first);
    }
    require(space.address(first) == space.base, "the first run", first);
    for (int run = first; run != Space.NONE; run = blocks.next(run)) {
      checkRun(run);
    }
    for (int tag = 0; tag < freeUnits.length; tag++) {
      require(space.freeUnits(tag) == freeUnits[tag], "the free units of tag", tag);
      require(
          freeRuns[tag] == (freeUnits[tag] == 0 ? 0 : space.index(tag).checkAndCount()),
          "the index of tag",
          tag);
    }
    require(holes == space.holes(), "the number of holes", holes);
    int listed = 0;
    for (int run = space.aged.oldest(); run != Space.NONE; run = space.aged.after(run)) {
      listed++;
    }
    require(listed == large, "the list by age", listed);
  }

  private void checkRun(int run) {
    int next = blocks.next(run);
    long end = space.address(run) + (space.units(run) << Space.UNIT_SHIFT);
    require(space.units(run) > 0, "the size of run", run);
    require(next == Space.NONE || blocks.prev(next) == run, "the neighbours of run", run);
    require(next == Space.NONE || space.address(next) == end, "the end of run", run);
    int state = blocks.chunk(run);
    require(
        next == Space.NONE || state == -3 || state != blocks.chunk(next),
        "the merging of run",
        run);
    if (space.isHole(run)) {
      holes++;
      require(space.hole((int) blocks.base(run)) == run, "the place of hole", run);
      require(space.pieces.firstIn(space.address(run), end) == Pieces.NONE, "hole", run);
    } else if (space.isFree(run)) {
      freeUnits[state] += space.units(run);
      freeRuns[state]++;
      large += space.pieces.pageUnits() <= space.units(run) ? 1 : 0;
      checkMapped(run, end);
    }
  }

  /** Pieces follow each other without gap up to the end of what is free. */
  private void checkMapped(int run, long end) {
    pieceEnd = Math.max(pieceEnd, space.pieces.startOf(space.address(run)));
    while (pieceEnd < end) {
      long bytes = space.pieces.bytesAt(pieceEnd);
      require(bytes > 0, "the memory of free run", run);
      pieceEnd += bytes;
    }
  }

  private static void require(boolean holds, String what, long number) {
    if (!holds) {
      throw new AssertionError(what + " " + number + " is wrong");
    }
  }
}
