package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Peer;
import io.cuvette.testkit.support.PeerJvm;
import io.cuvette.testkit.support.PeerProgram;
import io.cuvette.testkit.support.Peers;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HexFormat;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Simulated drivers of two processes, one of which is killed. */
@ExtendWith(Peers.Extension.class)
@Timeout(120)
class SimProcessesTest extends SimSharingBase {
  private static final Duration SOON = Duration.ofSeconds(60);
  private static final HexFormat HEX = HexFormat.of();

  /** Where the processes meet. */
  @TempDir Path directory;

  private long mapped;

  /** Receives the descriptor of the peer's pool and imports it. */
  private void meet(PeerJvm peer) {
    Path path = directory.resolve("socket");
    int listener = DESCRIPTORS.listen(path.toString());
    assertThat(peer.hear()).isEqualTo("here");
    peer.say(path);
    int socket = DESCRIPTORS.accept(listener, SOON);
    int descriptor = DESCRIPTORS.receive(socket, 1, SOON).descriptors()[0];
    mapped = importer.sharing().memPoolImportFromShareableHandle(descriptor);
    DESCRIPTORS.close(descriptor);
    DESCRIPTORS.close(socket);
    DESCRIPTORS.close(listener);
  }

  private static byte[] bytes(PeerJvm peer) {
    return HEX.parseHex(peer.hear());
  }

  @CudaTest(simulatedOnly = true)
  void killedExporter_leavesTheMemory_andNobodyWaitsForIt(Subject subject, Peers peers) {
    try (PeerJvm peer = peers.start(subject)) {
      peer.run(Exporter.class);
      meet(peer);
      long pooled = importer.sharing().memPoolImportPointer(mapped, bytes(peer));
      byte[] handle = bytes(peer);
      long plain = importer.sharing().ipcOpenMemHandle(0, handle);
      byte[] eventHandle = bytes(peer);
      long event = importer.sharing().ipcOpenEventHandle(0, eventHandle);
      assertThat(importer.events().eventQuery(0, event))
          .as("the record behind the function")
          .isFalse();
      importer.streams().streamWaitEvent(0, in, event);
      assertThat(importer.streams().streamQuery(0, in)).isFalse();
      peer.kill();
      importer.streams().streamSynchronize(0, in);
      assertThat(importer.events().eventQuery(0, event)).as("what the stream found").isTrue();
      importer.events().eventSynchronize(0, event);
      assertThat(read(importer, pooled, 2)).containsExactly(7, 7);
      assertThat(read(importer, plain + 63)).isEqualTo((byte) 8);
      CudaStatus status = CudaStatus.INVALID_VALUE;
      assertFails(
          status, "which has ended", () -> importer.sharing().ipcOpenEventHandle(0, eventHandle));
      importer.sharing().ipcCloseMemHandle(0, plain);
      assertFails(status, "which has ended", () -> importer.sharing().ipcOpenMemHandle(0, handle));
      importer.memory().memFree(0, pooled);
    }
  }

  /** Shares memory, and an event whose record never comes. */
  static final class Exporter implements PeerProgram {
    @Override
    public void run(Peer peer) throws InterruptedException {
      peer.say("here");
      SimulatedDriver driver = open("devices=1");
      long stream = stream(driver);
      long pool = driver.pools().memPoolCreate(new PoolProperties(1, 1, DEVICE, 0, 0));
      long pooled = driver.ordered().memAllocFromPoolAsync(0, KIB, pool, stream);
      fill(driver, pooled, 7, KIB, stream);
      long plain = driver.memory().memAlloc(0, 64);
      fill(driver, plain, 8, 64, stream);
      long event = driver.events().eventCreate(0, INTERPROCESS);
      driver.streams().launchHostFunc(0, stream, Exporter::never);
      driver.events().eventRecord(0, event, stream);
      sendPool(driver, pool, peer.hear());
      peer.say(HEX.formatHex(driver.sharing().memPoolExportPointer(pooled)));
      peer.say(HEX.formatHex(driver.sharing().ipcGetMemHandle(0, plain)));
      peer.say(HEX.formatHex(driver.sharing().ipcGetEventHandle(0, event)));
      never();
    }

    private static void never() {
      try {
        new CountDownLatch(1).await();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static void sendPool(SimulatedDriver driver, long pool, String path) {
    DescriptorCalls calls = DescriptorCalls.find().orElseThrow();
    int socket = calls.connect(path, SOON);
    int descriptor = driver.sharing().memPoolExportToShareableHandle(pool);
    calls.send(socket, new byte[] {1}, new int[] {descriptor}, SOON);
    calls.close(descriptor);
    calls.close(socket);
  }

  @CudaTest(simulatedOnly = true)
  void killedImporter_isNotNoticed(Subject subject, Peers peers) {
    long memory = exporter.memory().memAlloc(0, 64);
    long event = exporter.events().eventCreate(0, INTERPROCESS);
    try (PeerJvm peer = peers.start(subject)) {
      peer.run(Importer.class);
      assertThat(peer.hear()).isEqualTo("here");
      peer.say(HEX.formatHex(exporter.sharing().ipcGetMemHandle(0, memory)));
      peer.say(HEX.formatHex(exporter.sharing().ipcGetEventHandle(0, event)));
      assertThat(peer.hear()).isEqualTo("recorded");
      exporter.streams().streamWaitEvent(0, out, event);
      peer.kill();
    }
    exporter.streams().streamSynchronize(0, out);
    assertThat(read(exporter, memory)).isEqualTo((byte) 5);
    fill(exporter, memory, 6, 64, out);
    exporter.events().eventRecord(0, event, out);
    exporter.events().eventSynchronize(0, event);
    exporter.memory().memFree(0, memory);
  }

  /** Writes, then records an event that never comes. */
  static final class Importer implements PeerProgram {
    @Override
    public void run(Peer peer) throws InterruptedException {
      peer.say("here");
      SimulatedDriver driver = open("devices=1");
      long stream = stream(driver);
      long memory = driver.sharing().ipcOpenMemHandle(0, HEX.parseHex(peer.hear()));
      long event = driver.sharing().ipcOpenEventHandle(0, HEX.parseHex(peer.hear()));
      fill(driver, memory, 5, 64, stream);
      driver.streams().launchHostFunc(0, stream, Exporter::never);
      driver.events().eventRecord(0, event, stream);
      peer.say("recorded");
      Exporter.never();
    }
  }

  @CudaTest(simulatedOnly = true)
  void turns_keepTheirOrder_thoughNeitherProcessWaitsInBetween(Subject subject, Peers peers) {
    long memory = exporter.memory().memAlloc(0, 4);
    long event = exporter.events().eventCreate(0, INTERPROCESS);
    long back = exporter.events().eventCreate(0, INTERPROCESS);
    try (PeerJvm peer = peers.start(subject)) {
      peer.run(Turns.class);
      assertThat(peer.hear()).isEqualTo("here");
      peer.say(HEX.formatHex(exporter.sharing().ipcGetMemHandle(0, memory)));
      peer.say(HEX.formatHex(exporter.sharing().ipcGetEventHandle(0, event)));
      peer.say(HEX.formatHex(exporter.sharing().ipcGetEventHandle(0, back)));
      for (int turn = 1; turn <= Turns.COUNT; turn++) {
        exporter.transfers().memsetD8Async(0, memory, (byte) turn, 1, out);
        exporter.events().eventRecord(0, event, out);
        peer.say("recorded");
        assertThat(peer.hear()).isEqualTo("queued");
        exporter.streams().streamWaitEvent(0, out, back);
        exporter.transfers().memcpyAsync(0, memory + 2, memory + 1, 1, out);
      }
      exporter.streams().streamSynchronize(0, out);
      assertThat(read(exporter, memory, 3)).containsExactly(Turns.COUNT, Turns.COUNT, Turns.COUNT);
      peer.finish();
    }
  }

  /** Copies what the other process wrote, each time behind its record. */
  static final class Turns implements PeerProgram {
    static final int COUNT = 50;

    @Override
    public void run(Peer peer) throws InterruptedException {
      peer.say("here");
      try (SimulatedDriver driver = open("devices=1")) {
        long stream = stream(driver);
        long memory = driver.sharing().ipcOpenMemHandle(0, HEX.parseHex(peer.hear()));
        long event = driver.sharing().ipcOpenEventHandle(0, HEX.parseHex(peer.hear()));
        long back = driver.sharing().ipcOpenEventHandle(0, HEX.parseHex(peer.hear()));
        for (int turn = 1; turn <= COUNT; turn++) {
          peer.hear();
          driver.streams().streamWaitEvent(0, stream, event);
          driver.transfers().memcpyAsync(0, memory + 1, memory, 1, stream);
          driver.events().eventRecord(0, back, stream);
          peer.say("queued");
        }
        driver.events().eventSynchronize(0, back);
        driver.sharing().ipcCloseMemHandle(0, memory);
      }
    }
  }
}
