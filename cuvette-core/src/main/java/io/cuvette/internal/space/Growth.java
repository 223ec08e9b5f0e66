package io.cuvette.internal.space;

import java.util.function.LongBinaryOperator;

/** A place taken for a block, of which some is still to be mapped. Confined to one thread. */
public final class Growth {
  private static final int NUMBERS = 3;

  public final Space space;

  /** The first run in use: of the block, or of mapped memory before it. */
  final int run;

  public final long address;

  /** What it was made of: the units, state and sequence of each part. */
  private final long[] parts;

  private int count;

  /** The run in use that is for the block alone. */
  private int block = Space.NONE;

  Growth(Space space, int run, int parts) {
    this.space = space;
    this.run = run;
    this.address = space.address(run);
    this.parts = new long[parts * NUMBERS];
  }

  public int block() {
    return block;
  }

  void block(int run) {
    block = run;
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

  int parts() {
    return count;
  }

  long units(int part) {
    return parts[NUMBERS * part];
  }

  int state(int part) {
    return (int) parts[NUMBERS * part + 1];
  }

  long sequence(int part) {
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
