package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory that comes and goes on both sides in any order, beside a list of it. */
class SimLifecyclesTest extends SimSharingBase {
  private static final int STEPS = 120;
  private static final int MOST = 8;
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;

  /** Memory of the exporter, and how the importer has it. */
  private static final class Shared {
    final long ours;
    byte[] handle = {};
    boolean isFreed;
    long theirs;
    int opened;
    int value = 0xA5;

    Shared(long ours) {
      this.ours = ours;
    }

    boolean isExported() {
      return handle.length > 0;
    }
  }

  private final List<Shared> all = new ArrayList<>();

  private void write(SplittableRandom random, Shared shared) {
    int value = random.nextInt(100);
    if (random.nextBoolean() && shared.opened > 0) {
      fill(importer, shared.theirs, value, KIB, in);
      shared.value = value;
    } else if (!shared.isFreed) {
      fill(exporter, shared.ours, value, KIB, out);
      shared.value = value;
    }
  }

  private void assertContent(Shared shared) {
    if (!shared.isFreed) {
      assertThat(read(exporter, shared.ours + KIB - 1)).isEqualTo((byte) shared.value);
    }
    if (shared.opened > 0) {
      assertThat(read(importer, shared.theirs + KIB - 1)).isEqualTo((byte) shared.value);
    }
  }

  private void assertCounts(int files) {
    int opened = (int) all.stream().filter(shared -> shared.opened > 0).count();
    int live = (int) all.stream().filter(shared -> !shared.isFreed).count();
    assertThat(importer.liveAllocations()).isEqualTo(opened);
    assertThat(exporter.liveAllocations()).isEqualTo(live);
    assertThat(importer.liveBytes(0)).isZero();
    assertThat(exporter.liveBytes(0)).isEqualTo(live * KIB);
    assertThat(importer.report().lines().filter(line -> line.startsWith("imported DEVICE")))
        .hasSize(opened);
    if (files < 0) {
      assertThat(importer.liveSharedFiles()).isEqualTo(opened);
      assertThat(exporter.liveSharedFiles())
          .isEqualTo((int) all.stream().filter(s -> !s.isFreed && s.isExported()).count());
    } else {
      assertThat(importer.liveSharedFiles()).isEqualTo(files);
      assertThat(exporter.liveSharedFiles()).isEqualTo(files);
    }
    all.removeIf(shared -> shared.isFreed && shared.opened == 0);
  }

  private void export(Shared shared) {
    if (shared.isFreed) {
      assertFails(INVALID, "", () -> exporter.sharing().ipcGetMemHandle(0, shared.ours));
      return;
    }
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, shared.ours);
    assertThat(shared.isExported() ? shared.handle : handle).isEqualTo(handle);
    shared.handle = handle;
  }

  private void open(Shared shared) {
    if (shared.isFreed) {
      assertFails(INVALID, "freed", () -> importer.sharing().ipcOpenMemHandle(0, shared.handle));
      return;
    }
    long theirs = importer.sharing().ipcOpenMemHandle(0, shared.handle);
    assertThat(shared.opened > 0 ? shared.theirs : theirs).isEqualTo(theirs);
    shared.theirs = theirs;
    shared.opened++;
  }

  private void close(Shared shared) {
    if (shared.opened > 0) {
      importer.sharing().ipcCloseMemHandle(0, shared.theirs);
      shared.opened--;
    } else if (shared.theirs != 0) {
      assertFails(INVALID, "", () -> importer.sharing().ipcCloseMemHandle(0, shared.theirs));
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2})
  void plainMemory_isTheirs_asOftenAsItWasOpened_andOursUntilItIsFreed(long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    for (int step = 0; step < STEPS; step++) {
      if (all.isEmpty() || (all.size() < MOST && random.nextInt(6) == 0)) {
        all.add(new Shared(exporter.memory().memAlloc(0, KIB)));
      }
      Shared shared = all.get(random.nextInt(all.size()));
      switch (random.nextInt(8)) {
        case 0 -> export(shared);
        case 1 -> {
          if (!shared.isFreed && random.nextBoolean()) {
            exporter.memory().memFree(0, shared.ours);
            shared.isFreed = true;
          }
        }
        case 2, 3 -> {
          if (shared.isExported()) {
            open(shared);
          }
        }
        case 4, 5 -> close(shared);
        default -> write(random, shared);
      }
      assertContent(shared);
      assertCounts(-1);
    }
  }

  private void exportFromPool(Shared shared) {
    if (shared.isFreed) {
      assertFails(INVALID, "", () -> exporter.sharing().memPoolExportPointer(shared.ours));
      return;
    }
    byte[] handle = exporter.sharing().memPoolExportPointer(shared.ours);
    assertThat(shared.isExported() ? shared.handle : handle).isEqualTo(handle);
    shared.handle = handle;
  }

  private void importFrom(long pool, Shared shared) {
    if (shared.isFreed) {
      assertFails(
          INVALID, "freed", () -> importer.sharing().memPoolImportPointer(pool, shared.handle));
      return;
    }
    long theirs = importer.sharing().memPoolImportPointer(pool, shared.handle);
    assertThat(shared.opened > 0 ? shared.theirs : theirs).isEqualTo(theirs);
    shared.theirs = theirs;
    shared.opened = 1;
  }

  private void free(SplittableRandom random, Shared shared) {
    if (random.nextInt(3) > 0 && shared.opened > 0) {
      importer.ordered().memFreeAsync(0, shared.theirs, in);
      assertFails(INVALID, "", () -> importer.ordered().memFreeAsync(0, shared.theirs, in));
      importer.streams().streamSynchronize(0, in);
      shared.opened = 0;
    } else if (random.nextInt(3) == 0 && !shared.isFreed) {
      exporter.ordered().memFreeAsync(0, shared.ours, out);
      assertFails(INVALID, "", () -> exporter.ordered().memFreeAsync(0, shared.ours, out));
      exporter.streams().streamSynchronize(0, out);
      shared.isFreed = true;
      shared.value = 0xA5;
    }
  }

  private void writeToPool(SplittableRandom random, Shared shared) {
    write(random, shared);
    if (shared.isFreed) {
      shared.value = 0xA5; // whatever was written: others have the memory
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2})
  void memoryOfAPool_isMappedOnce_andGoneOnceItsExporterFreedIt(long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    long pool = pool(DEVICE);
    long imported = imported(pool);
    for (int step = 0; step < STEPS; step++) {
      if (all.isEmpty() || (all.size() < MOST && random.nextInt(6) == 0)) {
        all.add(new Shared(allocate(pool, KIB)));
      }
      Shared shared = all.get(random.nextInt(all.size()));
      switch (random.nextInt(6)) {
        case 0 -> exportFromPool(shared);
        case 1, 2 -> {
          if (shared.isExported()) {
            importFrom(imported, shared);
          }
        }
        case 3 -> free(random, shared);
        default -> writeToPool(random, shared);
      }
      assertContent(shared);
      assertCounts(1);
    }
  }
}
