package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;
import io.cuvette.Scope;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Kind;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Which way bytes take between each kind of buffer and each kind of memory of the host. */
@Timeout(60)
class HostRoutesTest {
  private static final int MIB = 1 << 20;
  private static final int PAGE = 4096;
  private static final int DRIVER_STAGES = 64 << 10;
  private static final int[] SIZES = {1, PAGE, DRIVER_STAGES, DRIVER_STAGES + 1, MIB};
  private static final String[] CALLS = {"memcpyAsync", "memcpyHtoDAsync", "memcpyDtoHAsync"};

  /** What memory of the host is. */
  private enum Place {
    HEAP,
    PAGEABLE,
    MAPPED,
    OURS,
    IN_PART,
    OF_ANOTHER,
    LOCKED_BY_OTHERS
  }

  /** Memory of every kind. */
  private static final class Hosts implements AutoCloseable {
    private final Arena arena = Arena.ofShared();
    private final List<Runnable> ends = new ArrayList<>();
    private final Cuda cuda;
    private final Path folder;

    Hosts(Cuda cuda, Path folder) {
      this.cuda = cuda;
      this.folder = folder;
    }

    MemorySegment of(Place place, int bytes) throws IOException {
      return switch (place) {
        case HEAP -> MemorySegment.ofArray(new byte[bytes]);
        case PAGEABLE -> arena.allocate(bytes, PAGE);
        case MAPPED -> mapped(bytes);
        case OURS -> ended(cuda.directPinned().allocate(bytes)).segment();
        case IN_PART -> {
          MemorySegment all = arena.allocate(bytes + 2L * PAGE, PAGE);
          PinnedBuffer _ = ended(cuda.registerHost(all.asSlice(0, PAGE)));
          yield all.asSlice(PAGE - 1, bytes + 1L);
        }
        case OF_ANOTHER -> {
          Cuda another = Cuda.open(CudaOptions.simulated());
          ends.add(another::close);
          yield another.registerHost(arena.allocate(bytes, PAGE)).segment();
        }
        case LOCKED_BY_OTHERS -> {
          MemorySegment locked = arena.allocate(bytes, PAGE);
          cuda.driver().memory().memHostRegister(0, locked, 0);
          ends.add(() -> cuda.driver().memory().memHostUnregister(0, locked.address()));
          yield locked;
        }
      };
    }

    private PinnedBuffer ended(PinnedBuffer buffer) {
      ends.add(buffer::close);
      return buffer;
    }

    private MemorySegment mapped(int bytes) throws IOException {
      try (FileChannel file =
          FileChannel.open(
              folder.resolve("file" + ends.size()),
              Set.of(
                  StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE))) {
        return file.map(FileChannel.MapMode.READ_WRITE, 0, bytes, arena);
      }
    }

    @Override
    public void close() {
      ends.forEach(Runnable::run);
      arena.close();
    }
  }

  private static String directCall(boolean in) {
    return in ? "memcpyHtoDAsync" : "memcpyDtoHAsync";
  }

  private static boolean isOfHost(Kind kind) {
    return kind == Kind.PINNED; // the device may be at managed memory
  }

  /**
   * The driver is given what does not move, nor shrink, nor is locked in part, if that is worth it.
   */
  private static String expectedOfWaiting(
      Kind kind, Place place, long bytes, boolean in, boolean inCallback) {
    if (isOfHost(kind)) {
      return "none";
    }
    boolean little = bytes <= DRIVER_STAGES;
    boolean direct =
        switch (place) {
          case HEAP, MAPPED, IN_PART, OF_ANOTHER -> false;
          case OURS -> true;
          case PAGEABLE -> little && in;
          case LOCKED_BY_OTHERS -> !little || in;
        };
    return direct && !inCallback ? directCall(in) : "memcpyAsync";
  }

  private static String expectedInStream(
      Kind kind, Place place, long bytes, boolean in, boolean inCallback) {
    boolean staged =
        switch (place) {
          case HEAP -> throw new AssertionError(place);
          case MAPPED, IN_PART, OF_ANOTHER -> true;
          case OURS, LOCKED_BY_OTHERS -> false;
          case PAGEABLE -> bytes > DRIVER_STAGES && !inCallback;
        };
    return !staged ? directCall(in) : isOfHost(kind) ? "none" : "memcpyAsync";
  }

  private static void copy(
      Buffer buffer, MemorySegment host, boolean in, Consumer<MemorySegment> call) {
    byte[] pattern = Bytes.random(host.byteSize(), (int) host.byteSize());
    if (in) {
      host.copyFrom(MemorySegment.ofArray(pattern));
    } else {
      Bytes.put(buffer, pattern);
      host.fill((byte) 0);
    }
    call.accept(host);
    byte[] got = in ? Bytes.of(buffer) : host.toArray(ValueLayout.JAVA_BYTE);
    assertThat(Arrays.equals(got, pattern)).as("the bytes").isTrue();
  }

  /** The kinds of calls that were noted; in chunks there may be several. */
  private static void checkRoute(ScriptedDriver driver, String expected, String what) {
    List<String> notes = driver.takeNotes();
    if (expected.equals("none")) {
      assertThat(notes).as(what).isEmpty();
    } else {
      assertThat(notes).as(what).isNotEmpty().containsOnly(expected);
    }
  }

  @CudaTest(simulatedOnly = true)
  void copy_goesToTheDriverOrThroughChunks_asItsMemoryDemands(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream, @TempDir Path folder)
      throws IOException {
    for (Kind kind : Kind.values()) {
      for (Place place : Place.values()) {
        for (int size : SIZES) {
          try (Hosts hosts = new Hosts(cuda, folder)) {
            MemorySegment host = hosts.of(place, size);
            try (Buffer buffer = kind.allocate(cuda, host.byteSize())) {
              cuda.device(0).synchronize();
              checkRoutes(driver, stream, kind, buffer, place, host);
            }
          }
        }
      }
    }
  }

  private static void checkRoutes(
      ScriptedDriver driver,
      CudaStream stream,
      Kind kind,
      Buffer buffer,
      Place place,
      MemorySegment host) {
    long bytes = host.byteSize();
    for (boolean in : new boolean[] {true, false}) {
      String what = "%s, %s, %d bytes, in: %s".formatted(kind, place, bytes, in);
      copy(
          buffer,
          host,
          in,
          segment -> {
            driver.note(CALLS).takeNotes();
            try (Scope _ = stream.use()) {
              copyAndWait(buffer, segment, in);
            }
            checkRoute(driver, expectedOfWaiting(kind, place, bytes, in, false), what);
          });
      copy(
          buffer,
          host,
          in,
          segment -> {
            driver.takeNotes();
            if (place == Place.HEAP) {
              assertThatThrownBy(() -> copyIn(stream, buffer, segment, in))
                  .as(what)
                  .isInstanceOf(IllegalArgumentException.class)
                  .hasMessageContaining("heap segment of %d bytes".formatted(bytes));
              checkRoute(driver, "none", what);
              copyAndWait(buffer, segment, in);
            } else {
              copyIn(stream, buffer, segment, in);
              checkRoute(driver, expectedInStream(kind, place, bytes, in, false), what);
            }
            stream.synchronize();
          });
    }
  }

  private static void copyAndWait(Buffer buffer, MemorySegment host, boolean in) {
    if (in) {
      buffer.copyFrom(host);
    } else {
      buffer.copyTo(host);
    }
  }

  private static void copyIn(CudaStream stream, Buffer buffer, MemorySegment host, boolean in) {
    if (in) {
      buffer.copyFrom(host, stream);
    } else {
      buffer.copyTo(host, stream);
    }
  }

  /** A wait may end there before the work, and nobody waits for the callback itself. */
  @CudaTest(simulatedOnly = true)
  void copyInACallback_leavesTheDriverNoMemoryThatItWaitsFor(
      Cuda cuda,
      ScriptedDriver driver,
      @NonBlocking CudaStream stream,
      @NonBlocking CudaStream other,
      @TempDir Path folder)
      throws IOException {
    for (Place place : Place.values()) {
      for (int size : new int[] {PAGE, DRIVER_STAGES + 1}) {
        try (Hosts hosts = new Hosts(cuda, folder)) {
          MemorySegment host = hosts.of(place, size);
          long bytes = host.byteSize();
          try (Buffer buffer = cuda.allocate(bytes, other)) {
            for (boolean in : new boolean[] {true, false}) {
              String what = "%s, %d bytes, in: %s".formatted(place, bytes, in);
              cuda.device(0).synchronize();
              driver.note(CALLS).takeNotes();
              Kind kind = Kind.POOLED;
              String waiting = expectedOfWaiting(kind, place, bytes, in, true);
              stream
                  .addCallback(() -> {
                    try (Scope _ = other.use()) {
                      copyAndWait(buffer, host, in);
                    }
                    checkRoute(driver, waiting, what);
                    if (place != Place.HEAP) {
                      copyIn(other, buffer, host, in);
                      checkRoute(driver, expectedInStream(kind, place, bytes, in, true), what);
                    }
                    refuseOwn(driver, stream, buffer, host, in, place, what);
                  })
                  .join();
              other.synchronize();
            }
          }
        }
      }
    }
  }

  private static void refuseOwn(
      ScriptedDriver driver,
      CudaStream own,
      Buffer buffer,
      MemorySegment host,
      boolean in,
      Place place,
      String what) {
    String call = in ? "copyFrom" : "copyTo";
    try (Scope _ = own.use()) {
      assertThatThrownBy(() -> copyAndWait(buffer, host, in))
          .as(what)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageStartingWith(call + " on ");
    }
    if (place == Place.MAPPED || place == Place.IN_PART || place == Place.OF_ANOTHER) {
      assertThatThrownBy(() -> copyIn(own, buffer, host, in))
          .as(what)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageStartingWith(call + " on ");
    }
    checkRoute(driver, "none", what);
  }

  /** No other thread may help with it. */
  @CudaTest(sanitized = false)
  void memoryOfOneThread_isCopiedByThatAlone_howeverLarge(Cuda cuda) {
    int bytes = 24 * MIB + 77;
    byte[] pattern = Bytes.random(2, bytes);
    for (Kind kind : new Kind[] {Kind.DEVICE, Kind.PINNED}) {
      try (Arena arena = Arena.ofConfined();
          Buffer buffer = kind.allocate(cuda, bytes)) {
        MemorySegment host = arena.allocate(bytes);
        host.copyFrom(MemorySegment.ofArray(pattern));
        buffer.copyFrom(host);
        host.fill((byte) 0);
        buffer.copyTo(host);
        assertThat(host.mismatch(MemorySegment.ofArray(pattern))).isEqualTo(-1);
        MemorySegment shared = MemorySegment.ofArray(new byte[bytes / 2]);
        MemorySegment rest = host.asSlice(0, bytes - bytes / 2);
        buffer.scatterTo(List.of(shared, rest));
        assertThat(shared.mismatch(MemorySegment.ofArray(pattern).asSlice(0, bytes / 2)))
            .isEqualTo(-1);
        assertThat(rest.mismatch(MemorySegment.ofArray(pattern).asSlice(bytes / 2))).isEqualTo(-1);
        buffer.fill((byte) 0);
        buffer.gatherFrom(List.of(shared, rest));
        assertThat(Arrays.equals(Bytes.of(buffer), pattern)).isTrue();
      }
    }
  }

  /** Rows that one call copies are all of them written. */
  @CudaTest(simulatedOnly = true)
  void copyOfRows_thatFailsWhenItIsWaitedFor_saysHowManyBytesWereOnTheirWay(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    long[][] boxes = {{64, 1, 1}, {64, 5, 1}, {24, 5, 3}, {7, 2, 11}, {100, 1, 6}};
    try (Scope _ = stream.use();
        Buffer buffer = cuda.allocate(1 << 16, stream)) {
      for (long[] each : boxes) {
        long width = each[0];
        long bytes = width * each[1] * each[2];
        CopyBox box = CopyBox.of(width, each[1], each[2]).withTarget(3, width + 5, each[1] + 1);
        MemorySegment heap = MemorySegment.ofArray(new byte[(int) bytes]);
        buffer.copyFrom(heap, box);
        driver.fail("streamSynchronize", CudaStatus.INVALID_VALUE, 1);
        String rows = each[1] * each[2] == 1 ? "" : " in rows of " + width;
        assertThatThrownBy(() -> buffer.copyFrom(heap, box))
            .isInstanceOf(CudaException.class)
            .hasMessageEndingWith(
                "copy of %d bytes%s to the device: bytes 0 to %d were written"
                    .formatted(bytes, rows, bytes));
        driver.unscript("streamSynchronize");
        stream.synchronize();
      }
    }
  }
}
