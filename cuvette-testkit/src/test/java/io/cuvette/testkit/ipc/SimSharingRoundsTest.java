package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.testkit.support.HeldBySystem;
import java.io.IOException;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;

/** What sharing holds of the operating system, after many rounds. */
class SimSharingRoundsTest extends SimSharingBase {
  private static final int ROUNDS = 500;
  private static final int WARM_UP = 20;

  private long shared;

  @Test
  void rounds_leaveNeitherDescriptorsNorMappings() throws IOException {
    for (int i = 0; i < WARM_UP; i++) {
      round(i);
    }
    int descriptors = HeldBySystem.descriptors();
    long mappings = sharedMappings();
    for (int i = 0; i < ROUNDS; i++) {
      round(i);
    }
    assertThat(HeldBySystem.descriptors()).isEqualTo(descriptors);
    assertThat(sharedMappings()).isEqualTo(mappings);
    assertThat(importer.liveSharedFiles()).isZero();
    assertThat(exporter.liveSharedFiles()).isZero();
    assertThat(importer.liveAllocations() + exporter.liveAllocations()).isZero();
    assertThat(importer.livePools() + exporter.livePools()).isZero();
    assertThat(importer.liveEvents() + exporter.liveEvents()).isZero();
  }

  private static long sharedMappings() throws IOException {
    return HeldBySystem.mappings().stream().filter(line -> line.contains("memfd")).count();
  }

  private void round(int number) {
    long pool = pool(number % 2 == 0 ? DEVICE : HOST_NUMA);
    shared = allocate(pool, 10 * KIB);
    long mapped = imported(pool);
    long theirs = importer.memPoolImportPointer(mapped, exporter.memPoolExportPointer(shared));
    event(theirs, number);
    handle(number);
    if (number % 2 == 1) {
      try (Arena arena = Arena.ofShared()) {
        importer.hostView(0, theirs, KIB, arena).fill((byte) 1);
      }
    }
    importer.memFreeAsync(0, theirs, in);
    importer.memPoolDestroy(mapped);
    importer.streamSynchronize(0, in);
    exporter.memFreeAsync(0, shared, out);
    exporter.streamSynchronize(0, out);
    exporter.memPoolDestroy(pool);
  }

  private void event(long theirs, int number) {
    long event = exporter.eventCreate(0, INTERPROCESS);
    long opened = importer.ipcOpenEventHandle(0, exporter.ipcGetEventHandle(0, event));
    exporter.memsetD8Async(0, shared, (byte) number, 10 * KIB, out);
    exporter.eventRecord(0, event, out);
    importer.streamWaitEvent(0, in, opened);
    importer.streamSynchronize(0, in);
    assertThat(read(importer, theirs + 10 * KIB - 1)).isEqualTo((byte) number);
    importer.eventDestroy(0, opened);
    exporter.eventDestroy(0, event);
  }

  private void handle(int number) {
    long memory = exporter.memAlloc(0, KIB);
    fill(exporter, memory, number, KIB, out);
    long opened = importer.ipcOpenMemHandle(0, exporter.ipcGetMemHandle(0, memory));
    assertThat(read(importer, opened)).isEqualTo((byte) number);
    importer.ipcCloseMemHandle(0, opened);
    exporter.memFree(0, memory);
  }
}
