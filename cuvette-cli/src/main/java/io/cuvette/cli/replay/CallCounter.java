package io.cuvette.cli.replay;

import io.cuvette.driver.CudaDriver;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;

/** Counts the calls of a driver. Not thread-safe. */
final class CallCounter {
  private long calls;

  /** The calls so far. */
  long calls() {
    return calls;
  }

  /** A driver whose calls are counted. */
  CudaDriver around(CudaDriver driver) {
    return (CudaDriver)
        Proxy.newProxyInstance(
            CudaDriver.class.getClassLoader(),
            new Class<?>[] {CudaDriver.class},
            (_, method, arguments) -> {
              calls++;
              try {
                return method.invoke(driver, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause() == null ? e : e.getCause();
              }
            });
  }
}
