package io.cuvette.instrument;

import io.cuvette.driver.BlockListener;

/** Is told of everything, and does nothing; tests override what they watch. Thread-safe. */
public class QuietListener implements BlockListener {
  /** Makes a listener. */
  public QuietListener() {}

  @Override
  public void blockAllocated(Block block, int device, long stream) {}

  @Override
  public void blockAllocated(Block block) {}

  @Override
  public void blockFreed(Block block) {}

  @Override
  public void usedElsewhere(long address, long bytes, int device, long stream) {}

  @Override
  public void hostAccess(long address, long bytes, boolean writes) {}
}
