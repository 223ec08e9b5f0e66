package io.cuvette.testkit;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
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
    atLeastOne("devices", test.devices());
    atLeastOne("seeds", test.seeds());
    List<TestTemplateInvocationContext> runs = new ArrayList<>();
    for (String device : devices()) {
      if (DriverProviders.name(device).equals(SIMULATED)) {
        seeds(test, seed(device))
            .forEach(seed -> runs.add(new SubjectRun(Subject.simulated(device, test, seed))));
      } else if (!needsSimulator(test)) {
        runs.add(new SubjectRun(Subject.real(device, test)));
      }
    }
    return runs.stream();
  }

  /** Wrong ones are refused, so that no slip skips all tests. */
  private static List<String> devices() {
    String property = System.getProperty("cuvette.device");
    if (property == null || property.isBlank()) {
      return List.of(SIMULATED, GPU);
    }
    String only = property.strip();
    if (!DriverProviders.name(only).equals(GPU) && !DriverProviders.isKnown(only)) {
      throw new IllegalArgumentException(
          "-Dcuvette.device: '%s' (expected: gpu, sim, or sim:devices=2,memory=80GiB,seed=7)"
              .formatted(property));
    }
    return List.of(only);
  }

  private static OptionalLong seed(String device) {
    try {
      return SimulatedSettings.seed(device);
    } catch (IllegalArgumentException e) {
      String message = String.valueOf(e.getMessage());
      String origin = message.startsWith("-D") ? "" : "-Dcuvette.device: ";
      throw new IllegalArgumentException(origin + message, e);
    }
  }

  private static boolean needsSimulator(CudaTest test) {
    return test.simulatedOnly() || !test.memory().isEmpty() || !test.peers().isEmpty();
  }

  private static void atLeastOne(String element, int value) {
    if (value < 1) {
      throw new IllegalArgumentException("%s: %d (expected: >= 1)".formatted(element, value));
    }
  }

  /**
   * The seeds of a test.
   *
   * @param chosen what the settings of the device, or cuvette.seed, choose; empty if neither does
   */
  private static LongStream seeds(CudaTest test, OptionalLong chosen) {
    if (chosen.isPresent()) {
      return LongStream.of(chosen.getAsLong());
    }
    String wanted = System.getProperty("cuvette.seeds", "").strip();
    if (wanted.isEmpty()) {
      return LongStream.rangeClosed(1, test.seeds());
    }
    Matcher range = RANGE.matcher(wanted);
    if (!range.matches()) {
      throw notSeeds(wanted);
    }
    long number = Long.parseLong(range.group(1));
    boolean isRange = range.group(2) != null;
    long last = isRange ? Long.parseLong(range.group(2)) : number;
    if (last < number || last < 1) {
      throw notSeeds(wanted);
    }
    if (!isRange) {
      return LongStream.rangeClosed(1, Math.max(test.seeds(), number));
    }
    return LongStream.rangeClosed(number, last);
  }

  private static IllegalArgumentException notSeeds(String wanted) {
    return new IllegalArgumentException(
        ("-Dcuvette.seeds=%s (expected: a number >= 1, such as 500, or the first and the last of a"
                + " range, such as 501-1000)")
            .formatted(wanted));
  }
}
