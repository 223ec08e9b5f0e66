package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.LaunchConfig;
import io.cuvette.MemoryResource;
import io.cuvette.PageHandles;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.TestKernels;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Buffers of an elastic pool, from one process to another. */
class ElasticSharingTest extends TwoProcesses {
  static final ElasticPoolOptions EXPORTABLE = ElasticPoolOptions.DEFAULTS.withExportable(true);
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private ElasticMemoryPool pool() {
    return new ElasticMemoryPool(exporter, EXPORTABLE);
  }

  private DeviceBuffer imported(PageHandles handles) {
    return there().importBuffer(handles, there().nullStream());
  }

  /** Bytes that are mapped or allocated on the importer's device. */
  private long usedThere() {
    return there().memoryInfo().totalBytes() - there().memoryInfo().freeBytes();
  }

  @Test
  void part_isSharedInBothDirections_afterItsHandlesAreClosed() {
    try (ElasticMemoryPool pool = pool();
        Buffer ours = pool.allocate(5 * MIB)) {
      byte[] all = pattern(5 * MIB, 1);
      put(ours, all);
      DeviceBuffer theirs;
      try (PageHandles handles = pool.export(ours.slice(3 * MIB - 7, MIB))) {
        assertThat(handles.descriptor().kind()).isEqualTo(BufferDescriptor.Kind.PAGES);
        assertThat(handles.descriptor().offset()).isEqualTo(MIB - 7);
        assertThat(handles.pageBytes()).as("no more than is needed").isEqualTo(2 * MIB);
        theirs = imported(handles);
      }
      try (PageHandles handles = pool.export(ours.slice(2 * MIB, 2 * MIB))) {
        assertThat(handles.descriptor().offset()).isZero();
        assertThat(handles.pageBytes()).as("it ends with a page").isEqualTo(2 * MIB);
      }
      assertThat(theirs.isMapped()).isTrue();
      assertThat(bytes(theirs))
          .isEqualTo(Arrays.copyOfRange(all, (int) (3 * MIB - 7), (int) (4 * MIB - 7)));
      theirs.fill((byte) 9);
      assertThat(bytes(ours.slice(3 * MIB - 7, MIB))).containsOnly(9);
      assertThatThrownBy(theirs::descriptor)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("PageHandles");
      theirs.close();
    }
  }

  @Test
  void manyPages_areOneRange_ofTheirSize(@TempDir Path folder) throws Exception {
    try (ElasticMemoryPool pool = pool();
        Buffer ours = pool.allocate(100 * MIB);
        IpcListener listener = IpcListener.open(folder.resolve("socket"));
        IpcChannel sender = IpcChannel.connect(folder.resolve("socket"), PATIENCE);
        IpcChannel receiver = listener.accept(PATIENCE);
        PageHandles handles = pool.export(ours)) {
      put(ours.slice(99 * MIB), pattern(MIB, 2));
      assertThat(handles.pages()).as("more than a message of the system has").isGreaterThan(16);
      long before = usedThere();
      for (int round = 0; round < 3; round++) {
        sender.send(handles);
        sender.send(new byte[] {1});
        try (PageHandles came = receiver.receivePageHandles(PATIENCE);
            DeviceBuffer theirs = imported(came)) {
          assertThat(came.pages()).isEqualTo(handles.pages());
          assertThat(came.pageBytes()).isEqualTo(100 * MIB);
          assertThat(bytes(theirs.slice(99 * MIB))).isEqualTo(pattern(MIB, 2));
          assertThat(importerReport()).contains("1 reserved ranges");
        }
        receiver.receiveMessage(PATIENCE).close();
        assertThat(usedThere()).isEqualTo(before);
      }
    }
  }

  private String importerReport() {
    return importerDriver().report().toString();
  }

  @Test
  void imports_areMappedOnce_whateverHandlesTheyCameBy_fromManyThreads() throws Exception {
    try (ElasticMemoryPool pool = pool();
        Buffer ours = pool.allocate(5 * MIB);
        PageHandles one = pool.export(ours);
        PageHandles two = pool.export(ours);
        ExecutorService threads = Executors.newFixedThreadPool(8)) {
      for (int round = 0; round < 20; round++) {
        List<Future<DeviceBuffer>> all = new ArrayList<>();
        for (int i = 0; i < 16; i++) {
          PageHandles handles = i % 2 == 0 ? one : two;
          all.add(threads.submit(() -> imported(handles)));
        }
        long address = all.getFirst().get().address();
        for (Future<DeviceBuffer> each : all) {
          assertThat(each.get().address()).isEqualTo(address);
        }
        List<Future<?>> ends = new ArrayList<>();
        for (Future<DeviceBuffer> each : all) {
          DeviceBuffer buffer = each.get();
          ends.add(threads.submit(buffer::close));
        }
        for (Future<?> end : ends) {
          end.get();
        }
        assertThat(importer.device(0).memoryInfo().freeBytes()).isEqualTo(256 * MIB);
      }
    }
  }

  private static Cuda scripted(ScriptedDriver script) {
    SimulatedDriver below = SimulatedDriver.open(SimulatedOptions.parse("devices=2"));
    return Cuda.open(CudaOptions.DEFAULTS.withDriver(script.over(below)));
  }

  @Test
  void import_reservesTheBytesOfItsPages_andMapsThemOnce() {
    ScriptedDriver script = new ScriptedDriver();
    script.note("memAddressReserve", call -> "reserve " + call.number("bytes") / MIB);
    script.note("memAddressFree", call -> "free " + call.number("bytes") / MIB);
    script.note("memMap", call -> "map " + call.number("bytes") / MIB);
    try (Cuda cuda = scripted(script);
        ElasticMemoryPool pool = pool();
        Buffer ours = pool.allocate(9 * MIB);
        PageHandles all = pool.export(ours);
        PageHandles part = pool.export(ours.slice(3 * MIB, 2 * MIB))) {
      CudaStream stream = cuda.device(0).nullStream();
      assertThat(part.pageBytes()).isEqualTo(4 * MIB);
      DeviceBuffer first = cuda.device(0).importBuffer(part, stream);
      DeviceBuffer second = cuda.device(0).importBuffer(part, stream);
      assertThat(script.takeNotes()).containsExactly("reserve 4", "map 2", "map 2");
      first.close();
      assertThat(script.takeNotes()).isEmpty();
      second.close();
      assertThat(script.takeNotes()).containsExactly("free 4");
      cuda.device(0).importBuffer(all, stream).close();
      assertThat(script.takeNotes()).contains("reserve 10").endsWith("free 10");
    }
  }

  @Test
  void legacyHandle_isNotTried() {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = scripted(script);
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda, EXPORTABLE);
        Buffer ours = pool.allocate(100);
        Buffer wrapped = cuda.wrap(ours.address(), 100, ours)) {
      assertThatThrownBy(ours::descriptor).hasMessageContaining("ElasticMemoryPool.export");
      assertThatThrownBy(wrapped::descriptor).hasMessageContaining("ElasticMemoryPool.export");
      assertThat(script.count("pointerGetAttribute")).isPositive();
      assertThat(script.count("ipcGetMemHandle")).isZero();
    }
  }

  @Test
  void lastClose_waitsForTheWorkOfAll() {
    try (ElasticMemoryPool pool = pool();
        Buffer ours = pool.allocate(4096);
        PageHandles handles = pool.export(ours);
        CudaStream one = there().createStream();
        CudaStream two = there().createStream()) {
      DeviceBuffer first = there().importBuffer(handles, one);
      DeviceBuffer second = there().importBuffer(handles, two);
      first.slice(0, 2048).fill((byte) 1, one);
      first.close();
      second.slice(2048, 2048).fill((byte) 2, two);
      second.close();
      assertThat(one.isDone()).isTrue();
      assertThat(two.isDone()).isTrue();
      assertThat(bytes(ours.slice(0, 2048))).containsOnly(1);
      assertThat(bytes(ours.slice(2048, 2048))).containsOnly(2);
    }
  }

  @Test
  void exporterThatFreesFirst_leavesTheMemoryToImporters_andReusesOrReleasesItsOwn() {
    try (ElasticMemoryPool pool = pool()) {
      Buffer ours = pool.allocate(4 * MIB);
      ours.fill((byte) 1);
      DeviceBuffer theirs;
      try (PageHandles handles = pool.export(ours)) {
        theirs = imported(handles);
      }
      here().synchronize();
      ours.close();
      try (Buffer next = pool.allocate(4 * MIB)) { // as every pool does: nobody keeps it
        next.fill((byte) 2);
        assertThat(bytes(theirs)).containsOnly(2);
      }
      here().synchronize();
      assertThat(pool.freeAllBlocks()).isEqualTo(4 * MIB);
      pool.assertConsistent();
      try (Buffer other = pool.allocate(4 * MIB)) { // new memory, maybe at the same address
        other.fill((byte) 3);
        assertThat(bytes(theirs)).as("the importer's alone").containsOnly(2);
        theirs.fill((byte) 4);
        assertThat(bytes(other)).containsOnly(3);
        try (PageHandles again = pool.export(other);
            DeviceBuffer new2 = imported(again)) {
          assertThat(bytes(new2)).as("of the new memory").containsOnly(3);
          assertThat(new2.address()).isNotEqualTo(theirs.address());
        }
      }
      theirs.close();
      assertThat(there().memoryInfo().freeBytes()).isEqualTo(256 * MIB);
    }
  }

  @Test
  void openHandles_keepTheMemoryOfReleasedPages_andNothingElseDoes() {
    try (ElasticMemoryPool pool = pool()) {
      Buffer ours = pool.allocate(4 * MIB);
      ours.fill((byte) 1);
      PageHandles handles = pool.export(ours);
      pool.export(ours).close();
      here().synchronize();
      ours.close();
      assertThat(pool.freeAllBlocks()).isEqualTo(4 * MIB);
      assertThat(pool.totalBytes()).isZero();
      try (handles;
          DeviceBuffer late = imported(handles)) { // an import in flight
        assertThat(bytes(late)).containsOnly(1);
      }
    }
  }

  @Test
  void whatCannotBeExported_isOneErrorBeforeTheDriver() {
    try (ElasticMemoryPool pool = pool();
        ElasticMemoryPool other = pool();
        ElasticMemoryPool closedToOthers = new ElasticMemoryPool(exporter);
        Buffer ours = pool.allocate(100);
        Buffer empty = pool.allocate(0);
        Buffer alone = closedToOthers.allocate(100);
        Buffer plain = exporter.defaultMemoryPool().allocate(100);
        Buffer direct = MemoryResource.direct().allocate(100, exporter.currentStream());
        Buffer ordered = MemoryResource.async().allocate(100, exporter.currentStream())) {
      assertThatThrownBy(() -> closedToOthers.export(alone))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("ElasticPoolOptions.exportable");
      for (Buffer wrong : List.of(alone, plain, direct, ordered)) {
        assertThatThrownBy(() -> pool.export(wrong))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("is not of");
      }
      assertThatThrownBy(() -> other.export(ours)).hasMessageContaining("is not of");
      for (Buffer nothing : List.of(empty, ours.slice(1, 0))) {
        assertThatThrownBy(() -> pool.export(nothing))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("an empty buffer has no memory");
      }
      assertThatThrownBy(ours::descriptor).hasMessageContaining("ElasticMemoryPool.export");
      assertThatThrownBy(alone::descriptor).hasMessageContaining("ElasticPoolOptions.exportable");
      Buffer wrapped = exporter.wrap(ours.address(), 100, ours);
      assertThatThrownBy(wrapped::descriptor)
          .as("the driver is asked, a legacy handle is not tried")
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("ElasticMemoryPool.export");
    }
    try (Cuda without = Cuda.open(CudaOptions.DEFAULTS.withDevice("sim:virtualMemory=false"))) {
      assertThatThrownBy(() -> new ElasticMemoryPool(without, EXPORTABLE))
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessageContaining("MemoryPool");
    }
  }

  /** Whatever it was, and of whom. */
  @Test
  void closedBuffer_isNotExported() {
    try (ElasticMemoryPool pool = pool();
        ElasticMemoryPool other = pool()) {
      for (Buffer closed :
          List.of(
              pool.allocate(100),
              pool.allocate(0),
              other.allocate(100),
              MemoryResource.direct().allocate(100, exporter.currentStream()))) {
        closed.close();
        assertThatThrownBy(() -> pool.export(closed))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageEndingWith("is closed");
      }
    }
  }

  @Test
  void whatCannotBeImported_isOneErrorBeforeAnythingIsMapped() {
    try (ElasticMemoryPool pool = pool();
        Buffer ours = pool.allocate(100)) {
      PageHandles handles = pool.export(ours);
      assertThatThrownBy(() -> here().importBuffer(handles, here().nullStream()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("this very process");
      assertThatThrownBy(() -> there().importBuffer(handles, here().nullStream()))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> there().importBuffer(handles, importer.device(1).nullStream()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("expected: a stream of");
      assertThatThrownBy(() -> there().importBuffer(handles.descriptor()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("PageHandles");
      handles.close();
      assertThatThrownBy(() -> imported(handles))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage("%s is closed", handles);
    }
  }

  private static PageHandles handlesOf(Cuda cuda) {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda, EXPORTABLE);
        Buffer own = pool.allocate(100)) {
      return pool.export(own);
    }
  }

  @Test
  @SuppressWarnings("try") // in this order
  void closedCuda_importsNothing_beItItsOwnOrAnothers() {
    for (Cuda cuda : List.of(exporter, importer)) {
      CudaStream stream = cuda.device(0).nullStream();
      try (PageHandles handles = handlesOf(cuda)) {
        cuda.close();
        assertThatThrownBy(() -> stream.device().importBuffer(handles, stream))
            .isInstanceOf(IllegalStateException.class)
            .hasMessage("Cuda is closed");
      }
    }
  }

  @Test
  void otherDeviceOfTheImporter_hasTheMemoryToo() {
    try (ElasticMemoryPool pool = pool();
        Buffer ours = pool.allocate(3 * MIB);
        PageHandles handles = pool.export(ours);
        DeviceBuffer near = imported(handles);
        DeviceBuffer far =
            importer.device(1).importBuffer(handles, importer.device(1).nullStream())) {
      far.fill((byte) 6);
      assertThat(bytes(near)).containsOnly(6);
    }
  }

  /** That has opened descriptors by then. */
  @Test
  void exportThatFailsInTheEnd_leavesNoDescriptor() {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda, EXPORTABLE);
        Buffer buffer = pool.allocate(5 * MIB)) {
      pool.export(buffer).close();
      long before = OpenFiles.count();
      script.fail("deviceGetUuid", CudaStatus.INVALID_CONTEXT);
      assertThatThrownBy(() -> pool.export(buffer)).isInstanceOf(CudaException.class);
      assertThat(OpenFiles.count()).isEqualTo(before);
      script.unscript("deviceGetUuid");
    }
  }

  @Test
  void buffersThatAreClosed_areNotExported_howeverSmall() {
    try (ElasticMemoryPool pool = pool()) {
      for (long bytes : new long[] {0, 1, MIB}) {
        Buffer closed = pool.allocate(bytes);
        closed.close();
        assertThatThrownBy(() -> pool.export(closed))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageEndingWith("is closed");
      }
    }
  }

  /** Where it was imported for, and on no other: its pages are mapped for that device alone. */
  @Test
  void importedPages_areForTheCodeOfTheirDevice() {
    CudaDevice other = importer.device(1);
    try (ElasticMemoryPool pool = pool();
        Buffer ours = pool.allocate(MIB);
        PageHandles handles = pool.export(ours);
        DeviceBuffer near = imported(handles);
        DeviceBuffer far = other.importBuffer(handles, other.nullStream());
        CudaModule module = TestKernels.launches(importer)) {
      CudaKernel scale = module.kernel("scale");
      LaunchConfig one = LaunchConfig.of(1, 32);
      there().nullStream().launch(scale, one, near, 2f, 16);
      other.nullStream().launch(scale, one, far, 2f, 16);
      assertThatThrownBy(() -> there().nullStream().launch(scale, one, far, 2f, 16))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("memory that %s, which runs %s, has access to", there(), scale);
      assertThatThrownBy(() -> other.nullStream().launch(scale, one, near, 2f, 16))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("memory that %s, which runs %s, has access to", other, scale);
    }
  }

  @Test
  @SuppressWarnings("try") // what a closed listener says
  void handlesThatAreClosed_areNotSent(@TempDir Path folder) {
    try (ElasticMemoryPool pool = pool();
        Buffer ours = pool.allocate(MIB);
        IpcListener listener = IpcListener.open(folder.resolve("s"));
        IpcChannel channel = IpcChannel.connect(folder.resolve("s"), PATIENCE)) {
      PageHandles handles = pool.export(ours);
      assertThat(handles.toString()).doesNotContain("closed");
      handles.close();
      assertThatThrownBy(() -> channel.send(handles))
          .isInstanceOf(IllegalStateException.class)
          .hasMessage(handles + " is closed");
      assertThat(handles.toString()).endsWith(" (closed)");
      assertThat(channel.isClosed()).isFalse();
      try (IpcChannel other = listener.accept(PATIENCE)) {
        channel.send(new byte[] {7});
        assertThat(other.receiveMessage(PATIENCE).bytes()).containsExactly(7);
      }
      assertThat(listener.toString()).contains(folder.toString()).doesNotContain("closed");
      listener.close();
      assertThat(listener.toString()).endsWith(" (closed)");
    }
  }
}
