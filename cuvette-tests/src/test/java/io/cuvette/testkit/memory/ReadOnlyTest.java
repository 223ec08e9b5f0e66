package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.GraphDefinition;
import io.cuvette.PinnedBuffer;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.support.Bytes;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.io.TempDir;

/** Memory that nobody may write: what the driver did there would be a fault of the process. */
class ReadOnlyTest {
  private static final int BYTES = 4096;

  private static MemorySegment file(Path path, byte[] content, Arena arena) throws IOException {
    Files.write(path, content);
    try (FileChannel file = FileChannel.open(path, StandardOpenOption.READ)) {
      return file.map(FileChannel.MapMode.READ_ONLY, 0, content.length, arena);
    }
  }

  private static Map<String, Runnable> writes(Buffer to, Buffer from, CudaStream stream) {
    MemorySegment host = Arena.ofAuto().allocate(BYTES);
    List<MemorySegment> rows = List.of(host.asSlice(0, 8), host.asSlice(8, 8));
    CopyBox box = CopyBox.of(16, 4);
    CopyBatch batch = CopyBatch.of(List.of(from.slice(0, 8), to), List.of(from.slice(8, 8), from));
    Map<String, Runnable> writes = new LinkedHashMap<>();
    writes.put("copyFrom", () -> to.copyFrom(from));
    writes.put("copyFrom in a stream", () -> to.copyFrom(from, stream));
    writes.put("copyFromAsync", () -> to.copyFromAsync(from, stream));
    writes.put("copyTo", () -> from.copyTo(to));
    writes.put("copyTo in a stream", () -> from.copyTo(to, stream));
    writes.put("copyFrom a segment", () -> to.copyFrom(host));
    writes.put("copyFrom a segment in a stream", () -> to.copyFrom(host, stream));
    writes.put("copyFromAsync a segment", () -> to.copyFromAsync(host, stream));
    writes.put("box", () -> to.copyFrom(from, box));
    writes.put("box in a stream", () -> to.copyFrom(from, box, stream));
    writes.put("box of a segment", () -> to.copyFrom(host, box));
    writes.put("box of a segment in a stream", () -> to.copyFrom(host, box, stream));
    writes.put("gatherFrom", () -> to.gatherFrom(rows));
    writes.put("gatherFrom in a stream", () -> to.gatherFrom(rows, stream));
    writes.put("batch", batch::copy);
    writes.put("batch in a stream", () -> batch.copy(stream));
    writes.put("fill", () -> to.fill((byte) 1));
    writes.put("fill in a stream", () -> to.fill((byte) 1, stream));
    writes.put("fillShorts", () -> to.fillShorts((short) 1));
    writes.put("fillInts in a stream", () -> to.fillInts(1, stream));
    return writes;
  }

  @CudaTest
  void everythingThatWrites_isRefused_beforeAnythingIsQueued(
      Cuda cuda, CudaStream stream, @TempDir Path folder) throws IOException {
    byte[] content = Bytes.random(8, BYTES);
    try (Arena arena = Arena.ofShared();
        Buffer from = cuda.allocate(BYTES, stream)) {
      from.fill((byte) 7);
      MemorySegment file = file(folder.resolve("content"), content, arena);
      try (PinnedBuffer memory = cuda.registerHost(file);
          GraphDefinition graph = new GraphDefinition(cuda.device(0))) {
        Map<String, Runnable> writes = writes(memory, from, stream);
        writes.put("node that copies", () -> graph.root().copy(memory, from));
        writes.put("node that fills", () -> graph.root().fillInts(memory, 1));
        writes.forEach((name, write) ->
            assertThatThrownBy(write::run)
                .as(name)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("read-only"));
        stream.synchronize();
        assertThat(Bytes.areAll(from, 7)).as("nothing of the batch is copied").isTrue();
        assertThat(graph.nodes()).isEmpty();
        assertThat(memory.segment().mismatch(MemorySegment.ofArray(content))).isEqualTo(-1);
        from.copyFrom(memory);
        assertThat(Bytes.of(from)).isEqualTo(content);
      }
    }
  }
}
