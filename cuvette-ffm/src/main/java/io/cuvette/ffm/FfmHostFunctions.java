package io.cuvette.ffm;

import io.cuvette.driver.StreamCalls;

/** The call that makes a stream run a Java function. Thread-safe. */
interface FfmHostFunctions extends FfmCalls, StreamCalls {

  /** The driver itself, whose end is also the end of its functions. */
  FfmDriver self();

  @Override
  default void launchHostFunc(int device, long stream, Runnable function) {
    CallFrame frame = enterAsIs(device);
    long number = HostFunctions.add(self(), function);
    int status;
    try {
      status =
          (int) StreamFunctions.LAUNCH_HOST_FUNC.invokeExact(stream, HostFunctions.ENTRY, number);
    } catch (Throwable e) {
      HostFunctions.remove(number);
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      HostFunctions.remove(number);
      throw Failure.of(status, "cuLaunchHostFunc(stream=%#x, device=%d)", stream, device);
    }
  }
}
