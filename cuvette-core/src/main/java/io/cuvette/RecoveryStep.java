package io.cuvette;

/** What a pool tries, in this order, before it gives up; it searches again after each. */
public enum RecoveryStep {
  /** The limit alone forbids the size. */
  LIMIT,
  /** The driver was asked, without a pool. */
  DRIVER,
  /** Its own cached blocks. */
  OWN_BLOCKS,
  /** Cached blocks of other streams whose work is done. */
  OTHER_STREAMS,
  /** More memory from the driver. */
  GROW,
  /** Giving cached memory back to the driver, also that of the other pools. */
  RELEASE,
  /** Asking the pressure listeners. */
  PRESSURE,
  /** Waiting for the streams that still use cached memory. */
  WAIT,
  /** Looking for forgotten buffers with the garbage collector. */
  RECLAIM
}
