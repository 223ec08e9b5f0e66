package io.cuvette.internal.base;

import java.util.concurrent.locks.ReentrantLock;

/**
 * A lock that whoever finds it free takes, before those that wait. They wait outside of its queue:
 * the first one there may be a virtual thread that all carriers are busy for, with threads that
 * wait in the driver for the very callback whose thread would stand behind it. Thread-safe.
 */
public final class BargingLock extends ReentrantLock {
  private static final long serialVersionUID = 1;

  /** {@inheritDoc} A thread that is interrupted stays so. */
  @Override
  public void lock() {
    if (!tryLock()) {
      Await.until(this::tryLock);
    }
  }
}
