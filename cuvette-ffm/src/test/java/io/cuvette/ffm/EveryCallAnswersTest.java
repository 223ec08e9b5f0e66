package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.ffm.DriverOperations.Operation;
import java.lang.reflect.InvocationTargetException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
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

  private static final Set<String> OF_STREAMS =
      Set.of("launchKernel", "graphLaunch", "graphUpload", "graphInstantiateWithParams");

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

  /** Frames of calls are used again, and the driver may write less than there is room for. */
  @Test
  void whatCallsBeforeHaveLeft_isInNoResult() throws Exception {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      for (Operation operation : new DriverOperations().all(driver)) {
        Class<?> type = operation.method().getReturnType();
        if (type == void.class || OTHERS.contains(operation.method().getName())) {
          continue;
        }
        for (long answer : new long[] {0, 1, 7}) {
          Set<String> results = new LinkedHashSet<>();
          for (long left : new long[] {0, -1, 0x7654_3210_fedc_ba98L}) {
            library.answer(left, left);
            driver.devices().memGetInfo(1);
            library.answer(answer, 0);
            results.add(result(operation).replaceFirst("address: 0x\\w+|@\\w+", ""));
          }
          assertThat(results).as("%s: %d", operation, answer).hasSize(1);
        }
      }
      library.answer(-1, -1);
      driver.devices().memGetInfo(1);
      library.answer(0, 0);
      assertThat(driver.memory().pointerGetAttribute(1, 9, 0x10)).isZero();
      library.answer(-1, -1);
      driver.devices().memGetInfo(1);
      library.answer(0, 0);
      assertThat(driver.graphs().graphNodeGetEnabled(0x99, 0x11)).isFalse();
    }
  }

  /** The streams that exist from the start are others in each context. */
  @Test
  void streamsThatExistFromTheStart_areThoseOfTheDevice() throws Exception {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(0);
      driver.devices().memGetInfo(1);
      for (long stream : new long[] {0, 1, 2}) {
        for (Operation operation : new DriverOperations(stream, 1).all(driver)) {
          library.reset();
          library.answer(2, 0);
          library.makeCurrent(0xeee);
          if (!EveryCallFailsTest.OF_CONTEXTS.contains(operation.method().getDeclaringClass())
              && !OF_STREAMS.contains(operation.method().getName())) {
            continue;
          }
          Throwable _ = operation.attempt();
          assertThat(library.calls())
              .as("%s", operation)
              .allMatch(call -> call.startsWith("cuCtxSetCurrent") || call.endsWith(" in c001"));
        }
      }
    }
  }

  /** What takes kinds of places, which a number stands for as well here, or a count. */
  private static final Set<String> OF_PLACES =
      Set.of(
          "memGetDefaultMemPool",
          "memGetMemPool",
          "memSetMemPool",
          "memPoolGetAccess",
          "memPoolSetAccess",
          "memGetAccess",
          "memSetAccess",
          "memRangeGetAttributeList");

  /** Functions of nodes are kept by an object of the graph, and are looked for in it. */
  private static final String OF_FUNCTIONS =
      "cu(UserObject|Graph(Retain|Release)UserObject|GraphHostNodeGetParams|CtxSetCurrent).*";

  @Test
  void deviceThatIsNotThere_isRefused_beforeTheLibrary() throws Exception {
    StubLibrary library = StubLibrary.compile(folder);
    int refused = 0;
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(0);
      driver.devices().memGetInfo(1);
      for (int device : new int[] {2, -1}) {
        List<Operation> right = new DriverOperations().all(driver);
        List<Operation> wrong = new DriverOperations(8, device).all(driver);
        for (int i = 0; i < right.size(); i++) {
          if (OF_PLACES.contains(right.get(i).method().getName())
              || !isOfDevice(library, right.get(i))) {
            continue;
          }
          library.reset();
          library.answer(2, 0);
          assertThat(wrong.get(i).attempt())
              .as("%s", wrong.get(i))
              .isInstanceOfSatisfying(
                  CudaException.class,
                  e -> assertThat(e.status()).isEqualTo(CudaStatus.INVALID_DEVICE));
          assertThat(library.calls())
              .as("%s", wrong.get(i))
              .allMatch(call -> call.matches(OF_FUNCTIONS));
          refused++;
        }
      }
    }
    assertThat(refused).isGreaterThan(150);
  }

  /** Whether the second device shows, by its context or its handle. */
  private static boolean isOfDevice(StubLibrary library, Operation operation) {
    library.reset();
    library.answer(2, 0);
    library.makeCurrent(0xeee);
    Throwable _ = operation.attempt();
    return library.calls().stream().anyMatch(call -> call.matches(".*(c001|\\b41\\b).*"));
  }
}
