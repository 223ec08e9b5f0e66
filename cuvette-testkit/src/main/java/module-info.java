/**
 * Contract suites, a JUnit extension and the fault sweep, for the tests of users and of Cuvette.
 */
module io.cuvette.testkit {
  requires static org.jspecify;
  requires transitive io.cuvette;
  requires transitive org.assertj.core;
  requires transitive org.junit.jupiter.api;

  exports io.cuvette.testkit;

  opens io.cuvette.testkit to
      org.junit.platform.commons;

  uses io.cuvette.driver.CudaDriverProvider;
}
