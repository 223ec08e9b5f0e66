package io.cuvette.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;

class GraphWorkTest {
  @Test
  void eachStepWithAGraph_isMeasured_inTimeAndHeap() {
    ByteArrayOutputStream out = new ByteArrayOutputStream();

    try (Cuda cuda = Cuda.open(CudaOptions.DEFAULTS.withDevice("sim"))) {
      new GraphWork(cuda, new Lines("test", out), 0, 2).run();
    }

    List<String> lines = out.toString(StandardCharsets.UTF_8).lines().toList();
    assertThat(lines)
        .map(line -> line.replaceFirst(".*\"work\":\"([^\"]*)\",\"(\\w+)\":.*", "$1 $2"))
        .containsExactly(
            "graph-launch+synchronize nsPerGraph",
            "graph-launch+synchronize heapBytesPerGraph",
            "graph-launch nsPerGraph",
            "graph-launch heapBytesPerGraph",
            "graph-capture+instantiate nsPerGraph",
            "graph-capture+instantiate heapBytesPerGraph",
            "graph-capture nsPerGraph",
            "graph-capture heapBytesPerGraph",
            "graph-update nsPerGraph",
            "graph-update heapBytesPerGraph",
            "launch-after-capture nsPerLaunch",
            "launch-after-capture heapBytesPerLaunch");
  }
}
