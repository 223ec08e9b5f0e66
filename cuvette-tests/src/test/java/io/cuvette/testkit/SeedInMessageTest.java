package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.opentest4j.AssertionFailedError;

/** A summary of many tests shows the message of a failure, and so the seed has to be in it. */
class SeedInMessageTest {
  private static boolean asked;

  static boolean asked() {
    return asked;
  }

  /** Fails in each of the usual ways. */
  @EnabledIf("io.cuvette.testkit.SeedInMessageTest#asked")
  static class Fails {
    @CudaTest(simulatedOnly = true)
    void compares() {
      assertThat(1).isEqualTo(2);
    }

    @CudaTest(simulatedOnly = true)
    void looks() {
      throw new AssertionError("not there", new IllegalStateException("why"));
    }

    @CudaTest(simulatedOnly = true)
    void throwsAnother() {
      throw new IllegalStateException("a wrong moment");
    }

    @CudaTest(simulatedOnly = true)
    void saysNothing() {
      throw new AssertionError();
    }
  }

  private static Map<String, Throwable> failures() {
    SummaryGeneratingListener listener = new SummaryGeneratingListener();
    var request =
        LauncherDiscoveryRequestBuilder.request().selectors(selectClass(Fails.class)).build();
    asked = true;
    try {
      LauncherFactory.create().execute(request, listener);
    } finally {
      asked = false;
    }
    Map<String, Throwable> failures = new TreeMap<>();
    listener
        .getSummary()
        .getFailures()
        .forEach(failure -> {
          Throwable thrown = failure.getException();
          failures.put(thrown.getStackTrace().length == 0 ? "" : method(thrown), thrown);
        });
    return failures;
  }

  private static String method(Throwable thrown) {
    return List.of(thrown.getStackTrace()).stream()
        .filter(frame -> frame.getClassName().equals(Fails.class.getName()))
        .map(StackTraceElement::getMethodName)
        .findFirst()
        .orElse("");
  }

  @Test
  void message_endsWithTheSeed_andTheFailureIsTheSame() {
    Map<String, Throwable> failures = failures();
    assertThat(failures).containsOnlyKeys("compares", "looks", "throwsAnother", "saysNothing");
    assertThat(failures.values())
        .allSatisfy(thrown ->
            assertThat(thrown)
                .isInstanceOf(AssertionError.class)
                .message()
                .containsPattern("; seed=-?[0-9]+; rerun with -Dcuvette.seed=-?[0-9]+$"));
    assertThat(failures.get("compares"))
        .isInstanceOfSatisfying(
            AssertionFailedError.class,
            thrown -> assertThat(thrown.getActual().getStringRepresentation()).isEqualTo("1"));
    assertThat(failures.get("looks"))
        .hasMessageStartingWith("not there; ")
        .hasRootCauseMessage("why");
    assertThat(failures.get("throwsAnother"))
        .hasMessageStartingWith("java.lang.IllegalStateException: a wrong moment; ")
        .hasCauseInstanceOf(IllegalStateException.class);
    assertThat(failures.get("saysNothing")).hasMessageStartingWith("failed; seed=");
  }
}
