package io.cuvette.testkit.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaProfiler;
import io.cuvette.ProfilerOutput;
import io.cuvette.Registration;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Profiling, which no tool may collect here: what the driver is asked. */
class ProfilerTest {
  private final ScriptedDriver script = new ScriptedDriver();

  private Cuda open() {
    return Cuda.open(CudaOptions.simulated().withDecorator(script::over));
  }

  private String calls() {
    return "%d %d".formatted(script.count("profilerStart"), script.count("profilerStop"));
  }

  @CudaTest
  void profiling_isStartedAndStopped(Subject subject) {
    CudaProfiler profiler = subject.cuda().device(0).profiler();
    profiler.start();
    profiler.stop();
    profiler.stop();
    try (Registration _ = profiler.profile()) {
      subject.cuda().allocate(512).close();
    }
    assertThat(subject.cuda().device(0).profiler()).isSameAs(profiler);
  }

  @Test
  void everyStartAndStop_isToldTheDriver() {
    try (Cuda cuda = open()) {
      CudaProfiler profiler = cuda.device(0).profiler();
      profiler.start();
      assertThat(calls()).isEqualTo("1 0");
      profiler.stop();
      assertThat(calls()).isEqualTo("1 1");
    }
  }

  @Test
  void scopes_nest() {
    try (Cuda cuda = open()) {
      CudaProfiler profiler = cuda.device(0).profiler();
      Registration outer = profiler.profile();
      Registration inner = profiler.profile();
      assertThat(calls()).isEqualTo("1 0");
      outer.close();
      outer.close();
      assertThat(calls()).as("one is open").isEqualTo("1 0");
      inner.close();
      assertThat(calls()).isEqualTo("1 1");
    }
    assertThat(calls()).isEqualTo("1 1");
  }

  @Test
  void scope_endsAfterAnException() {
    try (Cuda cuda = open()) {
      assertThatThrownBy(
              () -> {
                try (Registration _ = cuda.device(0).profiler().profile()) {
                  throw new UnsupportedOperationException("work");
                }
              })
          .hasMessage("work");
      assertThat(calls()).isEqualTo("1 1");
    }
  }

  @Test
  void scopeThatCouldNotBegin_isNotOpen() {
    try (Cuda cuda = open()) {
      CudaProfiler profiler = cuda.device(0).profiler();
      script.fail("profilerStart", CudaStatus.INVALID_CONTEXT);
      assertThatExceptionOfType(CudaException.class).isThrownBy(profiler::profile);
      script.unscript("profilerStart");
      profiler.profile().close();
      assertThat(calls()).isEqualTo("1 1");
    }
  }

  @Test
  void scopeThatBeganWhileTheStartOfAnotherFailed_isStartedAllTheSame() {
    try (Cuda cuda = open()) {
      CudaProfiler profiler = cuda.device(0).profiler();
      List<Registration> meanwhile = new ArrayList<>();
      script.answer(
          "profilerStart",
          call -> {
            if (meanwhile.isEmpty()) {
              meanwhile.add(profiler.profile());
              throw new CudaException(CudaStatus.INVALID_CONTEXT.code(), call.name());
            }
            return call.proceed();
          });
      assertThatExceptionOfType(CudaException.class).isThrownBy(profiler::profile);
      assertThat(calls()).isEqualTo("1 0");
      meanwhile.forEach(Registration::close);
      assertThat(calls()).isEqualTo("1 1");
    }
  }

  /** Who stops looks again. */
  @Test
  void scopeThatBeganWhileTheLastOneEnded_isStarted() {
    try (Cuda cuda = open()) {
      CudaProfiler profiler = cuda.device(0).profiler();
      List<Registration> meanwhile = new ArrayList<>();
      Registration first = profiler.profile();
      script.note("profilerStart", "profilerStop");
      script.answer(
          "profilerStop",
          call -> {
            if (meanwhile.isEmpty()) {
              meanwhile.add(profiler.profile());
            }
            return call.proceed();
          });
      first.close();
      assertThat(script.notes().getLast()).isEqualTo("profilerStart");
      meanwhile.forEach(Registration::close);
      assertThat(script.notes().getLast()).isEqualTo("profilerStop");
      assertThat(script.count("profilerStop")).isEqualTo(2);
    }
  }

  @Test
  void scopeThatIsOpenAtTheEnd_endsWithTheCuda() {
    Registration scope;
    CudaProfiler profiler;
    try (Cuda cuda = open()) {
      profiler = cuda.device(0).profiler();
      scope = profiler.profile();
    }
    assertThat(calls()).isEqualTo("1 1");
    scope.close();
    assertThat(calls()).isEqualTo("1 1");
    for (Runnable call : List.<Runnable>of(profiler::start, profiler::stop, profiler::profile)) {
      assertThatIllegalStateException().isThrownBy(call::run).withMessage("Cuda is closed");
    }
  }

  @Test
  void initialize_saysWhyItIsRefused() {
    try (Cuda cuda = open()) {
      assertThatExceptionOfType(UnsupportedOperationException.class)
          .isThrownBy(() -> cuda.device(0).profiler().initialize("in", "out", ProfilerOutput.CSV))
          .withMessageStartingWith(
              "cuProfilerInitialize(config=in, output=out, mode=CSV): CUDA refuses it since 12.0,"
                  + " with NOT_SUPPORTED");
    }
  }
}
