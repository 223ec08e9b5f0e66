package io.cuvette.testkit.support;

import io.cuvette.CudaStream;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.instrument.DriverProxy;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Captures a stream between two calls that one thread makes to the driver, as another thread could
 * that begins and ends a capture at exactly these moments. A GPU's driver takes the handle of a
 * destroyed graph as it is, so there the graph outlives the operation. For one thread.
 *
 * <p>How often a wait asks the same again depends on how long it takes. Such a question counts
 * twice until a call of another kind is made: a capture begins or ends before it, and between two.
 */
public final class CaptureBetween {
  private static final int RELAXED = 2;
  private static final int MOST_ALIKE = 2;
  private static final Set<String> QUESTIONS =
      Set.of("streamQuery", "eventQuery", "streamIsCapturing", "streamGetCaptureInfo");

  private @Nullable CudaDriver delegate;
  private @Nullable Thread thread;
  private long stream;
  private int begin;
  private int end;
  private int calls;

  /** What was asked since the last call that is no question, and how often. */
  private final Map<List<Object>, Integer> asked = new HashMap<>();

  private boolean isOpen;
  private long ended;
  private @Nullable CudaException failure;

  /** The driver to open a Cuda with. */
  public CudaDriver over(CudaDriver driver) {
    delegate = driver;
    return DriverProxy.of(this::intercept);
  }

  /**
   * Captures a stream while this thread does something.
   *
   * @param first before which of its calls, from 0, the capture begins
   * @param last before which it ends; else when all is done
   * @return how many calls there were, without questions asked again and again
   * @throws CudaException if the capture was invalidated
   */
  public int around(CudaStream of, int first, int last, Runnable body) {
    stream = of.handle();
    begin = first;
    end = last;
    calls = 0;
    asked.clear();
    failure = null;
    thread = Thread.currentThread();
    try {
      body.run();
    } finally {
      thread = null;
      endIfOpen();
      destroyEnded();
    }
    CudaException failed = failure;
    if (failed != null) {
      throw failed;
    }
    return calls;
  }

  private @Nullable Object intercept(Method method, Object[] arguments) throws Throwable {
    if (Thread.currentThread() == thread && counts(method.getName(), arguments)) {
      between();
    }
    return DriverProxy.forward(Objects.requireNonNull(delegate), method, arguments);
  }

  private boolean counts(String call, Object[] arguments) {
    if (!QUESTIONS.contains(call)) {
      asked.clear();
      return true;
    }
    return asked.merge(List.of(call, List.of(arguments)), 1, Integer::sum) <= MOST_ALIKE;
  }

  private void between() {
    if (calls == end) {
      endIfOpen();
    }
    if (calls == begin) {
      Objects.requireNonNull(delegate).captures().streamBeginCapture(0, stream, RELAXED);
      isOpen = true;
    }
    calls++;
  }

  private void endIfOpen() {
    if (isOpen) {
      isOpen = false;
      CudaDriver driver = Objects.requireNonNull(delegate);
      try {
        ended = driver.captures().streamEndCapture(0, stream);
      } catch (CudaException e) {
        failure = e;
      }
      if (driver.isSimulated()) {
        destroyEnded();
      }
    }
  }

  private void destroyEnded() {
    long graph = ended;
    ended = 0;
    if (graph != 0) {
      Objects.requireNonNull(delegate).graphs().graphDestroy(graph);
    }
  }
}
