package io.cuvette.internal.space;

import java.util.function.LongBinaryOperator;

/** A place taken for a block, of which some is still to be mapped. Confined to one thread. */
public final class Growth {
  private static final int NUMBERS = 3;

  public final Space space;
  public final long address;

  /** The first run in use: of the block, or of mapped memory before it. */
  private int run;

  /** What it was made of: the units, state and sequence of each part. */
  private final long[] parts;

  private int count;

  /** The run in use that is for the block alone. */
  private int block;

  /** How many parts were given back, and the run behind the next of them if that is cut off. */
  private int ended;

  private int rest = Space.NONE;

  Growth(Space space, long address, int parts) {
    this.space = space;
    this.address = address;
    this.parts = new long[parts * NUMBERS];
  }

  public int block() {
    return block;
  }

  void runs(int first, int ofBlock) {
    run = first;
    block = ofBlock;
  }

  int run() {
    return run;
  }

  /** Nothing is mapped: the place is what it was. Goes on where the Java heap was full. */
  public void abort() {
    space.reserve(count + Space.SPLITS);
    if (ended == 0 && rest == Space.NONE) {
      join();
    }
    while (ended < count) {
      if (ended + 1 < count && rest == Space.NONE) {
        rest = space.blocks.cut(run, units(ended), Space.UNIT_SHIFT);
      }
      if (state(ended) == Space.HOLE) {
        space.holes.make(run);
      } else {
        space.release(run, state(ended), sequence(ended), AgeList.NOW);
      }
      run = rest;
      rest = Space.NONE;
      ended++;
    }
    assert space.isValid();
  }

  /** Makes one run of that of the block and those beside it. */
  private void join() {
    if (space.restOf(this) != Space.NONE) {
      space.blocks.absorbNext(block);
    }
    if (block != run) {
      space.blocks.absorbNext(run);
      block = run;
    }
  }

  /** Where all of it ends. */
  public long end() {
    long units = 0;
    for (int part = 0; part < count; part++) {
      units += units(part);
    }
    return address + (units << Space.UNIT_SHIFT);
  }

  void add(long units, int state, long sequence) {
    parts[NUMBERS * count] = units;
    parts[NUMBERS * count + 1] = state;
    parts[NUMBERS * count + 2] = sequence;
    count++;
  }

  private long units(int part) {
    return parts[NUMBERS * part];
  }

  private int state(int part) {
    return (int) parts[NUMBERS * part + 1];
  }

  private long sequence(int part) {
    return parts[NUMBERS * part + 2];
  }

  /** Adds up what a step returns for the address and bytes of each part that is to be mapped. */
  public long eachHole(LongBinaryOperator step) {
    long sum = 0;
    long at = address;
    for (int part = 0; part < count; part++) {
      long bytes = units(part) << Space.UNIT_SHIFT;
      if (state(part) == Space.HOLE) {
        sum += step.applyAsLong(at, bytes);
      }
      at += bytes;
    }
    return sum;
  }

  /** The units to be mapped. */
  long holeUnits() {
    return eachHole((_, bytes) -> bytes) >>> Space.UNIT_SHIFT;
  }
}
