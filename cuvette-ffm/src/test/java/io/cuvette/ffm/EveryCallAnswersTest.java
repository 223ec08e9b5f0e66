package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.ffm.DriverOperations.Operation;
import java.lang.reflect.InvocationTargetException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whatever an operation returns is what the library answers: other answers, other results. */
class EveryCallAnswersTest {
  private static final long[][] ANSWERS = {{0, 0}, {1, 1}, {7, 2}, {13, 41}, {41, 40}, {40, 3}};

  /** The bytes of a handle that another process opens. */
  private static final String SHARED = Arrays.toString(IntStream.range(-56, 8).toArray());

  /** What the library answers each time. */
  private static final Map<String, String> SAME =
      Map.ofEntries(
          Map.entry("deviceGetCount", "2"),
          Map.entry("deviceGetName", "Stub 41"),
          Map.entry("deviceGetPciBusId", "0000:1b:00.0"),
          Map.entry("deviceGetUuid", "f0f1f2f3-f4f5-f6f7-f8f9-fafbfcfdfeff"),
          Map.entry("driverGetVersion", "13000"),
          Map.entry("eventElapsedTime", "1.5"),
          Map.entry("eventQuery", "true"),
          Map.entry("streamQuery", "true"),
          Map.entry("graphAddNode", "AddedNode[node=256, address=0, bodies=[]]"),
          Map.entry("graphDebugDotPrint", "digraph dot { 1 }"),
          Map.entry("graphKernelNodeGetPriority", "0"),
          Map.entry("ipcGetEventHandle", SHARED),
          Map.entry("ipcGetMemHandle", SHARED),
          Map.entry("memPoolExportPointer", SHARED),
          Map.entry("kernelGetName", "kernel of the stub"));

  /** What asks the runtime, or nobody, and nodes that have parameters without end here. */
  private static final Set<String> OTHERS =
      Set.of("runtimeGetVersion", "hostView", "graphNodeGetParams");

  @TempDir private Path folder;

  @Test
  void operation_returnsWhatTheLibraryAnswers() throws Exception {
    StubLibrary library = StubLibrary.compile(folder);
    Map<String, String> same = new TreeMap<>();
    int answered = 0;
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(0);
      driver.devices().memGetInfo(1);
      for (Operation operation : new DriverOperations().all(driver)) {
        String name = operation.method().getName();
        if (operation.method().getReturnType() == void.class || OTHERS.contains(name)) {
          continue;
        }
        Set<String> results = new LinkedHashSet<>();
        for (long[] answer : ANSWERS) {
          library.reset();
          library.answer(answer[0], answer[1]);
          results.add(result(operation));
        }
        results.remove("");
        if (results.size() > 1) {
          answered++;
        } else if (!results.toString().contains("bodies=[45265]")) { // a node with a body
          same.put(name, String.join("", results));
        }
      }
    }
    assertThat(same).isEqualTo(new TreeMap<>(SAME));
    assertThat(answered).isGreaterThan(70);
  }

  /** As text; empty where the answer makes no sense. */
  private static String result(Operation operation) throws IllegalAccessException {
    try {
      Object result = operation.method().invoke(operation.target(), operation.arguments());
      String text = Arrays.deepToString(new Object[] {result});
      return text.substring(1, text.length() - 1);
    } catch (InvocationTargetException e) {
      assertThat(e.getCause()).isInstanceOfAny(CudaException.class, IllegalStateException.class);
      return "";
    }
  }

  @Test
  void queries_tellWhatIsStillRunning() {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      library.fail("cuStreamQuery", 600);
      assertThat(driver.streams().streamQuery(1, 0x5)).isFalse();
      assertThat(driver.streams().streamQuery(1, 0)).isFalse();
      assertThat(driver.events().eventQuery(1, 0x6)).isTrue();
      library.fail("cuEventQuery", 600);
      assertThat(driver.events().eventQuery(1, 0x6)).isFalse();
      assertThat(driver.streams().streamQuery(1, 0x5)).isTrue();
    }
  }
}
