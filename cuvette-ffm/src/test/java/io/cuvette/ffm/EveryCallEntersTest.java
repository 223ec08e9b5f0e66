package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.ffm.DriverOperations.Operation;
import java.lang.reflect.Parameter;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** In which mode and in which context an operation calls the functions of the driver. */
class EveryCallEntersTest {
  /** What queues work, or is about the captures themselves, is called in the thread's own mode. */
  private static final Set<String> AS_IT_IS =
      Set.of(
          "cuCtxSetCurrent",
          "cuDriverGetVersion",
          "cuEventRecord",
          "cuGraphLaunch",
          "cuGraphUpload",
          "cuLaunchHostFunc",
          "cuLaunchKernelEx",
          "cuMemcpy3DAsync",
          "cuMemcpyAsync",
          "cuMemcpyPeerAsync",
          "cuMemsetD16Async",
          "cuMemsetD32Async",
          "cuMemsetD8Async",
          "cuStreamBeginCapture",
          "cuStreamBeginCaptureToGraph",
          "cuStreamEndCapture",
          "cuStreamGetCaptureInfo",
          "cuStreamIsCapturing",
          "cuStreamUpdateCaptureDependencies",
          "cuStreamWaitEvent");

  @TempDir private Path folder;

  @Test
  void operation_isNotForbiddenByCapturesOfOthers() throws Exception {
    StubLibrary library = StubLibrary.compile(folder);
    Set<String> strict = new TreeSet<>();
    Set<String> all = new TreeSet<>();
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(0);
      driver.devices().memGetInfo(1);
      for (long answer : new long[] {0, 2, 7}) {
        for (Operation operation : new DriverOperations().all(driver)) {
          if (!operation.method().getName().equals("graphNodeGetParams")) { // as many as are asked
            prepare(library, answer);
            Throwable _ = operation.attempt(); // not each answer makes sense to each
            library.notRelaxed().forEach(call -> strict.add(name(call)));
            library.calls().forEach(call -> all.add(name(call)));
          }
        }
      }
    }
    assertThat(strict).isEqualTo(AS_IT_IS);
    assertThat(all).hasSizeGreaterThan(160);
  }

  /** Their handles mean another stream in each context. */
  @Test
  void workOfABuiltInStream_isInTheContextOfItsDevice() throws Exception {
    StubLibrary library = StubLibrary.compile(folder);
    Set<String> functions = new TreeSet<>();
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(0);
      driver.devices().memGetInfo(1);
      for (long stream = 0; stream <= 2; stream++) {
        for (Operation operation : new DriverOperations().all(driver)) {
          if (isOfAStream(operation, stream)) {
            prepare(library, 1);
            library.makeCurrent(0);
            CudaException _ = operation.run();
            assertThat(library.calls())
                .as("%s", operation)
                .filteredOn(call -> !call.startsWith("cuCtx"))
                .allMatch(call -> call.endsWith(" in c001"));
            library.calls().forEach(call -> functions.add(name(call)));
          }
        }
      }
    }
    assertThat(functions).hasSizeGreaterThan(30);
  }

  /** Has an operation of a stream be one of that stream. */
  private static boolean isOfAStream(Operation operation, long stream) {
    Parameter[] parameters = operation.method().getParameters();
    for (int i = 0; i < parameters.length; i++) {
      if (parameters[i].getName().equals("stream")) {
        operation.arguments()[i] = stream;
        return true;
      }
    }
    return false;
  }

  /** Whatever was given to nodes before. */
  private static void prepare(StubLibrary library, long answer) {
    library.reset();
    library.memory("stub_attributes", 16 * 64).fill((byte) 0);
    library.answer(answer, 41);
  }

  private static String name(String call) {
    return call.replaceFirst("@.*", "");
  }
}
