package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.PoolProperties;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/**
 * While the driver destroys a pool, no thread waits in it and no other makes or destroys a pool:
 * drivers lock up or crash there.
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
@Timeout(60)
class PoolsEndAloneTest {
  private record Call(String function, Consumer<CudaDriver> body) {
    @Override
    public String toString() {
      return function;
    }
  }

  @SuppressWarnings("unused") // by its name
  private static final List<Call> CALLS =
      List.of(
          new Call("cuEventSynchronize", driver -> driver.events().eventSynchronize(1, 6)),
          new Call("cuStreamSynchronize", driver -> driver.streams().streamSynchronize(1, 5)),
          new Call("cuCtxSynchronize", driver -> driver.devices().ctxSynchronize(1)),
          new Call("cuMemPoolDestroy", driver -> driver.pools().memPoolDestroy(8)),
          new Call(
              "cuMemPoolCreate",
              driver -> driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 1, 0))),
          new Call(
              "cuMemPoolImportFromShareableHandle",
              driver -> driver.sharing().memPoolImportFromShareableHandle(3)));

  private StubLibrary library;
  private CudaDriver driver;

  @BeforeAll
  void open(@TempDir Path folder) {
    library = StubLibrary.compile(folder);
    driver = library.open();
    driver.devices().memGetInfo(1);
  }

  @AfterAll
  void close() {
    driver.close();
  }

  @AfterEach
  void letGo() {
    library.hold("");
  }

  @ParameterizedTest
  @FieldSource("CALLS")
  void poolThatIsBeingDestroyed_isAloneInTheDriver(Call call) throws Exception {
    call.body.accept(driver); // what has ended keeps nobody
    library.reset();
    library.hold("cuMemPoolDestroy");
    Thread destroys = Thread.ofPlatform().daemon().start(() -> driver.pools().memPoolDestroy(9));
    while (library.calls().isEmpty()) {
      Thread.onSpinWait();
    }
    Thread other = Thread.ofPlatform().daemon().start(() -> call.body.accept(driver));
    while (library.calls().size() == 1 && isRunning(other)) {
      Thread.onSpinWait();
    }
    assertThat(library.calls()).hasSize(1);
    library.hold("");
    destroys.join();
    other.join();
    assertThat(library.calls())
        .satisfiesExactly(
            first -> assertThat(first).startsWith("cuMemPoolDestroy@11020(9)"),
            second -> assertThat(second).startsWith(call.function + "@"));
  }

  private static boolean isRunning(Thread thread) {
    return thread.getState() == Thread.State.RUNNABLE || thread.getState() == Thread.State.NEW;
  }
}
