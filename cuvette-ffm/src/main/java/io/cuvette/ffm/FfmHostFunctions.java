package io.cuvette.ffm;

import io.cuvette.driver.StreamCalls;

/** The calls by which a stream and Java code wait for each other. Thread-safe. */
interface FfmHostFunctions extends FfmCalls, StreamCalls {

  /** The driver itself, whose end is also the end of its functions. */
  FfmDriver self();

  @Override
  default void launchHostFunc(int device, long stream, Runnable function) {
    long number = HostFunctions.add(self(), function);
    boolean launched = false;
    try {
      launch(device, stream, number);
      launched = true;
    } finally {
      if (!launched) {
        HostFunctions.remove(number);
      }
    }
  }

  private void launch(int device, long stream, long number) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status =
          (int) StreamFunctions.LAUNCH_HOST_FUNC.invokeExact(stream, HostFunctions.ENTRY, number);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(status, "cuLaunchHostFunc(stream=%#x, device=%d)", stream, device);
    }
  }

  @Override
  default void streamWaitValue32(int device, long stream, long address, int value, int flags) {
    CallFrame frame = enterAsIs(device);
    int status;
    try {
      status = (int) StreamFunctions.WAIT_VALUE_32.invokeExact(stream, address, value, flags);
    } catch (Throwable e) {
      throw frame.broken(e);
    }
    frame.leave();
    if (status != SUCCESS) {
      throw Failure.of(
          status,
          "cuStreamWaitValue32(stream=%#x, address=%#x, value=%d, flags=%d, device=%d)",
          stream,
          address,
          value,
          flags,
          device);
    }
  }
}
