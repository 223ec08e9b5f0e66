package io.cuvette;

/**
 * The steps that a pool takes, in this order, before an allocation fails; it searches again after
 * each.
 */
public enum RecoveryStep {
  /** The limit alone forbids the size. */
  LIMIT,
  /** A request to the driver, without a pool. */
  DRIVER,
  /** Its own cached blocks. */
  OWN_BLOCKS,
  /** Cached blocks of other streams whose work is done. */
  OTHER_STREAMS,
  /** More memory from the driver. */
  GROW,
  /** Releasing cached memory to the driver, also that of other pools. */
  RELEASE,
  /** Notifying the pressure listeners. */
  PRESSURE,
  /** Waiting for the streams that still use cached memory. */
  WAIT,
  /** Reclaiming forgotten buffers with the help of the garbage collector. */
  RECLAIM
}
