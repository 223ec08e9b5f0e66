package io.cuvette.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

class LaunchWorkTest {
  @Test
  void bothWaysToLaunch_areMeasured_inTimeAndHeap() {
    ByteArrayOutputStream out = new ByteArrayOutputStream();

    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDevice("sim"))) {
      new LaunchWork(cuda, new Lines("test", out), 1).run();
    }

    List<String> lines = out.toString(StandardCharsets.UTF_8).lines().toList();
    assertThat(lines).hasSize(4);
    assertThat(lines.get(0)).contains("\"work\":\"launch\",\"nsPerLaunch\":");
    assertThat(lines.get(1)).contains("\"work\":\"launch\",\"heapBytesPerLaunch\":");
    assertThat(lines.get(2)).contains("\"work\":\"launch-packed\",\"nsPerLaunch\":");
    assertThat(lines.get(3)).contains("\"work\":\"launch-packed\",\"heapBytesPerLaunch\":");
  }

  @Test
  void kernelOfTheAnchors_isTheSame() throws Exception {
    Path root = Path.of(System.getProperty("cuvette.root", ".."));

    String anchors =
        Files.readString(root.resolve("cuvette-benchmarks/anchors/nothing_of_four.ptx"));

    assertThat(anchors).endsWith(new String(NothingOfFour.ptx(), StandardCharsets.US_ASCII));
  }
}
