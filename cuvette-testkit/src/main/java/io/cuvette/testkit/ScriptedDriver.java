package io.cuvette.testkit;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.DriverProxy;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Scripts the calls of a driver by name: answers them, lets them fail or holds them, counts all of
 * them and records those that are watched. A call without a script does what the driver below does.
 * Names are those of the methods of {@link CudaDriver} and its parts; a name that they do not have
 * is refused at once.
 *
 * <p>A {@link CudaTest} takes it as a parameter, and has its {@link io.cuvette.Cuda} above it.
 * Thread-safe; closing it releases all that it holds.
 */
public final class ScriptedDriver implements AutoCloseable {
  private final Map<String, Answer> answers = new ConcurrentHashMap<>();
  private final Map<String, Hold> holds = new ConcurrentHashMap<>();
  private final Map<String, AtomicLong> counts = new ConcurrentHashMap<>();
  private final Map<String, Function<DriverCall, String>> noting = new ConcurrentHashMap<>();
  private final Queue<String> notes = new ConcurrentLinkedQueue<>();

  /** A script that changes nothing so far. */
  public ScriptedDriver() {}

  /** What happens instead of a call of the driver. */
  @FunctionalInterface
  public interface Answer {

    /**
     * Answers a call, by {@link DriverCall#proceed} if it is to be made.
     *
     * @param call the call
     * @return the result; null for a call that has none
     * @throws Throwable what the caller gets
     */
    @Nullable Object to(DriverCall call) throws Throwable;
  }

  /**
   * Creates a driver that follows the script above another one, for {@code withDecorator}.
   *
   * @param below the driver that makes the calls
   * @return the driver, which closes the one below
   */
  public CudaDriver over(CudaDriver below) {
    Objects.requireNonNull(below, "below");
    return DriverProxy.of((method, arguments) ->
        method.getName().equals("toString")
            ? "scripted(" + below.name() + ")"
            : follow(new DriverCall(below, method, arguments)));
  }

  /**
   * Creates a driver whose {@code close} does nothing.
   *
   * @param driver the driver under test
   * @return the driver
   */
  public static CudaDriver keptOpen(CudaDriver driver) {
    Objects.requireNonNull(driver, "driver");
    return new ScriptedDriver().answer("close", _ -> null).over(driver);
  }

  /**
   * Answers the calls of a name from now on, in place of what was scripted for it before.
   *
   * @param name the name of a call, such as {@code memAlloc}
   * @param answer answers the calls
   * @return this script
   */
  public ScriptedDriver answer(String name, Answer answer) {
    Objects.requireNonNull(answer, "answer");
    answers.put(known(name), answer);
    return this;
  }

  /**
   * Fails the calls of a name from now on; the driver below does not get them.
   *
   * @param name the name of a call, such as {@code memAlloc}
   * @param status the error of the call
   * @return this script
   */
  public ScriptedDriver fail(String name, CudaStatus status) {
    return fail(name, status, Integer.MAX_VALUE);
  }

  /**
   * Fails the next calls of a name; the driver below does not get them.
   *
   * @param name the name of a call, such as {@code memAlloc}
   * @param status the error of the call
   * @param times how many calls fail, >= 0
   * @return this script
   */
  public ScriptedDriver fail(String name, CudaStatus status, int times) {
    Objects.requireNonNull(status, "status");
    if (times < 0) {
      throw new IllegalArgumentException("times: " + times + " (expected: >= 0)");
    }
    AtomicInteger left = new AtomicInteger(times);
    return answer(
        name,
        call -> {
          if (left.getAndUpdate(now -> Math.max(0, now - 1)) > 0) {
            throw new CudaException(status, name, "scripted by the test");
          }
          return call.proceed();
        });
  }

  /**
   * Does what the driver below does in calls of a name from now on.
   *
   * @param name the name of a call, such as {@code memAlloc}
   */
  public void unscript(String name) {
    answers.remove(known(name));
  }

  /**
   * Holds the next thread that calls a name before the call until it is released, or for a minute
   * at most.
   *
   * @param name the name of a call, such as {@code memAlloc}
   * @return the hold, which is released to let the thread go on
   */
  public Hold hold(String name) {
    Hold hold = new Hold(known(name));
    holds.put(name, hold);
    return hold;
  }

  /**
   * {@return the number of calls of a name that ended without a failure}
   *
   * @param name the name of a call, such as {@code memAlloc}
   */
  public long count(String name) {
    AtomicLong count = counts.get(known(name));
    return count == null ? 0 : count.get();
  }

  /**
   * Notes the names of calls when they end, whether they fail or not.
   *
   * @param names names of calls
   * @return this script
   */
  public ScriptedDriver note(String... names) {
    Objects.requireNonNull(names, "names");
    for (String name : names) {
      note(name, DriverCall::name);
    }
    return this;
  }

  /**
   * Notes the calls of a name when they end, whether they fail or not; not those that are null.
   *
   * @param name the name of a call, such as {@code memAlloc}
   * @param text makes the note of a call; null for none
   * @return this script
   */
  public ScriptedDriver note(String name, Function<DriverCall, @Nullable String> text) {
    Objects.requireNonNull(text, "text");
    noting.put(known(name), text);
    return this;
  }

  /** {@return the notes so far, the call that ended first comes first} */
  public List<String> notes() {
    return List.copyOf(notes);
  }

  /**
   * Takes what was noted so far.
   *
   * @return the notes, the call that ended first comes first
   */
  public List<String> takeNotes() {
    List<String> taken = notes();
    for (int i = 0; i < taken.size(); i++) {
      notes.remove();
    }
    return taken;
  }

  /** Releases all that is held. */
  @Override
  public void close() {
    holds.values().forEach(Hold::release);
  }

  private static String known(String name) {
    return DriverProxy.requireName("name", name);
  }

  private @Nullable Object follow(DriverCall call) throws Throwable {
    String name = call.name();
    Hold hold = holds.get(name);
    if (hold != null) {
      hold.enter();
    }
    try {
      Answer answer = answers.get(name);
      Object result = answer == null ? call.proceed() : answer.to(call);
      counts.computeIfAbsent(name, _ -> new AtomicLong()).incrementAndGet();
      return result;
    } finally {
      note(call);
    }
  }

  private void note(DriverCall call) {
    Function<DriverCall, String> text = noting.get(call.name());
    String note = text == null ? null : text.apply(call);
    if (note != null) {
      notes.add(note);
    }
  }
}
