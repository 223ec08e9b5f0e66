package io.cuvette.testkit.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.KernelArguments;
import io.cuvette.LaunchConfig;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.AtOnce;
import io.cuvette.testkit.support.Forgetting;
import io.cuvette.testkit.support.Latches;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** A module ends once, behind the launches of its kernels. */
class ModuleEndTest {
  private static final LaunchConfig SMALL = LaunchConfig.of(1, 32);
  private static final int COUNT = 16;

  @CudaTest
  void closedWhileALaunchIsInFlight_itIsUnloadedBehindIt(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    CountDownLatch go = new CountDownLatch(1);
    try (Buffer data = cuda.allocate(COUNT * 4L, stream)) {
      data.copyFrom(MemorySegment.ofArray(ones()));
      CudaModule module = TestKernels.launches(cuda);
      CudaKernel scale = module.kernel("scale"); // loaded now: that would wait for held streams
      stream.launch(scale, SMALL, data, 1f, COUNT);
      stream.synchronize();
      CompletableFuture<Void> held = stream.addCallback(() -> Latches.await(go));
      stream.launch(scale, SMALL, data, 2f, COUNT);
      module.close();
      assertThat(module.isClosed()).isTrue();
      assertThat(script.count("libraryUnload")).isZero();
      go.countDown();
      held.join();
      stream.synchronize();
      cuda.device(0).synchronize();
      assertThat(script.count("libraryUnload")).isEqualTo(1);
      float[] content = new float[COUNT];
      data.copyTo(MemorySegment.ofArray(content));
      assertThat(content).containsOnly(2f);
    } finally {
      go.countDown();
    }
  }

  /** Whatever else is wrong: what is closed is named first, and the stream before the module. */
  @CudaTest
  @SuppressWarnings("try")
  void launchInAStreamThatIsClosed_saysSo(Cuda cuda) {
    CudaStream stream = cuda.device(0).createStream();
    LaunchConfig large = LaunchConfig.of(1, 1 << 20);
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      KernelArguments packed = kernel.pack();
      packed.launch(stream, SMALL);
      stream.close();
      for (boolean isClosed : new boolean[] {false, true}) {
        assertThatThrownBy(() -> stream.launch(kernel, large))
            .as("module closed: %s", isClosed)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageStartingWith("stream ");
        assertThatThrownBy(() -> packed.launch(stream, large))
            .as("module closed: %s", isClosed)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageStartingWith("stream ");
        module.close();
      }
      for (ThrowingCallable wrong :
          List.<ThrowingCallable>of(
              () -> cuda.currentStream().launch(kernel, large),
              () -> packed.launch(cuda.currentStream(), large))) {
        assertThatThrownBy(wrong)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageStartingWith("module ");
      }
    }
  }

  /** As driver 580: code is loaded when it is first asked about; not so under half of the seeds. */
  @CudaTest
  void kernelThatIsNew_waitsForHeldStreams(
      Subject subject, Cuda cuda, @NonBlocking CudaStream stream) throws Exception {
    assumeFalse(cuda.driver().isSimulated() && Math.floorMod(subject.seed(), 24) >= 12);
    CountDownLatch go = new CountDownLatch(1);
    AtomicBoolean released = new AtomicBoolean();
    try (CudaModule module = TestKernels.launches(cuda)) {
      CompletableFuture<Void> held = stream.addCallback(() -> Latches.await(go));
      CompletableFuture<Boolean> late =
          CompletableFuture.supplyAsync(
              () -> {
                CudaKernel _ = module.kernel("scale");
                return released.get();
              },
              Thread.ofPlatform()::start);
      assertThatThrownBy(() -> late.get(100, TimeUnit.MILLISECONDS))
          .isInstanceOf(TimeoutException.class);
      released.set(true);
      go.countDown();
      assertThat(late.get()).isTrue();
      held.join();
    } finally {
      go.countDown();
    }
  }

  @CudaTest
  void kernelThatIsNew_isRefusedInsideACallback(Cuda cuda, @NonBlocking CudaStream stream) {
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel known = module.kernel("scale");
      CompletableFuture<Void> inside =
          stream.addCallback(() -> {
            assertThat(module.kernel("scale").name()).isEqualTo(known.name());
            CudaKernel _ = module.kernel("add");
          });
      assertThatThrownBy(inside::join)
          .hasRootCauseInstanceOf(IllegalStateException.class)
          .rootCause()
          .hasMessageContaining("add is not loaded yet")
          .hasMessageContaining("expected: a kernel that was got before");
    }
  }

  private static float[] ones() {
    float[] ones = new float[COUNT];
    Arrays.fill(ones, 1f);
    return ones;
  }

  @CudaTest
  void closedWithoutLaunches_itIsUnloadedAtOnce(Cuda cuda, ScriptedDriver script) {
    CudaModule module = TestKernels.launches(cuda);
    CudaKernel _ = module.kernel("scale");
    module.close();
    assertThat(script.count("libraryUnload")).isEqualTo(1);
    module.close();
    assertThat(script.count("libraryUnload")).isEqualTo(1);
  }

  @CudaTest(tidy = false)
  void leftOpen_itEndsWithTheCuda(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    CudaModule module = TestKernels.launches(cuda);
    stream.launch(module.kernel("doNothing"), SMALL);
    stream.close();
    cuda.close();
    assertThat(script.count("libraryUnload")).isEqualTo(1);
    module.close();
    assertThat(script.count("libraryUnload")).isEqualTo(1);
  }

  @CudaTest(tidy = false)
  void forgotten_itIsUnloaded_butNotWhileAKernelIsReachable(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) throws Exception {
    KernelArguments kept = TestKernels.launches(cuda).kernel("doNothing").pack();
    Forgetting.of(() -> {
      CudaModule module = TestKernels.launches(cuda);
      stream.launch(module.kernel("doNothing"), SMALL);
      return module;
    });
    stream.synchronize();
    assertThat(
            Forgetting.collectUntil(() -> {
              cuda.device(0).createStream().close();
              return script.count("libraryUnload") > 0;
            }))
        .isTrue();
    assertThat(script.count("libraryUnload")).isEqualTo(1);
    kept.launch(stream, SMALL);
    stream.synchronize();
    kept.kernel().module().close();
  }

  @CudaTest
  void unloadingThatFails_isTriedAgain(Cuda cuda, ScriptedDriver script) {
    CudaModule module = TestKernels.launches(cuda);
    script.fail("libraryUnload", CudaStatus.INVALID_VALUE, 1);
    assertThatThrownBy(module::close).hasMessageContaining("libraryUnload");
    cuda.device(0).createStream().close();
    assertThat(script.count("libraryUnload")).isEqualTo(1);
  }

  @CudaTest
  void threadsWithShortModules_andOneThatIsClosedUnderThem(Cuda cuda) throws Exception {
    CudaModule shared = TestKernels.launches(cuda);
    CudaKernel common = shared.kernel("scale");
    AtomicInteger launched = new AtomicInteger();
    AtomicInteger refused = new AtomicInteger();
    new AtOnce()
        .run(
            8,
            thread -> {
              try (CudaStream stream = cuda.device(0).createStream();
                  Buffer data = cuda.allocate(COUNT * 4L, stream)) {
                data.fill(0, stream);
                for (int i = 0; i < 40; i++) {
                  try (CudaModule own = TestKernels.launches(cuda)) {
                    KernelArguments arguments = own.kernel("scale").pack(data, 1f, COUNT);
                    arguments.launch(stream, SMALL);
                  }
                  try {
                    stream.launch(common, SMALL, data, 1f, COUNT);
                    launched.incrementAndGet();
                  } catch (IllegalStateException e) {
                    refused.incrementAndGet();
                  }
                  if (thread == 0 && i == 20) {
                    shared.close();
                  }
                  if (i % 16 == thread) {
                    System.gc();
                  }
                }
                stream.synchronize();
              }
            });
    shared.close();
    cuda.device(0).synchronize();
    assertThat(launched.get()).isPositive();
    assertThat(refused.get()).isPositive();
  }

  /** A library asks for its kernels wherever it needs them, and closes nothing. */
  @CudaTest(tidy = false)
  void sharedModule_isOneForAllWhoAskForItsName_andEndsWithTheCuda(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    AtomicInteger asked = new AtomicInteger();
    Supplier<byte[]> code =
        () -> {
          asked.incrementAndGet();
          return TestKernels.code("launches.ptx");
        };
    long open = cuda.openObjects().size();
    CudaModule first = CudaModule.shared(cuda, "of the test", code);
    first.close();
    CudaModule second = CudaModule.shared(cuda, "of the test", code);
    stream.launch(second.kernel("doNothing"), SMALL);
    stream.synchronize();
    assertThat(asked).hasValue(1);
    assertThat(script.count("libraryLoadData")).isEqualTo(1);
    CudaKernel _ = CudaModule.shared(cuda, "another", code).kernel("scale");
    assertThat(script.count("libraryLoadData")).isEqualTo(2);
    assertThat(cuda.openObjects()).as("nobody is to close them").hasSize((int) open);
    try (CudaModule own = TestKernels.launches(cuda)) {
      assertThat(own.isClosed()).isFalse();
      assertThat(cuda.openObjects()).hasSize((int) open + 1);
    }
    assertThat(script.count("libraryUnload")).as("of the own one").isEqualTo(1);
    stream.close();
    cuda.close();
    assertThat(script.count("libraryUnload")).isEqualTo(3);
    assertThatThrownBy(() -> CudaModule.shared(cuda, "of the test", code))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed");
  }

  /** Another thread, or the one itself that is asked for the code: the first one is for all. */
  @CudaTest(tidy = false)
  void sharedModuleThatSomebodyElseLoadedMeanwhile_isTaken_andTheOwnOneUnloaded(
      Cuda cuda, ScriptedDriver script) {
    byte[] code = TestKernels.code("launches.ptx");
    List<CudaModule> first = new ArrayList<>();
    CudaModule second =
        CudaModule.shared(
            cuda,
            "of both",
            () -> {
              first.add(CudaModule.shared(cuda, "of both", () -> code));
              return code;
            });
    assertThat(second).hasToString(first.getFirst().toString());
    assertThat(script.count("libraryLoadData")).isEqualTo(2);
    assertThat(script.count("libraryUnload")).isEqualTo(1);
    assertThat(second.kernel("scale").name()).isEqualTo("scale");
    assertThat(CudaModule.shared(cuda, "of both", () -> code)).hasToString(second.toString());
    cuda.close();
    assertThat(script.count("libraryUnload")).isEqualTo(2);
  }

  /** Whoever closed it has long gone on. */
  @CudaTest(simulatedOnly = true)
  void unloadingBehindALaunchThatFails_isTriedAgain(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    CountDownLatch go = new CountDownLatch(1);
    try {
      CudaModule module = TestKernels.launches(cuda);
      CudaKernel nothing = module.kernel("doNothing");
      CompletableFuture<Void> held = stream.addCallback(() -> Latches.await(go));
      stream.launch(nothing, SMALL);
      AtomicInteger failures = new AtomicInteger();
      script.answer(
          "libraryUnload",
          call -> {
            if (failures.getAndIncrement() < 3) {
              throw new CudaException(CudaStatus.INVALID_VALUE, call.name(), "on purpose");
            }
            return call.proceed();
          });
      module.close();
      go.countDown();
      held.join();
      stream.synchronize();
      for (int i = 0; i < 1000 && script.count("libraryUnload") == 0; i++) {
        cuda.leaksFound();
      }
      assertThat(failures).hasValue(4);
      assertThat(script.count("libraryUnload")).isEqualTo(1);
    } finally {
      go.countDown();
    }
  }

  /** Nobody waits for the stream here, nor closes another module. */
  @CudaTest(simulatedOnly = true)
  void closedBehindALaunch_itIsUnloadedByWhoLooksForWhatIsOver(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    CudaModule module = TestKernels.launches(cuda);
    CudaKernel nothing = module.kernel("doNothing");
    long handle = stream.handle();
    try (Gate _ = Gate.on(stream)) {
      stream.launch(nothing, SMALL);
      module.close();
      assertThat(cuda.leaksFound()).isZero();
      assertThat(script.count("libraryUnload")).isZero();
    }
    cuda.driver().streams().streamSynchronize(0, handle);
    for (int i = 0; i < 1000 && script.count("libraryUnload") == 0; i++) {
      assertThat(cuda.leaksFound()).isZero();
    }
    assertThat(script.count("libraryUnload")).isEqualTo(1);
  }
}
