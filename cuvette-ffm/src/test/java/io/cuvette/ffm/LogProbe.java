package io.cuvette.ffm;

import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Takes what a logger is told, by reflection, for this module does not read that of the logs. Only
 * messages with failures that say what they are get through, as with a handler that writes them.
 */
public final class LogProbe implements AutoCloseable {
  private static final String LOGS = "java.util.logging.";

  private final Object logger;
  private final List<String> told = Collections.synchronizedList(new ArrayList<>());

  /** Takes what is told from now on. */
  public LogProbe(String name) throws ReflectiveOperationException {
    logger = Class.forName(LOGS + "Logger").getMethod("getLogger", String.class).invoke(null, name);
    Class<?> type = Class.forName(LOGS + "Filter");
    set(
        Proxy.newProxyInstance(
            type.getClassLoader(), new Class<?>[] {type}, (_, _, arguments) -> note(arguments[0])));
  }

  private void set(Object filter) throws ReflectiveOperationException {
    logger.getClass().getMethod("setFilter", Class.forName(LOGS + "Filter")).invoke(logger, filter);
  }

  private boolean note(Object message) throws ReflectiveOperationException {
    Object thrown = get(message, "getThrown");
    Object[] parameters = (Object[]) get(message, "getParameters");
    told.add(
        get(message, "getLevel")
            + " "
            + get(message, "getMessage")
            + (parameters == null ? "" : " " + List.of(parameters))
            + (thrown == null ? "" : ": " + thrown));
    return false;
  }

  private static Object get(Object message, String getter) throws ReflectiveOperationException {
    return Class.forName(LOGS + "LogRecord").getMethod(getter).invoke(message);
  }

  /** {@return what the logger was told} */
  public List<String> told() {
    return List.copyOf(told);
  }

  @Override
  public void close() throws ReflectiveOperationException {
    set(null);
  }
}
