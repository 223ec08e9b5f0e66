package io.cuvette;

import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.DriverProxy;
import java.lang.reflect.Parameter;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The devices that calls of a driver are for, but those that ask what a device is. Thread-safe. */
final class DevicesAsked {
  private final Set<Object> devices = ConcurrentHashMap.newKeySet();

  /** A driver whose calls are noted. */
  CudaDriver over(CudaDriver driver) {
    return DriverProxy.of((method, arguments) -> {
      Parameter[] parameters = method.getParameters();
      for (int i = 0; i < parameters.length; i++) {
        if (parameters[i].getName().equals("device") && !method.getName().startsWith("device")) {
          devices.add(arguments[i]);
        }
      }
      return DriverProxy.forward(driver, method, arguments);
    });
  }

  /** Forgets what was noted, and then notes the devices of some work. */
  Set<Object> during(Runnable work) {
    devices.clear();
    work.run();
    return Set.copyOf(devices);
  }
}
