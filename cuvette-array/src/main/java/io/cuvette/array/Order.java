package io.cuvette.array;

/** In which order the elements of an array lie in memory. */
public enum Order {
  /** The last index varies fastest: row by row. */
  C,

  /** The first index varies fastest: column by column, as in Fortran. */
  F,

  /** As {@link #F} if the array that is copied lies in that order and not in {@link #C}, else C. */
  A,

  /** As close as possible to the order of the array that is copied, whatever its strides. */
  K
}
