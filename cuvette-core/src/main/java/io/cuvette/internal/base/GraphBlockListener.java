package io.cuvette.internal.base;

import io.cuvette.driver.BlockListener;

/** Learns as well which blocks no graph keeps. Thread-safe. */
public interface GraphBlockListener extends BlockListener {

  /** Called before {@link #blockFreed} for a block that no graph may use any more. */
  void leftByGraphs(Block block);
}
