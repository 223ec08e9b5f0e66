package io.cuvette.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReplayWorkTest {

  @Test
  void ratio_isBytesHeldOverBytesLiveAtPeak(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("two.blocks.bin");
    Files.write(file, trace(700, new int[][] {{100, 0, 0}, {600, 1, 0}, {-1, 0, 0}, {-1, 1, 0}}));
    ByteArrayOutputStream out = new ByteArrayOutputStream();

    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      new ReplayWork(cuda, new Lines("test", out)).run(new BinaryTrace(file));
    }

    // 100 bytes are held as 512 and 600 as 1,024, so 1,536 / 700.
    assertThat(out.toString(StandardCharsets.UTF_8))
        .startsWith("{\"anchor\":\"test\",\"work\":\"replay-two\",\"nsPerOperation\":")
        .endsWith("\"ratio\":2.1943,\"threads\":1}\n");
  }

  @Test
  void blocksThatAreNeverFreed_areFreedAfterEachPass(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("left.bin");
    Files.write(file, trace(1024, new int[][] {{512, 0, 0}, {512, 1, 1}}));
    ByteArrayOutputStream out = new ByteArrayOutputStream();

    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      long free = cuda.device(0).memoryInfo().freeBytes();

      new ReplayWork(cuda, new Lines("test", out)).run(new BinaryTrace(file));

      assertThat(cuda.device(0).memoryInfo().freeBytes()).isEqualTo(free);
    }
    assertThat(out.toString(StandardCharsets.UTF_8)).contains("\"ratio\":1.0000");
  }

  /** As {@code anchors/python/traces.py} writes it; an operation is bytes, slot, stream. */
  private static byte[] trace(long peakLiveBytes, int[][] operations) {
    ByteBuffer bytes =
        ByteBuffer.allocate(32 + 16 * operations.length).order(ByteOrder.LITTLE_ENDIAN);
    bytes.putLong(operations.length).putLong(2).putLong(2).putLong(peakLiveBytes);
    for (int[] operation : operations) {
      bytes.putLong(operation[0]).putInt(operation[1]).putInt(operation[2]);
    }
    return bytes.array();
  }
}
