package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaDriverProvider;
import io.cuvette.ffm.DriverOperations.Operation;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Whatever is asked of a driver that is closed, or while the JVM shuts down: nothing gets to the
 * library.
 */
class EveryCallEndsTest {
  private static final String CLOSED = "driver ffm is closed";
  private static final String SHUT_DOWN = "driver ffm: no calls while the JVM is shutting down";

  /** Drivers with different forms of some functions. */
  private static final int[] VERSIONS = {12_000, 13_000};

  /** What gives something back, which the end of the process does as well. */
  private static final Set<String> GIVES_BACK =
      Set.of(
          "memFree",
          "memFreeHost",
          "memHostUnregister",
          "memFreeAsync",
          "memPoolDestroy",
          "memUnmap",
          "memRelease",
          "memAddressFree",
          "streamDestroy",
          "eventDestroy",
          "graphDestroy",
          "graphExecDestroy",
          "userObjectRelease",
          "libraryUnload",
          "ipcCloseMemHandle");

  @TempDir private Path folder;

  private StubLibrary library(int version) {
    StubLibrary library = StubLibrary.compile(folder.resolve("of-" + version));
    library.version(version);
    return library;
  }

  /** Operations that ask something of the library while the driver is open. */
  private static List<Operation> operations(StubLibrary library, CudaDriver driver)
      throws ReflectiveOperationException {
    List<Operation> operations = new ArrayList<>();
    for (Operation operation : new DriverOperations().all(driver)) {
      library.reset();
      library.answer(2, 0);
      Throwable _ = operation.attempt();
      if (!library.calls().isEmpty()) {
        operations.add(operation);
      }
    }
    assertThat(operations).hasSizeGreaterThan(150);
    return operations;
  }

  @Test
  void afterClose_everyOperationIsRefused_andNoneGetsToTheLibrary() throws Exception {
    for (int version : VERSIONS) {
      StubLibrary library = library(version);
      CudaDriver driver = library.open();
      List<Operation> operations = operations(library, driver);
      driver.close();
      library.reset();
      for (Operation operation : operations) {
        refused(operation, CLOSED);
      }
      assertThat(library.calls()).isEmpty();
    }
  }

  @Test
  void whileTheJvmShutsDown_nothingIsGivenBack_andTheRestIsRefused() throws Exception {
    for (int version : VERSIONS) {
      StubLibrary library = library(version);
      CudaDriverProvider provider = library.provider();
      CudaDriver driver = provider.open("");
      List<Operation> operations = operations(library, driver);
      beginShutdown(driver);
      library.reset();
      for (Operation operation : operations) {
        if (GIVES_BACK.contains(operation.method().getName())) {
          assertThat(operation.attempt()).as("%s", operation).isNull();
        } else {
          refused(operation, SHUT_DOWN);
        }
      }
      driver.close();
      assertThat(library.calls()).isEmpty();
      library.reset();
      CudaDriver late = provider.open("");
      List<String> opening = library.calls();
      for (Operation operation : new DriverOperations().all(late)) {
        Throwable _ = operation.attempt();
      }
      assertThat(library.calls()).as("of one that was opened too late").isEqualTo(opening);
    }
  }

  private static void refused(Operation operation, String message) {
    assertThat(operation.attempt())
        .as("%s", operation)
        .isInstanceOf(IllegalStateException.class)
        .hasMessage(message);
  }

  /** What the hook does that runs when the JVM begins to shut down. */
  private static void beginShutdown(CudaDriver driver) throws ReflectiveOperationException {
    Method begin =
        driver
            .getClass()
            .getClassLoader()
            .loadClass("io.cuvette.ffm.Shutdown")
            .getDeclaredMethod("begin");
    begin.setAccessible(true);
    begin.invoke(null);
  }
}
