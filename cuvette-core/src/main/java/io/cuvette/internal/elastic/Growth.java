package io.cuvette.internal.elastic;

import java.util.function.LongBinaryOperator;

/** A place taken for a block, of which some is still to be mapped. Confined to one thread. */
final class Growth {
  private static final int NUMBERS = 3;

  final Space space;

  /** The run in use that has all of it. */
  final int run;

  final long address;

  /** Units before the block in the run. */
  final long before;

  /** Units of the block. */
  final long units;

  /** What it was made of: the units, state and sequence of each part. */
  private final long[] parts;

  private int count;

  Growth(Space space, int run, long before, long units, int parts) {
    this.space = space;
    this.run = run;
    this.address = space.address(run);
    this.before = before;
    this.units = units;
    this.parts = new long[parts * NUMBERS];
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
  long eachHole(LongBinaryOperator step) {
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
