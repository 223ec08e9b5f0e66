package io.cuvette.testkit.support;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.MemLocationType;
import io.cuvette.driver.PoolProperties;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.testkit.DriverCall;
import io.cuvette.testkit.ScriptedDriver;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.util.Arrays;
import java.util.Set;
import java.util.function.Predicate;

/**
 * Which calls of a driver are for the first device, about memory there, or queue something on the
 * null stream. Stateless.
 */
public final class FirstDevice {
  /** What a null stream is asked beside the streams that a program has. */
  private static final Set<String> QUESTIONS =
      Set.of("streamIsCapturing", "streamQuery", "streamSynchronize");

  private FirstDevice() {}

  /** Notes the name of each such call, in place of all that was noted before. */
  public static void watch(ScriptedDriver driver) {
    for (Method method : DriverProxy.methods()) {
      Predicate<DriverCall> isForFirst =
          Arrays.stream(method.getParameters())
              .map(FirstDevice::namesFirst)
              .reduce(_ -> false, Predicate::or);
      driver.note(method.getName(), call -> isForFirst.test(call) ? call.name() : null);
    }
  }

  private static Predicate<DriverCall> namesFirst(Parameter parameter) {
    String name = parameter.getName();
    Class<?> type = parameter.getType();
    if (type == PoolProperties.class) {
      return call -> isOfFirst(call.argument(name, PoolProperties.class));
    }
    if (type == AllocationProperties.class) {
      return call -> isOfFirst(call.argument(name, AllocationProperties.class));
    }
    return switch (name) {
      case "device" -> call -> call.number(name) == 0;
      case "stream" -> call -> call.number(name) == 0 && !QUESTIONS.contains(call.name());
      case "locationId" -> call -> isFirst(call.number("locationType"), call.number(name));
      case "locationIds" ->
          call ->
              Arrays.stream(call.argument(name, int[].class))
                  .anyMatch(id -> isFirst(call.number("locationType"), id));
      default -> _ -> false;
    };
  }

  private static boolean isOfFirst(PoolProperties properties) {
    return isFirst(properties.locationType(), properties.locationId());
  }

  private static boolean isOfFirst(AllocationProperties properties) {
    return isFirst(properties.locationType(), properties.locationId());
  }

  private static boolean isFirst(long locationType, long id) {
    return locationType == MemLocationType.DEVICE && id == 0;
  }
}
