package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CaptureCalls;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.EventCalls;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.driver.OrderedCalls;
import io.cuvette.driver.StreamCalls;
import io.cuvette.driver.TransferCalls;
import io.cuvette.ffm.DriverOperations.Operation;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Whatever function of the driver an operation calls: where that one fails, the operation fails
 * with its status, and the thread has the context and the mode that it had.
 */
class EveryCallFailsTest {
  private static final CudaStatus STATUS = CudaStatus.OPERATING_SYSTEM;

  /** Calls for the thread's context and mode, which have tests of their own. */
  private static final Set<String> OTHERS =
      Set.of("cuCtxSetCurrent", "cuCtxGetCurrent", "cuThreadExchangeStreamCaptureMode");

  /** What is done in the context of a device. */
  static final Set<Class<?>> OF_CONTEXTS =
      Set.of(
          MemoryCalls.class,
          TransferCalls.class,
          OrderedCalls.class,
          StreamCalls.class,
          EventCalls.class,
          CaptureCalls.class);

  private static final List<CudaStatus> REFUSALS =
      List.of(
          CudaStatus.INVALID_CONTEXT, CudaStatus.INVALID_HANDLE, CudaStatus.CONTEXT_IS_DESTROYED);

  @TempDir private Path folder;

  @Test
  void operation_failsWithTheStatusOfEachFunctionThatItCalls() throws Exception {
    StubLibrary library = StubLibrary.compile(folder);
    Set<String> functions = new LinkedHashSet<>();
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(0);
      driver.devices().memGetInfo(1);
      for (int answer : new int[] {0, 1, 2, 7, 10}) {
        for (Operation operation : new DriverOperations().all(driver)) {
          check(library, operation, answer, functions);
        }
      }
    }
    assertThat(functions).hasSizeGreaterThan(160);
  }

  private static void check(
      StubLibrary library, Operation operation, long answer, Set<String> functions) {
    if (answer == 0 && operation.method().getName().equals("graphNodeGetParams")) {
      return; // a kernel of as many parameters as are asked for
    }
    begin(library, answer);
    CudaException failure = operation.run();
    if (failure != null) {
      return; // the answer makes no sense here
    }
    Set<String> called = called(library);
    if (operation.method().getName().equals("launchHostFunc")) {
      called.remove("cuStreamGetCaptureInfo"); // the launch is refused as well, and says why
    }
    for (String function : called) {
      begin(library, answer);
      library.makeCurrent(0xeee);
      library.setMode(1);
      library.fail(function, STATUS.code());
      CudaException thrown = operation.run();
      assertThat(thrown).as("%s where %s fails", operation, function).isNotNull();
      assertThat(thrown.status()).as("%s: %s", operation, thrown).isEqualTo(STATUS);
      assertThat(thrown).as("%s", operation).hasMessageNotContaining("null");
      assertThat(library.current()).as("%s where %s fails", operation, function).isEqualTo(0xeee);
      assertThat(library.mode()).as("%s where %s fails", operation, function).isEqualTo(1);
      functions.add(function);
    }
  }

  /** Some calls are made without a context first, for streams and events name theirs. */
  @Test
  void callThatIsRefusedForWantOfAContext_isMadeAgainWithThatOfItsDevice() throws Exception {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(1);
      for (Operation operation : new DriverOperations().all(driver)) {
        if (OF_CONTEXTS.contains(operation.method().getDeclaringClass())) {
          for (CudaStatus status : REFUSALS) {
            checkContext(library, operation, status);
          }
        }
      }
    }
  }

  /** A call before that would have been made again is over. */
  @Test
  void callThatIsRefused_isNotMadeAgain_forACallBefore() throws Exception {
    StubLibrary library = StubLibrary.compile(folder);
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(0);
      driver.devices().memGetInfo(1);
      for (Operation operation : new DriverOperations().all(driver)) {
        prepare(library, "none");
        if (OF_CONTEXTS.contains(operation.method().getDeclaringClass())
            || operation.method().getName().equals("launchKernel")
            || operation.run() != null) {
          continue;
        }
        for (String function : called(library)) {
          driver.streams().streamSynchronize(1, 0x5);
          driver.events().eventQuery(1, 0x6);
          prepare(library, "none");
          library.fail(function, CudaStatus.INVALID_HANDLE.code());
          CudaException _ = operation.run();
          assertThat(library.calls())
              .as("%s where %s fails", operation, function)
              .filteredOn(call -> call.startsWith(function + "@"))
              .hasSizeBetween(1, function.endsWith("NodeSetAttribute") ? 2 : 1); // set back
        }
      }
    }
  }

  private static void checkContext(StubLibrary library, Operation operation, CudaStatus status) {
    library.reset();
    if (operation.run() != null) {
      return; // the answer makes no sense here
    }
    for (String function : called(library)) {
      library.reset();
      library.makeCurrent(0);
      library.fail(function, status.code());
      operation.run();
      assertThat(library.calls())
          .as("%s where %s fails", operation, function)
          .filteredOn(call -> call.startsWith(function + "@"))
          .extracting(call -> call.substring(call.lastIndexOf(' ') + 1))
          .isIn(List.of("c001"), List.of("0", "c001"));
      library.reset();
      library.makeCurrent(0xeee);
      library.setMode(1);
      library.fail(function, status.code());
      library.failToo("cuCtxSetCurrent");
      CudaException thrown = operation.run();
      String what = operation + " where " + function + " fails, and the context";
      assertThat(library.current()).as(what).isEqualTo(0xeee);
      assertThat(library.mode()).as(what).isEqualTo(1);
      if (library.calls().stream().anyMatch(call -> call.startsWith("cuCtxSetCurrent"))) {
        assertThat(thrown).as(what).hasMessageStartingWith("cuCtxSetCurrent(context=0xc001)");
      }
    }
  }

  private static Set<String> called(StubLibrary library) {
    Set<String> called = new LinkedHashSet<>();
    for (String call : library.calls()) {
      called.add(call.substring(0, call.indexOf('@')));
    }
    called.removeAll(OTHERS);
    return called;
  }

  /** What is undone may fail too: the failure is the first one, which has the other with it. */
  @Test
  void operationWhoseUndoingFails_hasBothFailures() throws Exception {
    StubLibrary library = StubLibrary.compile(folder);
    Set<String> undone = new LinkedHashSet<>();
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(0);
      driver.devices().memGetInfo(1);
      for (Operation operation : new DriverOperations().all(driver)) {
        prepare(library, "none");
        if (operation.run() != null) {
          continue;
        }
        Set<String> usual = called(library);
        for (String function : usual) {
          prepare(library, function);
          CudaException _ = operation.run();
          Set<String> cleaning = called(library);
          cleaning.removeAll(usual);
          for (String other : cleaning) {
            prepare(library, function);
            library.failToo(other);
            CudaException thrown = operation.run();
            String what = operation + " where " + function + " fails, and then " + other;
            assertThat(thrown).as(what).hasMessageStartingWith(function + "(");
            assertThat(thrown.getSuppressed())
                .as(what)
                .anySatisfy(e -> assertThat(e).hasMessageStartingWith(other + "("));
            assertThat(library.current()).as(what).isEqualTo(0xeee);
            assertThat(library.mode()).as(what).isEqualTo(1);
            undone.add(other);
          }
        }
      }
    }
    assertThat(undone)
        .contains("cuUserObjectRelease", "cuGraphReleaseUserObject", "cuGraphDestroyNode");
  }

  /** What cannot have its context, or the mode in which nothing is forbidden, is not called. */
  @Test
  void operationWithoutItsContextOrItsMode_failsBeforeItIsMade() throws Exception {
    StubLibrary library = StubLibrary.compile(folder);
    int failed = 0;
    try (CudaDriver driver = library.open()) {
      driver.devices().memGetInfo(0);
      driver.devices().memGetInfo(1);
      for (Operation operation : new DriverOperations().all(driver)) {
        prepare(library, "none");
        boolean works = operation.run() == null;
        Usual usual = Usual.of(library);
        for (String function : OTHERS) {
          prepare(library, function);
          CudaException thrown = operation.run();
          String what = operation + " without " + function;
          if (thrown != null && thrown.status() == STATUS) {
            boolean context = function.startsWith("cuCtx");
            assertThat(called(library)).as(what).isSubsetOf(context ? usual.others : Set.of());
            assertThat(thrown).hasMessageContaining(function.replace("Get", "Set"));
            failed++;
          } else {
            assertThat(works && usual.needs(function)).as(what).isFalse();
            assertThat(thrown == null).as(what).isEqualTo(works);
            assertThat(called(library)).as(what).isEqualTo(usual.called);
          }
          library.fail("", 0);
          assertThat(library.current()).as(what).isEqualTo(0xeee);
          assertThat(library.mode()).as(what).isEqualTo(1);
        }
      }
    }
    assertThat(failed).isGreaterThan(250);
  }

  /**
   * What an operation usually does.
   *
   * @param called the functions that it calls
   * @param others those of them that take any context
   * @param switches whether it changes the context of the thread
   * @param relaxes whether a capture is to forbid nothing of it
   */
  private record Usual(Set<String> called, Set<String> others, boolean switches, boolean relaxes) {
    static Usual of(StubLibrary library) {
      Set<String> others = new LinkedHashSet<>(Set.of("cuGraphReleaseUserObject")); // undone
      library.calls().stream()
          .filter(call -> call.endsWith(" in eee"))
          .forEach(call -> others.add(call.substring(0, call.indexOf('@'))));
      Set<String> called = EveryCallFailsTest.called(library);
      return new Usual(
          called,
          others,
          others.contains("cuCtxSetCurrent"),
          !library.notRelaxed().stream()
              .map(call -> call.replaceFirst("@.*", ""))
              .toList()
              .containsAll(called));
    }

    boolean needs(String function) {
      return function.startsWith("cuCtx") ? switches : relaxes;
    }
  }

  /** Whatever was given to nodes before. */
  private static void begin(StubLibrary library, long answer) {
    library.reset();
    library.memory("stub_attributes", 16 * 64).fill((byte) 0);
    library.answer(answer, 0);
  }

  private static void prepare(StubLibrary library, String function) {
    begin(library, 2);
    library.makeCurrent(0xeee);
    library.setMode(1);
    library.fail(function, STATUS.code());
  }
}
