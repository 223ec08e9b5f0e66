package io.cuvette.instrument;

import java.util.HashMap;
import java.util.Map;
import java.util.StringJoiner;
import org.jspecify.annotations.Nullable;

/**
 * Where something happened: a driver call as the message, and the stack of the caller. Of work and
 * blocks of pools that a thread makes in great number, most have the stack of one of the same kind
 * that the thread made shortly before. Immutable for those that get it.
 */
public final class Site extends Throwable {
  private static final long serialVersionUID = 1L;

  /** So many calls of a method by one thread each have their own stack. */
  private static final int ALL_OF = 64;

  /** Of those that come later one in so many: to take a stack costs more than to queue work. */
  private static final int ONE_IN = 16;

  private static final ThreadLocal<Map<String, Recent>> RECENT =
      ThreadLocal.withInitial(HashMap::new);

  private final String method;
  private final transient Object[] arguments;

  /** What has the stack of this one; itself if it has its own. */
  private @Nullable Site like;

  private static final class Recent {
    private @Nullable Site withStack;
    private int count;
  }

  private Site(String method, Object... arguments) {
    this.method = method;
    this.arguments = arguments;
  }

  /** A call of a method with alternating names and values of arguments. */
  static Site of(String method, Object... arguments) {
    return new Site(method, arguments).here();
  }

  /** The same for what a program does all the time. */
  static Site often(String method, Object... arguments) {
    Site site = new Site(method, arguments);
    Recent recent = RECENT.get().computeIfAbsent(method, _ -> new Recent());
    if (recent.count++ < ALL_OF || recent.count % ONE_IN == 0) {
      recent.withStack = site.here();
    }
    site.like = recent.withStack;
    return site;
  }

  /** The same for what is of interest only if it turns out to be a mistake now. */
  static Site passing(String method, Object... arguments) {
    return new Site(method, arguments);
  }

  private Site here() {
    Throwable _ = super.fillInStackTrace();
    like = this;
    return this;
  }

  /** Taken by {@link #here} where it is worth it. */
  @Override
  public Throwable fillInStackTrace() {
    return this;
  }

  /** This is the call that is made now, and a mistake. */
  void isMistakeHere() {
    if (like != this) {
      Site _ = here();
    }
  }

  /** Somebody will look at it. */
  void isOfInterest() {
    if (like != null && like != this) {
      setStackTrace(like.getStackTrace());
    }
  }

  /** The driver call with its arguments. */
  public String call() {
    StringJoiner text = new StringJoiner(", ", method + "(", ")");
    for (int i = 0; i < arguments.length; i += 2) {
      text.add(arguments[i] + "=" + DriverProxy.text(arguments[i + 1]));
    }
    return text.toString();
  }

  /** {@link #call}. */
  @Override
  public String getMessage() {
    return call();
  }

  /** The call, and whether the stack is another's. */
  @Override
  public String toString() {
    String whose = like == null || like == this ? "" : ", called as one like it shortly before";
    return super.toString() + whose;
  }
}
