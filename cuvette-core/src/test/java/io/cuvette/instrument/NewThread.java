package io.cuvette.instrument;

/** Runs a step on a thread of its own: the first calls of a thread have stacks of their own. */
final class NewThread {
  private NewThread() {}

  static void run(Runnable step) throws InterruptedException {
    Thread thread = Thread.ofPlatform().start(step);
    thread.join();
  }
}
