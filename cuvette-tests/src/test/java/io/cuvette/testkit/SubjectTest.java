package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.instrument.SanitizerException;
import io.cuvette.testkit.support.Forgetting;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What a run of a test opens, and what is checked when it ends. */
@Tag("simulated")
class SubjectTest {
  private static final long SEED = 5;

  /** Tests as they could be; nobody runs them. */
  interface Samples {
    @CudaTest(devices = 2)
    void usual(@OnDevice(1) CudaStream first, CudaStream second, MemoryPool pool);

    @CudaTest(sanitized = false)
    void unwatched();

    @CudaTest(tidy = false)
    void untidy();

    @CudaTest(peers = "none", memory = "8GiB", devices = 3)
    void apart();
  }

  private static Method sample(String name) {
    return Arrays.stream(Samples.class.getDeclaredMethods())
        .filter(method -> method.getName().equals(name))
        .findFirst()
        .orElseThrow();
  }

  private static Subject subject(String name) {
    return Subject.simulated("sim", sample(name).getAnnotation(CudaTest.class), SEED);
  }

  @Test
  void sanitizer_watchesUnlessTheTestSaysNo_andLeavesHandlesOfOthersAlone() {
    Subject watched = subject("usual");
    CudaDriver driver = watched.cuda().driver();
    assertThatThrownBy(() -> driver.memory().memFree(0, 0x999))
        .isInstanceOf(SanitizerException.class);
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    long address = driver.ordered().memAllocAsync(0, 64, stream);
    driver.transfers().memsetD8Async(0, address, (byte) 1, 64, stream);
    assertThatThrownBy(() -> driver.ordered().memFreeAsync(0, address, 0))
        .isInstanceOf(SanitizerException.class)
        .hasMessageContaining("FREE_WHILE_IN_USE");
    assertThatCode(() -> driver.memory().memFree(0, address)).doesNotThrowAnyException();
    driver.streams().streamDestroy(0, stream);
    watched.end(true);
    Subject unwatched = subject("unwatched");
    assertThatThrownBy(() -> unwatched.cuda().driver().memory().memFree(0, 0x999))
        .isInstanceOf(CudaException.class);
    unwatched.end(true);
  }

  @Test
  void cudaAndDriverOfARun_areOneEach_andOthersAreOpenedBesideThem() {
    Subject subject = subject("usual");
    assertThat(subject.cuda()).isSameAs(subject.cuda());
    assertThat(subject.driver()).isSameAs(subject.driver());
    Cuda other = subject.open(options -> options);
    assertThat(subject.simulator(other)).isNotSameAs(subject.simulator());
    other.allocate(64).close();
    assertThat(subject.simulator(other).liveBytes(0)).isPositive();
    assertThat(subject.simulator().liveBytes(0)).isZero();
    subject.end(true);
    assertThat(subject.random().nextLong()).isEqualTo(new SplittableRandom(SEED).nextLong());
  }

  @Test
  void runOnAGpu_hasTheSeedOfTheProperty() {
    CudaTest test = sample("usual").getAnnotation(CudaTest.class);
    Properties before = (Properties) System.getProperties().clone();
    try {
      System.setProperty("cuvette.seed", "17");
      assertThat(Subject.real("gpu", test).seed()).isEqualTo(17);
      System.clearProperty("cuvette.seed");
      assertThat(Subject.real("gpu", test).seed()).isEqualTo(1);
    } finally {
      System.setProperties(before);
    }
  }

  @Test
  void devicesThatAreTooFew_areMissing() {
    CudaTest test = sample("usual").getAnnotation(CudaTest.class);
    assertThat(Subject.real("sim:devices=1", test).missing())
        .isEqualTo("needs 2 devices, there is 1");
    assertThat(Subject.real("sim:devices=2", test).missing()).isNull();
    assertThat(Subject.real("none", test).missing()).isEqualTo("there is no device 'none' here");
  }

  @Test
  void driverOfACudaThatDoesNotOpen_isClosed() {
    assumeTrue(Files.isDirectory(Path.of("/proc/self/fd")), "the system does not say what is open");
    Subject subject = subject("usual");
    OpenFiles files = new OpenFiles();
    assertThatThrownBy(() ->
            subject.open(options ->
                options.withDecorator(driver -> {
                  long _ = driver.memory().memHostAlloc(0, 64, 0).address();
                  throw new IllegalStateException("no decorator");
                })))
        .isInstanceOf(IllegalStateException.class);
    assertThat(files.sinceLast().values()).noneMatch(file -> file.contains("cuvette-sim"));
    subject.end(true);
  }

  @Test
  void cudasAreEndedLastFirst_andParametersToo() {
    Subject subject = subject("untidy");
    Set<String> order = new LinkedHashSet<>();
    for (String name : List.of("first", "second")) {
      ScriptedDriver script =
          new ScriptedDriver()
              .answer(
                  "memFree",
                  call -> {
                    order.add(name);
                    return call.proceed();
                  });
      Cuda cuda = subject.open(options -> options.withDecorator(script::over));
      cuda.allocate(64).close();
    }
    subject.end(true);
    assertThat(order).containsExactly("second", "first");
    Subject fixed = subject("usual");
    ScriptedDriver script =
        fixed.script().note("streamDestroy", call -> "device " + call.number("device"));
    List<Object> made = new ArrayList<>();
    for (Parameter parameter : sample("usual").getParameters()) {
      made.add(fixed.fixture(parameter));
    }
    ((MemoryPool) made.getLast()).close(); // by the test itself
    assertThat(((CudaStream) made.getFirst()).device().id()).isOne();
    fixed.end(true);
    assertThat(script.notes()).containsExactly("device 0", "device 1");
    assertThat(((CudaStream) made.getFirst()).isClosed()).isTrue();
  }

  @Test
  void callThatIsHeldAtTheEnd_isReleased() throws Exception {
    Subject subject = subject("usual");
    Hold hold = subject.script().hold("ctxSynchronize");
    CudaDriver driver = subject.cuda().driver();
    Thread held = Thread.ofPlatform().start(() -> driver.devices().ctxSynchronize(0));
    hold.awaitBegun();
    subject.script().close();
    held.join();
    Subject other = subject("usual");
    Hold second = other.script().hold("memGetInfo");
    CudaDriver below = other.cuda().driver();
    Thread waiting =
        Thread.ofPlatform().start(() -> assertThat(below.devices().memGetInfo(0)).isNotNull());
    second.awaitBegun();
    other.end(true);
    waiting.join();
    subject.end(true);
  }

  @Test
  void whatIsLeft_failsATidyTestThatPassed_andNoOther() {
    for (String name : List.of("usual", "untidy")) {
      for (boolean passed : new boolean[] {true, false}) {
        Subject subject = subject(name);
        long _ = subject.cuda().allocate(64).address();
        if (passed && name.equals("usual")) {
          assertThatThrownBy(() -> subject.end(true)).isInstanceOf(AssertionError.class);
        } else {
          assertThatCode(() -> subject.end(passed)).doesNotThrowAnyException();
        }
      }
    }
  }

  @Test
  void whatWasForgotten_failsATidyTestThatPassed_andNoOther() throws Exception {
    for (String name : List.of("usual", "untidy")) {
      Subject subject = subject(name);
      Cuda cuda = subject.cuda();
      Forgetting.of(() -> cuda.device(0).createEvent());
      assertThat(Forgetting.collectUntil(() -> cuda.leaksFound() > 0)).isTrue();
      assertThat(subject.leaks()).hasSize(1);
      if (name.equals("usual")) {
        assertThatThrownBy(() -> subject.end(true))
            .isInstanceOf(AssertionError.class)
            .hasMessageContaining("forgotten, not closed: [LeakReport[");
      } else {
        assertThatCode(() -> subject.end(true)).doesNotThrowAnyException();
      }
    }
  }

  @Test
  void cudaThatTheTestClosed_isNotLookedAt() {
    Subject subject = subject("usual");
    subject.cuda().close();
    assertThatCode(() -> subject.end(true)).doesNotThrowAnyException();
  }

  /** Nothing can be freed there. */
  @Test
  void deviceThatFailed_whicheverItIs_excusesWhatIsLeft() {
    for (int device = 0; device < 2; device++) {
      Subject subject = subject("usual");
      CudaDriver driver = subject.driver();
      long _ = driver.memory().memAlloc(device, 64);
      driver
          .streams()
          .launchHostFunc(
              device,
              0,
              () -> {
                throw new IllegalStateException("fails the device");
              });
      assertThatCode(() -> subject.end(true)).doesNotThrowAnyException();
    }
    Subject working = subject("usual");
    long _ = working.driver().memory().memAlloc(1, 64);
    assertThatThrownBy(() -> working.end(true))
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("nothing live in the simulator");
  }

  @Test
  void settingsOfATest_comeBeforeThoseOfTheUser() {
    CudaTest test = sample("apart").getAnnotation(CudaTest.class);
    assertThat(Subject.simulated("sim:seed=3,devices=2,pace=lazy", test, SEED).specification())
        .isEqualTo("sim:seed=5,devices=3,pace=lazy,memory=8GiB,peers=none");
    assertThat(subject("untidy").specification()).isEqualTo("sim:seed=5");
  }
}
