package io.cuvette.testkit;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;
import org.junit.jupiter.api.extension.TestTemplateInvocationContextProvider;

/** Runs each {@link CudaTest} on its subjects. Thread-safe. */
public final class CudaExtension implements TestTemplateInvocationContextProvider {
  private static final String SIMULATED = "sim";
  private static final String GPU = "gpu";
  private static final Pattern RANGE = Pattern.compile("(\\d{1,18})(?:-(\\d{1,18}))?");

  /** What JUnit calls. */
  public CudaExtension() {}

  @Override
  public boolean supportsTestTemplate(ExtensionContext context) {
    return context.getRequiredTestMethod().isAnnotationPresent(CudaTest.class);
  }

  /**
   * Returns true: a test for the simulator alone has no run where only the GPU is selected.
   *
   * @param context the context of the test
   * @return true
   */
  @Override
  public boolean mayReturnZeroTestTemplateInvocationContexts(ExtensionContext context) {
    return true;
  }

  @Override
  public Stream<TestTemplateInvocationContext> provideTestTemplateInvocationContexts(
      ExtensionContext context) {
    CudaTest test = context.getRequiredTestMethod().getAnnotation(CudaTest.class);
    List<TestTemplateInvocationContext> runs = new ArrayList<>();
    for (String device : devices()) {
      if (device.toLowerCase(Locale.ROOT).startsWith(SIMULATED)) {
        seeds(test)
            .forEach(seed -> runs.add(new SubjectRun(Subject.simulated(device, test, seed))));
      } else if (!needsSimulator(test)) {
        runs.add(new SubjectRun(Subject.real(device, test)));
      }
    }
    return runs.stream();
  }

  private static List<String> devices() {
    String only = System.getProperty("cuvette.device");
    return only == null || only.isBlank() ? List.of(SIMULATED, GPU) : List.of(only.strip());
  }

  private static boolean needsSimulator(CudaTest test) {
    return test.simulatedOnly() || !test.memory().isEmpty() || !test.peers().isEmpty();
  }

  private static LongStream seeds(CudaTest test) {
    if (test.seeds() < 1) {
      throw new IllegalArgumentException("seeds: %d (expected: >= 1)".formatted(test.seeds()));
    }
    Long only = Long.getLong("cuvette.seed");
    if (only != null) {
      return LongStream.of(only);
    }
    String wanted = System.getProperty("cuvette.seeds", "1").strip();
    Matcher range = RANGE.matcher(wanted);
    if (!range.matches()) {
      throw notSeeds(wanted);
    }
    long number = Long.parseLong(range.group(1));
    if (range.group(2) == null) {
      return LongStream.rangeClosed(1, Math.max(test.seeds(), number));
    }
    long last = Long.parseLong(range.group(2));
    if (last < number) {
      throw notSeeds(wanted);
    }
    return LongStream.rangeClosed(number, last);
  }

  private static IllegalArgumentException notSeeds(String wanted) {
    return new IllegalArgumentException(
        "-Dcuvette.seeds=%s (expected: a number, such as 500, or a range, such as 501-1000)"
            .formatted(wanted));
  }
}
