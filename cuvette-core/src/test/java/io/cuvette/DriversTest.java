package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.internal.engine.Engine;
import java.util.List;
import org.junit.jupiter.api.Test;

class DriversTest {
  @Test
  void numberOfAGpu_isTheFirstDevice_ifItIsThere() {
    assertThat(Drivers.firstDevice("gpu", 2)).isZero();
    assertThat(Drivers.firstDevice("gpu:", 2)).isZero();
    assertThat(Drivers.firstDevice("gpu:1", 2)).isEqualTo(1);
    assertThat(Drivers.firstDevice(" gpu : 0 ", 1)).isZero();
    assertThat(Drivers.firstDevice("sim:devices=2", 2)).isZero();
    assertThatThrownBy(() -> Drivers.firstDevice("gpu:2", 2))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("device: 'gpu:2' (expected: gpu, or gpu:0 to gpu:1)");
  }

  @Test
  void whatIsNoNumber_isRefused_beforeADriverIsLookedFor() {
    for (String wrong : List.of("gpu:x", "gpu:-1", "gpu:1,2", "gpu:99999", "gpu:1.0", "tpu:1")) {
      assertThatThrownBy(() -> Drivers.open(wrong))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageStartingWith("device: '" + wrong + "' (expected: gpu, sim, or");
    }
  }

  @Test
  void firstDevice_isTheCurrentOneOfEachThread_asLongAsItWantsNoOther() {
    CudaDriver driver = Drivers.open("sim:devices=3");
    Engine engine =
        new Engine(driver, count -> count - 1, _ -> {}, MemoryLimit.none(), LeakLevel.OFF);
    assertThat(engine.session().state().device).isSameAs(engine.session().device(2));
    engine.close();
  }

  @Test
  void givenDriver_isWhatCounts() {
    try (CudaDriver driver = Drivers.open("sim:devices=2");
        Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDevice("gpu:1").withDriver(driver))) {
      assertThat(cuda.currentDevice().id()).isZero();
    }
  }
}
