package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;

/**
 * A driver on a library that notes its calls. Both devices have contexts, 0xc000 and 0xc001, of
 * which the second is current. Confined to a test.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class StubDriverTest {
  StubLibrary library;
  CudaDriver driver;

  @BeforeAll
  void open(@TempDir Path folder) {
    library = StubLibrary.compile(folder);
    driver = library.open();
    driver.devices().memGetInfo(0);
    driver.devices().memGetInfo(1);
  }

  @AfterAll
  void close() {
    if (driver != null) {
      driver.close();
    }
  }

  @BeforeEach
  void reset() {
    library.makeCurrent(0xc001);
    library.setMode(0);
    library.reset();
  }

  /** Checks the calls since the last reset, with the context that was current. */
  final void noted(String... calls) {
    assertThat(library.calls()).containsExactly(calls);
  }

  /** The same in whichever context, and without what makes one current. */
  final void notedInAnyContext(String... calls) {
    assertThat(callsInAnyContext()).containsExactly(calls);
  }

  /** The calls since the last reset, without the contexts. */
  final List<String> callsInAnyContext() {
    return library.calls().stream()
        .filter(call -> !call.startsWith("cuCtxSetCurrent"))
        .map(call -> call.replaceFirst(" in [0-9a-f]+$", ""))
        .toList();
  }
}
