package io.cuvette.sim;

/**
 * What a kernel does, in Java, as one call for a whole grid: for kernels over many elements, which
 * would take long thread by thread. It is given the only thread of a grid of one; {@link
 * KernelThread#getBytes} and {@link KernelThread#setBytes} move what it works on. It must depend on
 * no shape of the launch.
 */
@FunctionalInterface
public interface GridFunction extends KernelFunction {

  /**
   * Does the work of all threads. An exception fails the launch, as a trap does on a GPU.
   *
   * @param thread stands for the grid; at 0 of 1 in all dimensions, valid during the call alone
   */
  @Override
  void run(KernelThread thread);
}
