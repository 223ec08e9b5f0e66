package io.cuvette.instrument;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.internal.report.CallText;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Counts the calls of a driver and fails one of them, or one and all after it. Thread-safe.
 *
 * <p>Counted is what can fail: every call but {@code name}, {@code isSimulated}, {@code
 * blockListener}, {@code close} and {@code hostView}, which call no driver or end it. A failing
 * call throws a {@link CudaException} whose text states that it was injected, and does not reach
 * the driver below, unless the mode is {@link FaultMode#AFTER_EFFECT}. So a failing call that frees
 * has <em>not</em> freed: freeing again later succeeds, and {@link #freeRefused()} frees what was
 * not freed since.
 *
 * <p>With no status given, each call fails as it most often does: allocations, streams and events
 * for want of memory, waits and queries because a kernel failed, {@code callMalloc} with the 0 that
 * a C allocator returns, and the rest for an unknown reason.
 */
public final class Faults {
  private static final Set<String> NEVER_FAIL =
      Set.of("name", "isSimulated", "blockListener", "close", "hostView");

  private static final String LIBRARY = "io.cuvette";
  private static final String END_CAPTURE = "streamEndCapture";

  private final CudaDriver target;
  private final long callNumber;
  private final FaultMode mode;
  private final @Nullable CudaStatus status;
  private final Predicate<String> counted;
  private final CudaDriver driver;
  private final AtomicLong calls = new AtomicLong();
  private final AtomicInteger paused = new AtomicInteger();
  private final AtomicReference<@Nullable Fault> fault = new AtomicReference<>();
  private final RefusedFrees refusedFrees = new RefusedFrees();

  private Faults(
      CudaDriver target,
      long callNumber,
      FaultMode mode,
      @Nullable CudaStatus status,
      Predicate<String> counted) {
    this.target = Objects.requireNonNull(target, "target");
    this.callNumber = callNumber;
    this.mode = Objects.requireNonNull(mode, "mode");
    this.status = status;
    this.counted = Objects.requireNonNull(counted, "counted");
    this.driver = DriverProxy.of(target, "faults", this::intercept);
  }

  /**
   * The first call that failed. Immutable.
   *
   * @param method the name of its method
   * @param call the call with its arguments
   * @param status the error it failed with
   * @param callers the methods on the stack as {@code Class.method}, the innermost first
   * @param place the frames of the library itself, with lines; empty if the program called
   */
  public record Fault(
      String method, String call, CudaStatus status, List<String> callers, List<String> place) {

    /** Creates a fault; the lists are copied. */
    public Fault {
      Objects.requireNonNull(method, "method");
      Objects.requireNonNull(call, "call");
      Objects.requireNonNull(status, "status");
      callers = List.copyOf(Objects.requireNonNull(callers, "callers"));
      place = List.copyOf(Objects.requireNonNull(place, "place"));
    }
  }

  /**
   * Counts calls; none fails.
   *
   * @param target the driver whose calls are counted
   * @return the counter
   */
  public static Faults none(CudaDriver target) {
    return new Faults(target, Long.MAX_VALUE, FaultMode.ONCE, null, _ -> true);
  }

  /**
   * Fails one call with the error that it most often fails with.
   *
   * @param target the driver whose calls are counted
   * @param callNumber the number of the call, from 1
   * @return the fault, not yet reached
   */
  public static Faults at(CudaDriver target, long callNumber) {
    return of(target, callNumber, FaultMode.ONCE, null);
  }

  /**
   * Fails one call with a status.
   *
   * @param target the driver whose calls are counted
   * @param callNumber the number of the call, from 1
   * @param status the error that calls fail with
   * @return the fault, not yet reached
   */
  public static Faults at(CudaDriver target, long callNumber, CudaStatus status) {
    Objects.requireNonNull(target, "target");
    return of(target, callNumber, FaultMode.ONCE, Objects.requireNonNull(status, "status"));
  }

  /**
   * Fails a call and all after it, each with the error that it most often fails with.
   *
   * @param target the driver whose calls are counted
   * @param callNumber the number of the call, from 1
   * @return the fault, not yet reached
   */
  public static Faults from(CudaDriver target, long callNumber) {
    return of(target, callNumber, FaultMode.FROM_THEN_ON, null);
  }

  /**
   * Fails a call and all after it with a status.
   *
   * @param target the driver whose calls are counted
   * @param callNumber the number of the call, from 1
   * @param status the error that calls fail with
   * @return the fault, not yet reached
   */
  public static Faults from(CudaDriver target, long callNumber, CudaStatus status) {
    Objects.requireNonNull(target, "target");
    return of(target, callNumber, FaultMode.FROM_THEN_ON, Objects.requireNonNull(status, "status"));
  }

  /**
   * Fails calls of a driver in a mode.
   *
   * @param target the driver whose calls are counted
   * @param callNumber the call that fails, from 1
   * @param mode how long the fault lasts, and whether the call does its work
   * @param status the error of calls that fail, null for what each most often fails with
   * @return the fault, not yet reached
   * @throws IllegalArgumentException if the number is not positive or the status is SUCCESS
   */
  public static Faults of(
      CudaDriver target, long callNumber, FaultMode mode, @Nullable CudaStatus status) {
    if (callNumber < 1) {
      throw new IllegalArgumentException("callNumber: " + callNumber + " (expected: >= 1)");
    }
    if (status == CudaStatus.SUCCESS) {
      throw new IllegalArgumentException("status: SUCCESS (expected: an error)");
    }
    return new Faults(target, callNumber, mode, status, _ -> true);
  }

  /**
   * Returns the same fault, counted from 0 again, over the calls whose method name is accepted.
   *
   * @param methodName accepts the names of the methods that count
   * @return the fault, not yet reached
   */
  public Faults only(Predicate<String> methodName) {
    Objects.requireNonNull(methodName, "methodName");
    return new Faults(target, callNumber, mode, status, methodName);
  }

  /**
   * Returns the same fault, counted from 0 again, over the calls of these methods alone.
   *
   * @param methodNames the names of the methods that count, such as {@code memAlloc}, at least one
   * @return the fault, not yet reached
   * @throws IllegalArgumentException if there is no name, or one is not that of a call that can
   *     fail in this mode
   */
  public Faults only(String... methodNames) {
    return only(require("methodNames", mode, methodNames)::contains);
  }

  /**
   * Checks that calls of all these names can be made to fail.
   *
   * @param argument what the exception calls the names
   * @param names the names, such as {@code memAlloc}, at least one; a name may be repeated
   * @return the names, each of them once
   * @throws IllegalArgumentException if there is no name, or one is not that of a call that can
   *     fail
   */
  public static Set<String> requireFallible(String argument, String... names) {
    return require(argument, FaultMode.ONCE, Objects.requireNonNull(names, "names"));
  }

  private static Set<String> require(String argument, FaultMode mode, String... names) {
    Objects.requireNonNull(argument, "argument");
    if (Objects.requireNonNull(names, argument).length == 0) {
      throw new IllegalArgumentException(
          argument + ": none (expected: at least one call of CudaDriver)");
    }
    for (int i = 0; i < names.length; i++) {
      String element = "%s[%d]".formatted(argument, i);
      String name = DriverProxy.requireName(element, Objects.requireNonNull(names[i], element));
      if (DriverProxy.methods().stream()
          .noneMatch(method -> method.getName().equals(name) && canFail(method, mode))) {
        throw new IllegalArgumentException(
            "%s: '%s' (expected: a call that can fail%s)"
                .formatted(
                    element, name, mode == FaultMode.AFTER_EFFECT ? " after its effect" : ""));
      }
    }
    return Set.copyOf(Arrays.asList(names));
  }

  /** {@return the driver whose calls are counted and fail; its name is {@code faults(NAME)}} */
  public CudaDriver driver() {
    return driver;
  }

  /** {@return the number of calls counted so far, failed ones included} */
  public long calls() {
    return calls.get();
  }

  /** {@return whether the fault was reached} */
  public boolean fired() {
    return fault.get() != null;
  }

  /**
   * {@return the first call that was made to fail, with its arguments, if the fault was reached}
   */
  public Optional<String> failedCall() {
    return Optional.ofNullable(fault.get()).map(Fault::call);
  }

  /**
   * Returns the first call that was made to fail.
   *
   * @return the call, empty if the fault was not reached
   */
  public Optional<Fault> fault() {
    return Optional.ofNullable(fault.get());
  }

  /**
   * Frees on the driver below what a failing call refused to free and no later call freed, so that
   * what remains was never freed by the program.
   *
   * @return the calls made
   * @throws CudaException if the driver below fails as well
   */
  public List<String> freeRefused() {
    return refusedFrees.retry(target);
  }

  /**
   * Runs a step whose calls do not fail and are not counted, nor those of other threads meanwhile.
   *
   * @param step the step, run once by this thread
   */
  public void withoutFaults(Runnable step) {
    Objects.requireNonNull(step, "step");
    paused.incrementAndGet();
    try {
      step.run();
    } finally {
      paused.decrementAndGet();
    }
  }

  private @Nullable Object intercept(Method method, Object[] arguments) throws Throwable {
    if (paused.get() > 0 || !isCounted(method)) {
      return forward(method, arguments);
    }
    long number = calls.incrementAndGet();
    if (mode == FaultMode.FROM_THEN_ON ? number < callNumber : number != callNumber) {
      return forward(method, arguments);
    }
    return fail(number, method, arguments);
  }

  private boolean isCounted(Method method) {
    return canFail(method, mode) && counted.test(method.getName());
  }

  private static boolean canFail(Method method, FaultMode mode) {
    return !NEVER_FAIL.contains(method.getName())
        && (mode != FaultMode.AFTER_EFFECT || hasEffect(method));
  }

  /** Whether a call that fails may have done something all the same. C functions do not fail. */
  private static boolean hasEffect(Method method) {
    boolean givesNothing = method.getReturnType() == void.class;
    return (givesNothing && !method.getName().equals("callFree"))
        || method.getName().equals(END_CAPTURE);
  }

  private @Nullable Object forward(Method method, Object[] arguments) throws Throwable {
    Object result = DriverProxy.forward(target, method, arguments);
    refusedFrees.worked(method, arguments);
    return result;
  }

  private Object fail(long number, Method method, Object[] arguments) throws Throwable {
    String call = CallText.of(method, arguments);
    CudaStatus result = status == null ? DefaultStatus.of(method.getName(), mode) : status;
    if (fault.get() == null) {
      fault.compareAndSet(null, new Fault(method.getName(), call, result, callers(), place()));
    }
    String injected = " [injected fault, call " + number;
    if (mode == FaultMode.AFTER_EFFECT) {
      takeEffect(method, arguments);
      throw new CudaException(result.code(), call + injected + ", after it took effect]");
    }
    refusedFrees.refused(method, arguments);
    if (status == null && method.getName().equals("callMalloc")) {
      return 0L;
    }
    throw new CudaException(result.code(), call + injected + "]");
  }

  /** A capture that ends with an error has no graph. A call that fails by itself had no effect. */
  private void takeEffect(Method method, Object[] arguments) throws Throwable {
    try {
      Object made = forward(method, arguments);
      if (made instanceof Long graph) {
        target.graphs().graphDestroy(graph);
      }
    } catch (CudaException e) {
      refusedFrees.refused(method, arguments);
    }
  }

  private static List<String> callers() {
    return StackWalker.getInstance()
        .walk(frames -> frames.filter(Faults::isCaller).map(Faults::methodOf).toList());
  }

  private static List<String> place() {
    return StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE)
        .walk(frames ->
            frames
                .dropWhile(frame -> !isOfLibrary(frame))
                .takeWhile(Faults::isOfLibrary)
                .map(StackWalker.StackFrame::toString)
                .toList());
  }

  private static boolean isOfLibrary(StackWalker.StackFrame frame) {
    String holder = frame.getDeclaringClass().getPackageName();
    return holder.equals(LIBRARY) || holder.startsWith(LIBRARY + ".internal.");
  }

  private static boolean isCaller(StackWalker.StackFrame frame) {
    String name = frame.getClassName();
    return !name.startsWith(Faults.class.getName())
        && !name.startsWith(DriverProxy.class.getName())
        && !name.contains("$Proxy")
        && !frame.getMethodName().startsWith("lambda$");
  }

  private static String methodOf(StackWalker.StackFrame frame) {
    return frame.getClassName().replaceFirst(".*[.$]", "") + "." + frame.getMethodName();
  }
}
