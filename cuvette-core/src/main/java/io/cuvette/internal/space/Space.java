package io.cuvette.internal.space;

import io.cuvette.internal.index.BlockTable;
import io.cuvette.internal.index.SizeIndex;
import java.util.OptionalLong;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of a range of addresses in which memory is mapped here and there. Not thread-safe.
 *
 * <p>The range is covered by <i>runs</i> that lie side by side, in multiples of {@value
 * #UNIT_BYTES} bytes. A run is in use, free, or a hole, in which no memory is mapped. A free run
 * has a <i>tag</i>: that of the stream in whose order it was freed, or {@link #DONE} if all work
 * that used it is done. Memory is mapped in <i>pieces</i> of whole pages:
 *
 * <pre>
 *   │ in use │ free, done │ hole      │ free, tag 3 │ in use │ hole …      │ guard
 *   │ piece      │ piece  │           │ piece                │
 * </pre>
 *
 * <p>Always: no two neighbours are both holes, nor both free with the same tag; holes are whole
 * pages; pieces cover exactly what is no hole; used + free = mapped.
 *
 * <p>A run is a non-negative number, which is valid while the run is in use.
 */
public final class Space {
  public static final int NONE = BlockTable.NONE;

  /** The tag of free memory whose work is done. */
  public static final int DONE = 0;

  public static final int UNIT_BYTES = 512;
  public static final int UNIT_SHIFT = 9;
  static final int HOLE = -2;
  private static final int USED = -3;

  /** The most records that a step makes, but for one that gives a place back. */
  static final int SPLITS = 4;

  /** Walk over everything after every change: finds a fault where it happens, at a high price. */
  private static final boolean VALIDATE = Boolean.getBoolean("cuvette.pool.validate");

  final long base;
  final Pieces pieces;
  private final long pageUnits;
  final BlockTable blocks = new BlockTable();
  final AgeList aged;
  private final FreeRuns free = new FreeRuns(blocks);
  final Holes holes = new Holes(blocks);
  private final int guard;
  private long mappedUnits;

  /**
   * A range in which nothing is mapped.
   *
   * @param base the first address, a multiple of the page
   * @param bytes the size, a multiple of the page
   * @param pieces what is mapped there, and elsewhere; others change it
   * @param clock tells the time when runs become free
   */
  public Space(long base, long bytes, Pieces pieces, LongSupplier clock) {
    this.base = base;
    this.pieces = pieces;
    this.pageUnits = pieces.pageUnits();
    this.aged = new AgeList(clock);
    int all = blocks.create(base, (bytes >>> UNIT_SHIFT) + 1, 0, USED);
    guard = blocks.cut(all, bytes >>> UNIT_SHIFT, UNIT_SHIFT);
    addTag(DONE);
    holes.add(all);
  }

  // tags

  /** Makes room for a tag. */
  public void addTag(int tag) {
    free.add(tag);
  }

  int tags() {
    return free.tags();
  }

  /** The free units of a tag. */
  public long freeUnits(int tag) {
    return free.units(tag);
  }

  SizeIndex index(int tag) {
    return free.index(tag);
  }

  /** The largest free run of all tags, in units. */
  public long largestFree() {
    return free.largest();
  }

  public long mappedUnits() {
    return mappedUnits;
  }

  // runs

  long units(int run) {
    return blocks.units(run);
  }

  public long address(int run) {
    return blocks.address(run);
  }

  public long bytes(int run) {
    return blocks.units(run) << UNIT_SHIFT;
  }

  boolean isFree(int run) {
    return blocks.chunk(run) >= 0;
  }

  boolean isHole(int run) {
    return blocks.chunk(run) == HOLE;
  }

  boolean isUsable(int run, int tag) {
    int state = blocks.chunk(run);
    return state == tag || state == DONE || state == HOLE;
  }

  /**
   * The smallest free run of at least so many units that a stream may use, or NONE. Makes room in
   * the Java heap for taking it.
   */
  public int find(long units, int tag) {
    int run = index(DONE).atLeast(units, SizeIndex.ALL);
    if (tag != DONE && freeUnits(tag) >= units) {
      int own = index(tag).atLeast(units, SizeIndex.ALL);
      if (own != NONE && (run == NONE || blocks.units(own) <= blocks.units(run))) {
        run = own;
      }
    }
    return run == NONE ? NONE : makeRoom(run, units);
  }

  /** Makes room in the Java heap for taking the first units of a free run, which it gives. */
  public int makeRoom(int run, long units) {
    if (blocks.units(run) != units) {
      blocks.reserve();
      index(blocks.chunk(run)).reserve(blocks.units(run) - units, 1);
      aged.reserve(blocks.end() + 1);
    }
    return run;
  }

  /** Cuts a run in use; gives the second part. Changes nothing if the Java heap is full. */
  public int cut(int run, long units) {
    return blocks.cut(run, units, UNIT_SHIFT);
  }

  /** Takes the first units of a free run that was found. Allocates nothing in the Java heap. */
  public void take(int run, long units) {
    long time = aged.time(run);
    unlist(run);
    if (blocks.units(run) != units) {
      list(blocks.cut(run, units, UNIT_SHIFT), time);
    }
    blocks.chunk(run, USED);
    assert isValid();
  }

  /**
   * Frees a run in use. Changes nothing if the Java heap is full.
   *
   * @param sequence tells it from later frees with the same tag
   * @param now the time
   */
  public void give(int run, int tag, long sequence, long now) {
    if (run < 0 || run >= blocks.end() || blocks.chunk(run) != USED || run == guard) {
      throw new IllegalStateException("run: " + run + " (expected: a run in use)");
    }
    release(run, tag, sequence, now);
    assert isValid();
  }

  /**
   * Makes a run free, which is in use or has another tag, with those beside it that are free as it
   * is or whose work is done. Changes nothing if the Java heap is full.
   */
  void release(int run, int tag, long sequence, long now) {
    int first = run;
    long units = blocks.units(run);
    for (int prev = blocks.prev(run); prev != NONE && joins(prev, tag); prev = blocks.prev(prev)) {
      first = prev;
      units += blocks.units(prev);
    }
    for (int next = blocks.next(run); joins(next, tag); next = blocks.next(next)) {
      units += blocks.units(next);
    }
    index(tag).reserve(units, 1);
    aged.reserve(blocks.end());
    if (isFree(run)) {
      unlist(run);
    }
    long last = sequence;
    if (first != run) {
      last = Math.max(last, blocks.base(first));
      unlist(first);
    }
    while (blocks.units(first) < units) {
      int next = blocks.next(first);
      if (next != run) {
        last = Math.max(last, blocks.base(next));
        unlist(next);
      }
      blocks.absorbNext(first);
    }
    blocks.chunk(first, tag);
    blocks.base(first, last);
    list(first, now);
  }

  private boolean joins(int run, int tag) {
    int state = blocks.chunk(run);
    return state == tag || state == DONE;
  }

  private void list(int run, long time) {
    free.insert(run);
    if (units(run) >= pageUnits) {
      aged.add(run, time);
    }
  }

  private void unlist(int run) {
    free.remove(run);
    if (units(run) >= pageUnits) {
      aged.remove(run);
    }
  }

  /** What was freed with a tag up to a sequence is done, or some of it if the Java heap is full. */
  public void done(int tag, long until) {
    if (freeUnits(tag) == 0) {
      return;
    }
    for (int run = free.first(tag); run != NONE; ) {
      int next = free.after(run);
      if (blocks.base(run) <= until) {
        release(run, DONE, 0, aged.time(run));
      }
      run = next;
    }
    assert isValid();
  }

  // where to put a block that no free run has room for

  /**
   * The place with the fewest units to map; of these, in the smallest gap between what cannot be
   * used, and at the end of the range last.
   */
  public Place place(long units, int tag) {
    return new Placement(this, units, tag).find();
  }

  /** So many units in whole pages. */
  long up(long units) {
    return (units + pageUnits - 1) & -pageUnits;
  }

  // growing

  /** Takes a place for a block of so many units. Changes nothing if the Java heap is full. */
  public Growth begin(Place place, long units) {
    reserve(SPLITS);
    int run = place.first;
    long cut = isHole(run) ? place.offset & -pageUnits : place.offset;
    long before = place.offset - cut;
    int count = 1;
    int last = run;
    long left = before + units;
    long size = blocks.units(run) - cut;
    while (left > size) {
      left -= size;
      last = blocks.next(last);
      size = blocks.units(last);
      count++;
    }
    long end = isHole(last) ? up(left) : left;
    Growth growth = new Growth(this, address(run) + (cut << UNIT_SHIFT), count);
    reserveSplit(run);
    reserveSplit(last);
    if (cut > 0) {
      int tail = split(run, cut);
      last = last == run ? tail : last;
      run = tail;
    }
    if (end < blocks.units(last)) {
      int _ = split(last, end);
    }
    join(growth, run, count);
    int block = before > 0 ? blocks.cut(run, before, UNIT_SHIFT) : run;
    if (blocks.units(block) > units) {
      int _ = blocks.cut(block, units, UNIT_SHIFT);
    }
    growth.runs(run, block);
    assert isValid();
    return growth;
  }

  /** Makes one run in use of so many that are free or holes. */
  private void join(Growth growth, int run, int count) {
    for (int i = 0; i < count; i++) {
      int part = i == 0 ? run : blocks.next(run);
      growth.add(blocks.units(part), blocks.chunk(part), isHole(part) ? 0 : blocks.base(part));
      withdraw(part);
      if (i > 0) {
        blocks.absorbNext(run);
      }
    }
    blocks.chunk(run, USED);
  }

  private void reserveSplit(int run) {
    if (isFree(run)) {
      free.reserve(blocks.chunk(run), blocks.units(run));
    }
  }

  /**
   * Cuts a free run or a hole, for which there is room; both parts stay what it was. The second.
   */
  private int split(int run, long units) {
    int state = blocks.chunk(run);
    long time = aged.time(run);
    withdraw(run);
    int tail = blocks.cut(run, units, UNIT_SHIFT);
    if (state == HOLE) {
      holes.add(run);
      holes.add(tail);
    } else {
      list(run, time);
      list(tail, time);
    }
    return tail;
  }

  private void withdraw(int run) {
    if (isHole(run)) {
      holes.remove(run);
    } else {
      unlist(run);
    }
  }

  /** All is mapped: what is not of the block is free. Changes nothing if the Java heap is full. */
  public void publish(Growth growth) {
    int block = growth.block();
    int rest = restOf(growth);
    if (block != growth.run()) {
      release(growth.run(), DONE, 0, AgeList.NOW);
    }
    mappedUnits += growth.holeUnits();
    if (rest != NONE) {
      releaseRest(block, rest);
    }
    assert isValid();
  }

  /** The run in use behind the block; NONE if there is none. */
  int restOf(Growth growth) {
    int next = blocks.next(growth.block());
    return address(next) < growth.end() ? next : NONE;
  }

  private void releaseRest(int block, int rest) {
    try {
      release(rest, DONE, 0, AgeList.NOW);
    } catch (OutOfMemoryError e) {
      blocks.absorbNext(block); // it is free once the block is
    }
  }

  /** Makes room for so many records, so that making them allocates nothing. */
  void reserve(int records) {
    int[] made = new int[records];
    int count = 0;
    try {
      for (; count < records; count++) {
        made[count] = blocks.create(0, 0, 0, USED);
      }
    } finally {
      while (count > 0) {
        blocks.recycle(made[--count]);
      }
    }
    aged.reserve(blocks.end());
    holes.reserve(records);
  }

  // releasing

  /**
   * Takes whole pieces out of free runs whose work is done, of which the one freed first comes
   * first, until they have so many units; null if there are none.
   *
   * @param wanted the units, one at least
   * @param idleNanos how long it was free; any time if empty
   */
  public @Nullable Victim carve(long wanted, OptionalLong idleNanos) {
    for (int run = aged.oldest(); run != NONE; run = aged.after(run)) {
      if (blocks.chunk(run) == DONE && aged.isIdle(run, idleNanos)) {
        Victim victim = carveRun(run, wanted);
        if (victim != null) {
          return victim;
        }
      }
    }
    return null;
  }

  private @Nullable Victim carveRun(int run, long wanted) {
    long end = blocks.address(run) + (blocks.units(run) << UNIT_SHIFT);
    long from = pieces.firstIn(blocks.address(run), end);
    if (from == Pieces.NONE) {
      return null;
    }
    long to = from;
    int count = 0;
    while ((to - from) >>> UNIT_SHIFT < wanted && to < end && to + pieces.bytesAt(to) <= end) {
      to += pieces.bytesAt(to);
      count++;
    }
    return cut(run, from, to, count);
  }

  private Victim cut(int run, long from, long to, int count) {
    reserve(SPLITS);
    reserveSplit(run);
    Victim victim = new Victim(this, from, to - from, count);
    long before = (from - blocks.address(run)) >>> UNIT_SHIFT;
    victim.run = before > 0 ? split(run, before) : run;
    long units = (to - from) >>> UNIT_SHIFT;
    take(victim.run, units);
    mappedUnits -= units;
    return victim;
  }

  /** It is unmapped. Changes nothing if the Java heap is full. */
  void unmapped(Victim victim) {
    holes.make(victim.run);
    assert isValid();
  }

  /** It could not be unmapped. Changes nothing if the Java heap is full. */
  void restore(Victim victim) {
    give(victim.run, DONE, 0, AgeList.NOW);
    mappedUnits += victim.bytes >>> UNIT_SHIFT;
  }

  /** Units of whole pieces in free runs whose work is done. */
  public long releasableUnits() {
    long bytes = 0;
    for (int run = aged.oldest(); run != NONE; run = aged.after(run)) {
      if (blocks.chunk(run) == DONE) {
        bytes += pieces.bytesWithin(address(run), address(run) + (units(run) << UNIT_SHIFT));
      }
    }
    return bytes >>> UNIT_SHIFT;
  }

  /** Checks all that this class promises. */
  public void assertValid() {
    new SpaceCheck(this).run();
  }

  /** How many free runs there are. */
  public int freeRuns() {
    return free.count();
  }

  int holes() {
    return holes.count();
  }

  int hole(int at) {
    return holes.at(at);
  }

  int guard() {
    return guard;
  }

  boolean isValid() {
    if (VALIDATE) {
      assertValid();
    }
    return true;
  }
}
