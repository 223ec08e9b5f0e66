package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CudaDriverProvider;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.ServiceLoader;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What programs are told that lack the module which talks to GPUs and to the system. */
class WithoutFfmTest {
  private static final String NAMED = "the module io.cuvette.ffm (artifact cuvette-ffm)";

  @BeforeEach
  void isNotThere() {
    boolean isThere =
        ServiceLoader.load(CudaDriverProvider.class).stream()
            .anyMatch(each -> each.get().name().equals("gpu"));
    assumeTrue(!isThere, "the module is on the path");
  }

  @Test
  void gpu_isNotFound_andTheModuleIsNamed() {
    for (String device : new String[] {"gpu", "gpu:1"}) {
      assertThatThrownBy(() -> Cuda.open(CudaOptions.DEFAULTS.withDevice(device)))
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.NOT_FOUND))
          .hasMessageContaining(NAMED)
          .hasMessageContaining("CUVETTE_DEVICE=sim");
    }
  }

  @Test
  void compiler_isNotFound_andTheArtifactIsNamed() {
    CudaProgram program = CudaProgram.of("__global__ void k() {}");
    assertThatThrownBy(() -> program.compile(KernelCode.Kind.PTX))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessage("no compiler; add io.cuvette.ffm (artifact cuvette-ffm)");
  }

  /** At the first step that could share anything. */
  @Test
  void whatSharesMemory_isRefused_andTheModuleIsNamed(@TempDir Path folder) {
    Path socket = folder.resolve("s");
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      Map<String, ThrowingCallable> all = new LinkedHashMap<>();
      ElasticPoolOptions exportable = ElasticPoolOptions.DEFAULTS.withExportable(true);
      all.put("exportable", () -> new ElasticMemoryPool(cuda, exportable));
      var shared = DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true);
      var pinned = PinnedMemoryResourceOptions.DEFAULTS.withIpcEnabled(true);
      all.put("device", () -> new DeviceMemoryResource(cuda.device(0), shared));
      all.put("pinned", () -> new PinnedMemoryResource(cuda, pinned));
      all.put("of a node", () -> new PinnedMemoryResource(cuda, pinned.withNumaId(0)));
      all.put("handle", () -> AllocationHandle.of(0));
      all.put("import", () -> DeviceMemoryResource.fromAllocationHandle(cuda.device(0), 0));
      all.put("pinned import", () -> PinnedMemoryResource.fromAllocationHandle(cuda, 0));
      all.put("listener", () -> IpcListener.open(socket));
      all.put("channel", () -> IpcChannel.connect(socket, Duration.ofSeconds(1)));
      all.forEach((name, call) ->
          assertThatThrownBy(call)
              .as(name)
              .isInstanceOf(UnsupportedOperationException.class)
              .hasMessageContaining("needs " + NAMED + " on the path"));
    }
  }
}
