package io.cuvette.internal.kernel;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.DeviceAttribute;
import io.cuvette.Dim3;
import io.cuvette.LaunchConfig;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryLimit;
import io.cuvette.driver.LaunchShape;
import io.cuvette.internal.engine.Engine;
import io.cuvette.internal.session.Device;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Each number that a device or a kernel can have as its most, also those that none has today. */
class KernelLimitsTest {
  private static final LaunchConfig ONE = LaunchConfig.of(1, 1);
  private static final byte[] CODE =
      ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }\n"
          .getBytes(StandardCharsets.US_ASCII);

  private static final KernelLimits.Required ANY = new KernelLimits.Required(0, 0, 0);

  /** Three of what each attribute counts. */
  private static final Map<DeviceAttribute, List<Object>> THREE = new LinkedHashMap<>();

  static {
    THREE.put(DeviceAttribute.MAX_GRID_DIM_X, List.of("blocks in x", ONE.withGrid(Dim3.of(3))));
    THREE.put(DeviceAttribute.MAX_GRID_DIM_Y, List.of("blocks in y", ONE.withGrid(Dim3.of(1, 3))));
    THREE.put(
        DeviceAttribute.MAX_GRID_DIM_Z, List.of("blocks in z", ONE.withGrid(Dim3.of(1, 1, 3))));
    String inBlock = "threads of a block";
    THREE.put(
        DeviceAttribute.MAX_BLOCK_DIM_X, List.of(inBlock + " in x", ONE.withBlock(Dim3.of(3))));
    THREE.put(
        DeviceAttribute.MAX_BLOCK_DIM_Y, List.of(inBlock + " in y", ONE.withBlock(Dim3.of(1, 3))));
    THREE.put(
        DeviceAttribute.MAX_BLOCK_DIM_Z,
        List.of(inBlock + " in z", ONE.withBlock(Dim3.of(1, 1, 3))));
    THREE.put(
        DeviceAttribute.MAX_THREADS_PER_BLOCK, List.of(inBlock, ONE.withBlock(Dim3.of(1, 3))));
  }

  private final Engine engine =
      new Engine(
          SimulatedDriver.open(SimulatedOptions.DEFAULTS),
          _ -> 0,
          _ -> {},
          MemoryLimit.none(),
          LeakLevel.COUNT);

  private final Device on = engine.session().devices().getFirst();
  private final OpenKernel kernel = OpenModule.load(engine.modules(), CODE).kernel("nothing");

  @AfterEach
  void close() {
    engine.close();
  }

  private static KernelLimits limits(Map<DeviceAttribute, Integer> device, int threads) {
    return new KernelLimits(device, threads, 0, 0, false, false, ANY);
  }

  @Test
  void numberThatIsTheMost_isTaken_andOneMoreIsRefused() {
    THREE.forEach((attribute, three) -> {
      LaunchConfig config = (LaunchConfig) three.get(1);
      Map<DeviceAttribute, Integer> most = new HashMap<>();
      THREE.keySet().forEach(each -> most.put(each, 100));
      most.put(attribute, 3);
      LaunchShape shape = limits(most, 3).checked(kernel, on, config);
      assertThat(shape).isEqualTo(KernelLimits.shape(config));
      most.put(attribute, 2);
      assertThatThrownBy(() -> limits(most, 3).checked(kernel, on, config))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("%s: 3 (expected: <= 2, the most of device 0)".formatted(three.getFirst()));
      most.remove(attribute);
      assertThat(limits(most, 3).checked(kernel, on, config)).as("not known").isEqualTo(shape);
    });
  }

  @Test
  void threadsOfAKernel_canBeFewerThanThoseOfTheDevice() {
    LaunchConfig six = ONE.withBlock(Dim3.of(3, 2));
    assertThat(limits(Map.of(), 6).checked(kernel, on, six)).isEqualTo(KernelLimits.shape(six));
    assertThatThrownBy(() -> limits(Map.of(), 5).checked(kernel, on, six))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "threads of a block: 6 (expected: <= 5, the most of %s on device 0)".formatted(kernel));
  }
}
