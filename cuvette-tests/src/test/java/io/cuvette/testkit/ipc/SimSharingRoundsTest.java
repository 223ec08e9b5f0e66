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

  /** A view keeps the memory; whoever asks for more finds out that it is closed. */
  @Test
  void fileOfMemoryWithAView_isClosedByTheNextImport() {
    long firstPool = pool(HOST_NUMA);
    long secondPool = pool(HOST_NUMA);
    byte[] first = exporter.sharing().memPoolExportPointer(allocate(firstPool, KIB));
    byte[] second = exporter.sharing().memPoolExportPointer(allocate(secondPool, KIB));
    long mapped = imported(firstPool);
    long other = imported(secondPool);
    long theirs = importer.sharing().memPoolImportPointer(mapped, first);
    try (Arena arena = Arena.ofShared()) {
      importer.memory().hostView(0, theirs, KIB, arena).fill((byte) 1);
      importer.ordered().memFreeAsync(0, theirs, in);
      importer.streams().streamSynchronize(0, in);
      importer.pools().memPoolDestroy(mapped);
      assertThat(importer.liveSharedFiles()).isEqualTo(2);
    }
    assertThat(importer.liveSharedFiles()).isEqualTo(2);
    assertThat(importer.sharing().memPoolImportPointer(other, second)).isNotZero();
    assertThat(importer.liveSharedFiles()).isEqualTo(1);
  }

  private static long sharedMappings() throws IOException {
    return HeldBySystem.mappings().stream().filter(line -> line.contains("memfd")).count();
  }

  private void round(int number) {
    long pool = pool(number % 2 == 0 ? DEVICE : HOST_NUMA);
    shared = allocate(pool, 10 * KIB);
    long mapped = imported(pool);
    long theirs =
        importer
            .sharing()
            .memPoolImportPointer(mapped, exporter.sharing().memPoolExportPointer(shared));
    event(theirs, number);
    handle(number);
    if (number % 2 == 1) {
      try (Arena arena = Arena.ofShared()) {
        importer.memory().hostView(0, theirs, KIB, arena).fill((byte) 1);
      }
    }
    importer.ordered().memFreeAsync(0, theirs, in);
    importer.pools().memPoolDestroy(mapped);
    importer.streams().streamSynchronize(0, in);
    exporter.ordered().memFreeAsync(0, shared, out);
    exporter.streams().streamSynchronize(0, out);
    exporter.pools().memPoolDestroy(pool);
  }

  private void event(long theirs, int number) {
    long event = exporter.events().eventCreate(0, INTERPROCESS);
    long opened =
        importer.sharing().ipcOpenEventHandle(0, exporter.sharing().ipcGetEventHandle(0, event));
    exporter.transfers().memsetD8Async(0, shared, (byte) number, 10 * KIB, out);
    exporter.events().eventRecord(0, event, out);
    importer.streams().streamWaitEvent(0, in, opened);
    importer.streams().streamSynchronize(0, in);
    assertThat(read(importer, theirs + 10 * KIB - 1)).isEqualTo((byte) number);
    importer.events().eventDestroy(0, opened);
    exporter.events().eventDestroy(0, event);
  }

  private void handle(int number) {
    long memory = exporter.memory().memAlloc(0, KIB);
    fill(exporter, memory, number, KIB, out);
    long opened =
        importer.sharing().ipcOpenMemHandle(0, exporter.sharing().ipcGetMemHandle(0, memory));
    assertThat(read(importer, opened)).isEqualTo((byte) number);
    importer.sharing().ipcCloseMemHandle(0, opened);
    exporter.memory().memFree(0, memory);
  }
}
