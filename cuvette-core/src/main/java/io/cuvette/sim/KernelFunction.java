package io.cuvette.sim;

/** What a kernel does, in Java: called once for each thread of a grid. */
@FunctionalInterface
public interface KernelFunction {

  /**
   * Does the work of one thread. An exception fails the launch, as a trap does on a GPU.
   *
   * @param thread the thread, valid during the call alone
   */
  void run(KernelThread thread);
}
