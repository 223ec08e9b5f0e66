package io.cuvette.driver;

import java.lang.StackWalker.StackFrame;
import java.lang.reflect.Modifier;
import java.util.Iterator;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/**
 * Remembers which call first reported that a context is lost. Every later call fails with the same
 * status, also those that the library makes for itself, so their messages name that first call, and
 * the operation of the program that led to the call. For drivers. Thread-safe.
 */
public final class FirstFailure {
  private static final String API = "io.cuvette";

  /** The packages under the API whose frames are the library's, with all that are under them. */
  private static final Set<String> LIBRARY =
      Set.of("driver", "ffm", "instrument", "internal", "sim");

  private final Map<CudaStatus, String> calls = new ConcurrentHashMap<>();

  /** Of a device, or of all devices that share a process's contexts. */
  public FirstFailure() {}

  /**
   * {@return the text that the message of a failed call has besides the status; empty unless the
   * context is lost} Is called by the thread that made the call.
   *
   * @param status the status of the call that failed now
   * @param call the call with its arguments
   */
  public String explain(CudaStatus status, String call) {
    Objects.requireNonNull(status, "status");
    Objects.requireNonNull(call, "call");
    if (!status.losesContext()) {
      return "";
    }
    String operation =
        StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE)
            .walk(FirstFailure::operation);
    String where = operation.isEmpty() ? "" : "in " + operation;
    String first = calls.putIfAbsent(status, where.isEmpty() ? call : call + " " + where);
    if (first == null) {
      return where;
    }
    return (where.isEmpty() ? "" : where + "; ") + "the first call that failed was " + first;
  }

  /**
   * The method of the library that the program called; empty on the library's own threads. What
   * stands between the library and the driver may be from outside.
   */
  private static String operation(Stream<StackFrame> frames) {
    String operation = "";
    for (Iterator<StackFrame> all = frames.iterator(); all.hasNext(); ) {
      StackFrame frame = all.next();
      Class<?> type = frame.getDeclaringClass();
      String holder = type.getPackageName();
      boolean program =
          !isLibrary(holder) && !holder.startsWith("java.") && !holder.startsWith("jdk.");
      if (program && !operation.isEmpty()) {
        return operation;
      }
      if (holder.equals(API) && !frame.getMethodName().startsWith("lambda$")) {
        String of = Modifier.isPublic(type.getModifiers()) ? type.getSimpleName() + "." : "";
        operation = of + frame.getMethodName();
      }
    }
    return "";
  }

  private static boolean isLibrary(String holder) {
    if (!holder.startsWith(API + ".")) {
      return holder.equals(API);
    }
    int start = API.length() + 1;
    int end = holder.indexOf('.', start);
    return LIBRARY.contains(holder.substring(start, end < 0 ? holder.length() : end));
  }
}
