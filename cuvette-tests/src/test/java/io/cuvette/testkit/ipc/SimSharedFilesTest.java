package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Files that simulated drivers share: what is open of them and mapped, and for how long. */
@Timeout(60)
class SimSharedFilesTest extends SimSharingBase {
  private static final int ENTRIES = 1024;

  @Test
  void openedPlainMemory_keepsNoDescriptor() throws IOException {
    long ours = exporter.memory().memAlloc(0, MIB);
    byte[] handle = exporter.sharing().ipcGetMemHandle(0, ours);
    long before = OpenFiles.count();
    long theirs = importer.sharing().ipcOpenMemHandle(0, handle);
    assertThat(OpenFiles.count()).isLessThanOrEqualTo(before);
    fill(importer, theirs, 3, KIB, in);
    assertThat(read(exporter, ours)).isEqualTo((byte) 3);
    importer.sharing().ipcCloseMemHandle(0, theirs);
  }

  @Test
  void fileThatIsNoPool_isNotLeftMapped() throws IOException {
    int wrong = DESCRIPTORS.memoryFile("cuvette-no-pool", 16 * MIB);
    try {
      assertFails(
          CudaStatus.INVALID_VALUE,
          "a simulated driver shares",
          () -> importer.sharing().memPoolImportFromShareableHandle(wrong));
    } finally {
      DESCRIPTORS.close(wrong);
    }
    try (Stream<String> mappings = Files.lines(Path.of("/proc/self/maps"))) {
      assertThat(mappings).noneMatch(line -> line.contains("cuvette-no-pool"));
    }
  }

  /** Each pending record has an entry of its own: one more than there are is refused. */
  @Test
  void recordsBeyondTheEntries_areRefusedWhileNoneIsDone() {
    long event = exporter.events().eventCreate(0, INTERPROCESS);
    long opened =
        importer.sharing().ipcOpenEventHandle(0, exporter.sharing().ipcGetEventHandle(0, event));
    CountDownLatch go = new CountDownLatch(1);
    exporter.streams().launchHostFunc(0, out, () -> await(go));
    for (int i = 0; i < ENTRIES; i++) {
      exporter.events().eventRecord(0, event, out);
    }
    assertFails(
        CudaStatus.NOT_READY,
        "1024 records of all processes",
        () -> exporter.events().eventRecord(0, event, out));
    assertThat(importer.events().eventQuery(0, opened)).isFalse();
    go.countDown();
    importer.events().eventSynchronize(0, opened);
    exporter.events().eventRecord(0, event, out);
    importer.events().eventSynchronize(0, opened);
  }

  private static void await(CountDownLatch go) {
    try {
      boolean _ = go.await(40, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
