package io.cuvette.instrument.internal.report;

import io.cuvette.instrument.Site;
import java.util.HashMap;
import java.util.Map;
import java.util.StringJoiner;
import org.jspecify.annotations.Nullable;

/**
 * A driver call and, where it is worth its cost, the stack of the caller. Of work and blocks of
 * pools that a thread makes in great number, most have the stack of one of the same kind that the
 * thread made shortly before. Not thread-safe: used behind the lock of the sanitizer once it is
 * made.
 */
public final class CallTrace {
  /** How many calls of a method by one thread each take a stack of their own. */
  private static final int ALL_OF = 64;

  /** Of later ones, one in so many: a stack costs more than queueing work. */
  private static final int ONE_IN = 16;

  private static final ThreadLocal<Map<String, Recent>> RECENT =
      ThreadLocal.withInitial(HashMap::new);

  private final String method;
  private final Object[] arguments;

  /** The stack of this call or of one like it; null if none was taken. */
  private @Nullable Throwable stack;

  private boolean isOwn;

  private static final class Recent {
    private @Nullable Throwable stack;
    private int count;
  }

  private CallTrace(String method, Object... arguments) {
    this.method = method;
    this.arguments = arguments;
  }

  /** Traces a call of a method with alternating names and values of arguments. */
  public static CallTrace of(String method, Object... arguments) {
    CallTrace trace = new CallTrace(method, arguments);
    trace.takeStack();
    return trace;
  }

  /** Traces a call that programs make all the time: most share the stack of an earlier one. */
  public static CallTrace often(String method, Object... arguments) {
    CallTrace trace = new CallTrace(method, arguments);
    Recent recent = RECENT.get().computeIfAbsent(method, _ -> new Recent());
    if (recent.count++ < ALL_OF || recent.count % ONE_IN == 0) {
      trace.takeStack();
      recent.stack = trace.stack;
    }
    trace.stack = recent.stack;
    return trace;
  }

  /** Traces a call that is of interest only if it turns out to be a mistake: takes no stack. */
  public static CallTrace passing(String method, Object... arguments) {
    return new CallTrace(method, arguments);
  }

  /** Takes the stack of this call, unless it was taken; only while the call is made. */
  public void takeStack() {
    if (!isOwn) {
      stack = new Throwable();
      isOwn = true;
    }
  }

  /** Returns what a report shows of this call. */
  Site site() {
    return new Site(
        call(),
        stack == null ? new StackTraceElement[0] : stack.getStackTrace(),
        isOwn || stack == null);
  }

  /** Returns the call with its arguments. */
  String call() {
    StringJoiner text = new StringJoiner(", ", method + "(", ")");
    for (int i = 0; i < arguments.length; i += 2) {
      text.add(arguments[i] + "=" + CallText.of(arguments[i + 1]));
    }
    return text.toString();
  }
}
