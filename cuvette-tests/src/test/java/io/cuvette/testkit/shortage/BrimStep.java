package io.cuvette.testkit.shortage;

/**
 * One step of a {@link BrimProgram}; what it names is taken modulo what there is. Immutable.
 *
 * @param action what to do
 * @param slot the block it is done to
 * @param other another block, a stream, or which kind of memory
 * @param bytes a size, or a value to fill with
 */
record BrimStep(Action action, int slot, int other, long bytes) {

  /** What a step does. */
  enum Action {
    ALLOCATE,
    FREE,
    FILL,
    COPY,
    READ,
    STREAM,
    EVENT,
    SYNCHRONIZE
  }
}
