package io.cuvette.mutations;

import java.nio.file.Path;
import java.util.Set;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.discovery.ClassNameFilter;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/**
 * Runs the tests of a folder, and ends with 1 when the first of them fails: in a JVM of {@link
 * NewJvms}.
 */
final class Main implements TestExecutionListener {
  private static final System.Logger LOGGER = System.getLogger(Main.class.getName());

  private Main() {}

  /** Takes the folder, and a regular expression of classes to leave out. */
  static void main(String[] args) {
    LauncherFactory.create()
        .execute(
            LauncherDiscoveryRequestBuilder.request()
                .selectors(DiscoverySelectors.selectClasspathRoots(Set.of(Path.of(args[0]))))
                .filters(
                    ClassNameFilter.includeClassNamePatterns(".*Test"),
                    ClassNameFilter.excludeClassNamePatterns(args[1]))
                .build(),
            new Main());
    end(0);
  }

  /** Ends the JVM, whatever threads are left. */
  static void end(int status) {
    Runtime.getRuntime().halt(status);
  }

  @Override
  public void executionFinished(TestIdentifier test, TestExecutionResult result) {
    if (result.getStatus() == TestExecutionResult.Status.FAILED) {
      LOGGER.log(System.Logger.Level.INFO, test.getUniqueId(), result.getThrowable().orElse(null));
      end(1); // not one more test
    }
  }
}
