package io.cuvette.array;

import static io.cuvette.array.ElementType.FLOAT32;
import static io.cuvette.array.ElementType.FLOAT64;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.cuvette.Cuda;
import io.cuvette.testkit.CudaTest;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Memory of the host that ends below an operation: one error that names it, and nothing is left.
 */
class HostAccessTest {
  private static final int SIZE = 64;

  /** Enough for the compilers, whose code meets the error later. */
  private static final int ROUNDS = 300;

  private static List<Runnable> uses(HostArray file, NdArray here, CudaArray there) {
    return List.of(
        () -> file.fill(0),
        () -> file.transpose().fill(2.5),
        file::copy,
        () -> file.transpose().copy(),
        () -> file.asType(FLOAT64),
        file::sum,
        () -> file.sum(0),
        () -> file.map(UnaryOperation.NEGATE),
        () -> here.combine(BinaryOperation.ADD, file),
        () -> here.map(UnaryOperation.NEGATE, file),
        () -> here.matmul(file),
        () -> file.copyFrom(here),
        () -> file.copyFrom(there),
        () -> file.transpose().copyFrom(there),
        () -> there.copyFrom(file),
        () -> there.copyFrom(file.transpose()),
        () -> there.module().array(FLOAT64, file),
        () -> file.toArray(float[][].class));
  }

  @CudaTest
  void fileThatShrinks_isOneErrorOfEachOperation(Cuda cuda, @TempDir Path folder)
      throws IOException {
    HostArrays np = HostArrays.of(cuda);
    long bytes = SIZE * SIZE * 4L;
    StandardOpenOption[] options = {
      StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE
    };
    try (Arena arena = Arena.ofShared();
        FileChannel channel = FileChannel.open(folder.resolve("file"), options);
        HostArray here = np.ones(FLOAT32, SIZE, SIZE);
        CudaArray there = CudaArrays.of(cuda).ones(FLOAT32, SIZE, SIZE)) {
      MemorySegment memory = channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes, arena);
      HostArray file = np.wrap(memory, FLOAT32, Layout.of(SIZE, SIZE));
      file.copyFrom(there);
      channel.truncate(0);
      long pinned = cuda.defaultPinnedMemoryPool().stats().usedBytes();
      long used = cuda.defaultMemoryPool().stats(cuda.device(0)).usedBytes();
      for (int round = 0; round < ROUNDS; round++) {
        for (Runnable use : uses(file, here, there)) {
          assertThatIllegalStateException()
              .isThrownBy(use::run)
              .withMessageContaining("has shrunk, or cannot be read");
        }
      }
      assertThat(cuda.defaultPinnedMemoryPool().stats().usedBytes()).isEqualTo(pinned);
      assertThat(cuda.defaultMemoryPool().stats(cuda.device(0)).usedBytes()).isEqualTo(used);
    }
  }

  @Test
  void memoryThatIsClosedMeanwhile_isNamed() {
    Arena arena = Arena.ofShared();
    MemorySegment memory = arena.allocate(8);
    MemorySegment other = MemorySegment.ofArray(new byte[8]);
    Runnable loop =
        () -> {
          arena.close();
          other.copyFrom(memory);
        };
    assertThatIllegalStateException()
        .isThrownBy(() -> HostAccess.run(loop, other, memory))
        .withMessage(memory + " of an array was closed during the operation");
    IllegalStateException own = new IllegalStateException("of something else");
    assertThatIllegalStateException()
        .isThrownBy(() ->
            HostAccess.run(
                () -> {
                  throw own;
                },
                other))
        .isSameAs(own);
  }
}
