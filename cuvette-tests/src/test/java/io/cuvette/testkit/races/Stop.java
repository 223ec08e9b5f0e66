package io.cuvette.testkit.races;

/** Keeps threads inside the driver for a while. Thread-safe. */
@FunctionalInterface
interface Stop {
  /** Returns when the call of the current thread may go on. */
  void beforeCall() throws InterruptedException;
}
