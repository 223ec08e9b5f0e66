package io.cuvette.cli.bench;

import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.HostRows;
import io.cuvette.PinnedBuffer;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import io.cuvette.driver.TransferCalls;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Copies between a device and every kind of memory of the host, both ways, beside the driver's own
 * copies of pageable memory. Sizes that would take more than a third of the Java heap, of the free
 * disk or of the device are left out. Stateless.
 */
final class TransferSuite {
  private static final long KIB = 1L << 10;
  private static final long MIB = 1L << 20;
  private static final long GIB = 1L << 30;
  private static final List<Long> SIZES =
      List.of(4 * KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB, 4 * GIB);

  /** The simulator really moves the bytes, on the heap and by one thread. */
  private static final long MOST_SIMULATED = 16 * MIB;

  private static final int ROW_FLOATS = 768;
  private static final List<Integer> ROWS = List.of(1_000, 100_000, 1_000_000);

  private static final long PITCHED_BYTES = 4 * KIB;
  private static final long PITCH = 2 * PITCHED_BYTES;
  private static final List<Integer> PITCHED = List.of(1_000, 10_000);

  private TransferSuite() {}

  static void run(Cuda cuda, Figures figures) {
    long most = most(cuda);
    try (CudaStream stream = cuda.currentDevice().createStream(StreamOptions.NON_BLOCKING);
        Scope _ = stream.use()) {
      for (long bytes : SIZES.stream().filter(size -> size <= most).toList()) {
        sizes(cuda, stream, figures, bytes);
      }
      for (int rows : ROWS.stream().filter(n -> n * 4L * ROW_FLOATS <= most).toList()) {
        rows(cuda, figures, rows);
      }
      for (int rows : PITCHED.stream().filter(n -> n * PITCH <= most).toList()) {
        pitched(cuda, stream, figures, rows);
      }
    }
  }

  private static long most(Cuda cuda) {
    long heap = Runtime.getRuntime().maxMemory() / 3;
    long device = cuda.currentDevice().memoryInfo().freeBytes() / 3;
    return Math.min(cuda.isSimulated() ? MOST_SIMULATED : Long.MAX_VALUE, Math.min(heap, device));
  }

  private static void sizes(Cuda cuda, CudaStream stream, Figures figures, long bytes) {
    String size = name(bytes);
    try (Buffer device = cuda.allocate(bytes, stream)) {
      device.fill((byte) 1);
      try (PinnedBuffer host = cuda.allocatePinned(bytes)) {
        MemorySegment segment = host.segment();
        segment.fill((byte) 1);
        copies(figures, "pinned", size, device, segment, "99 % of C");
      }
      cuda.defaultPinnedMemoryPool().freeAllBlocks();
      MemorySegment heap = MemorySegment.ofArray(new long[(int) (bytes / Long.BYTES)]);
      copies(figures, "heap", size, device, heap, target(bytes));
      try (Arena arena = Arena.ofShared()) {
        MemorySegment direct = arena.allocate(bytes);
        copies(figures, "direct", size, device, direct, target(bytes));
        driver(cuda, figures, size, device, direct);
      }
      file(figures, size, device, bytes);
    }
  }

  private static String target(long bytes) {
    return bytes >= 64 * MIB ? ">= 40 GB/s" : "";
  }

  private static void copies(
      Figures figures, String kind, String size, Buffer device, MemorySegment host, String target) {
    Best best = figures.best();
    double in = nanos(best, host, n -> in(device, host, n));
    double out = nanos(best, host, n -> out(device, host, n));
    figures.copy("transfer-%s-h2d-%s".formatted(kind, size), host.byteSize() / in, target);
    figures.copy("transfer-%s-d2h-%s".formatted(kind, size), host.byteSize() / out, target);
  }

  /** Of short copies so many are made that their code is compiled. */
  private static double nanos(Best best, MemorySegment host, Best.Loop loop) {
    return host.byteSize() < MIB ? best.nanos(loop) : best.nanos(turns(host), loop);
  }

  private static int turns(MemorySegment host) {
    return Math.clamp(4 * MIB / host.byteSize(), 1, 500);
  }

  private static void in(Buffer device, MemorySegment host, int turns) {
    for (int i = 0; i < turns; i++) {
      device.copyFrom(host);
    }
  }

  private static void out(Buffer device, MemorySegment host, int turns) {
    for (int i = 0; i < turns; i++) {
      device.copyTo(host);
    }
  }

  /**
   * As transfers were before chunks: the driver is given the memory as it is. In a stream of their
   * own, since others do not have its handle given out, which costs each copy a question.
   */
  private static void driver(
      Cuda cuda, Figures figures, String size, Buffer device, MemorySegment host) {
    TransferCalls calls = cuda.driver().transfers();
    int id = device.device().id();
    Best best = figures.best();
    try (CudaStream stream = device.device().createStream(StreamOptions.NON_BLOCKING)) {
      long handle = stream.handle();
      double in =
          nanos(
              best,
              host,
              n -> {
                for (int i = 0; i < n; i++) {
                  calls.memcpyHtoDAsync(id, device.address(), host, handle);
                  stream.synchronize();
                }
              });
      double out =
          nanos(
              best,
              host,
              n -> {
                for (int i = 0; i < n; i++) {
                  calls.memcpyDtoHAsync(id, host, device.address(), handle);
                  stream.synchronize();
                }
              });
      figures.copy("transfer-driver-h2d-" + size, host.byteSize() / in, "");
      figures.copy("transfer-driver-d2h-" + size, host.byteSize() / out, "");
    }
  }

  private static void file(Figures figures, String size, Buffer device, long bytes) {
    try {
      Path path = Files.createTempFile("transfers", ".bin");
      try (FileChannel file =
              FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE);
          Arena arena = Arena.ofShared()) {
        if (bytes <= Files.getFileStore(path).getUsableSpace() / 3) {
          MemorySegment mapped = file.map(FileChannel.MapMode.READ_WRITE, 0, bytes, arena);
          mapped.fill((byte) 1);
          copies(figures, "mapped", size, device, mapped, target(bytes));
        }
      } finally {
        Files.delete(path);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void rows(Cuda cuda, Figures figures, int count) {
    float[][] rows = new float[count][ROW_FLOATS];
    long bytes = 4L * ROW_FLOATS * count;
    int turns = Math.clamp(4 * MIB / bytes, 1, 500);
    try (Buffer device = cuda.allocate(bytes)) {
      device.fill((byte) 1);
      Best best = figures.best();
      double in = best.nanos(turns, n -> gather(device, rows, n));
      double out = best.nanos(turns, n -> scatter(device, rows, n));
      String target = count >= 1_000_000 ? ">= 25 GB/s" : "";
      String size = "%dx%d".formatted(count, ROW_FLOATS);
      figures.copy("transfer-rows-h2d-" + size, bytes / in, target);
      figures.copy("transfer-rows-d2h-" + size, bytes / out, target);
    }
  }

  private static void gather(Buffer device, float[][] rows, int turns) {
    for (int i = 0; i < turns; i++) {
      device.gatherFrom(HostRows.of(rows));
    }
  }

  private static void scatter(Buffer device, float[][] rows, int turns) {
    for (int i = 0; i < turns; i++) {
      device.scatterTo(HostRows.of(rows));
    }
  }

  /** Rows with gaps on the device, packed on the host, as one box and as a batch of copies. */
  private static void pitched(Cuda cuda, CudaStream stream, Figures figures, int count) {
    long bytes = count * PITCHED_BYTES;
    int turns = Math.clamp(4 * MIB / bytes, 1, 500);
    CopyBox in = CopyBox.of(PITCHED_BYTES, count).withTarget(0, PITCH);
    CopyBox out = CopyBox.of(PITCHED_BYTES, count).withSource(0, PITCH);
    try (Buffer device = cuda.allocate(count * PITCH, stream);
        PinnedBuffer host = cuda.allocatePinned(bytes)) {
      device.fill((byte) 1);
      host.segment().fill((byte) 1);
      List<Buffer> there = parts(device, count, PITCH);
      List<Buffer> here = parts(host, count, PITCHED_BYTES);
      String size = "%dx4KiB".formatted(count);
      waited(
          figures,
          "pitched-h2d-" + size,
          turns,
          bytes,
          stream,
          () -> device.copyFrom(host, in, stream));
      waited(
          figures,
          "pitched-d2h-" + size,
          turns,
          bytes,
          stream,
          () -> host.copyFrom(device, out, stream));
      CopyBatch toDevice = CopyBatch.of(there, here);
      CopyBatch toHost = CopyBatch.of(here, there);
      waited(figures, "batch-h2d-" + size, turns, bytes, stream, () -> toDevice.copy(stream));
      waited(figures, "batch-d2h-" + size, turns, bytes, stream, () -> toHost.copy(stream));
    }
  }

  private static List<Buffer> parts(Buffer buffer, int count, long pitch) {
    return IntStream.range(0, count).mapToObj(i -> buffer.slice(i * pitch, PITCHED_BYTES)).toList();
  }

  private static void waited(
      Figures figures, String work, int turns, long bytes, CudaStream stream, Runnable copy) {
    double nanos =
        figures
            .best()
            .nanos(
                turns,
                n -> {
                  for (int i = 0; i < n; i++) {
                    copy.run();
                    stream.synchronize();
                  }
                });
    figures.copy("transfer-" + work, bytes / nanos, "");
  }

  private static String name(long bytes) {
    if (bytes >= GIB) {
      return bytes / GIB + "GiB";
    }
    return bytes >= MIB ? bytes / MIB + "MiB" : bytes / KIB + "KiB";
  }
}
