package io.cuvette.ffm;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;

import io.cuvette.ffm.call.Call;
import io.cuvette.ffm.call.CallFrame;
import io.cuvette.ffm.call.CallFunctions;
import io.cuvette.ffm.library.Libcuda;
import io.cuvette.ffm.link.NativeAccess;
import java.lang.invoke.MethodHandle;

/**
 * A context that is not the primary one, current on the thread that made it; as a program has that
 * calls the driver itself. Used by that thread.
 */
final class OtherContext implements AutoCloseable {
  private final long context;

  /** Makes one for the first device. */
  OtherContext() {
    MethodHandle create = Libcuda.function("cuCtxCreate", 3020, POINTER, INT, INT);
    CallFrame frame = CallFrame.take();
    int status = invoke(create, frame.out, 0, 0);
    context = frame.leave();
    if (status != 0) {
      throw Call.of("cuCtxCreate()").failed(status);
    }
  }

  long handle() {
    return context;
  }

  /** The context that is current on this thread; 0 for none. */
  static long current() {
    CallFrame frame = CallFrame.take();
    int status = invoke(CallFunctions.GET_CURRENT, frame.out);
    long current = frame.leave();
    if (status != 0) {
      throw Call.of("cuCtxGetCurrent()").failed(status);
    }
    return current;
  }

  @Override
  public void close() {
    int status = invoke(Libcuda.function("cuCtxDestroy", 4000, POINTER), context);
    if (status != 0) {
      throw Call.of("cuCtxDestroy()").failed(status);
    }
  }

  private static int invoke(MethodHandle function, Object... arguments) {
    try {
      return (int) function.invokeWithArguments(arguments);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }
}
