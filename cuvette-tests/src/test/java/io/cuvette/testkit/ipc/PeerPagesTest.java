package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Buffer;
import io.cuvette.CudaDevice;
import io.cuvette.DeviceAttribute;
import io.cuvette.DeviceBuffer;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.PageHandles;
import io.cuvette.driver.CudaException;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.HeldBySystem;
import io.cuvette.testkit.support.Peers;
import java.io.IOException;
import org.junit.jupiter.api.extension.ExtendWith;

/** Pages of elastic pools between two JVMs, in both directions, also when one of them is killed. */
@ExtendWith(Peers.Extension.class)
class PeerPagesTest {
  private static final int ROUNDS = Integer.getInteger("cuvette.rounds", 30);

  /** Each is a JVM that starts. */
  private static final int KILLS = Integer.getInteger("cuvette.rounds", 3);

  /** The rounds before the first count, in which classes are loaded and caches filled. */
  private static final int FIRST = ROUNDS / 3;

  private static final int FEW_DESCRIPTORS = 5;
  private static final long FEW_BYTES = 64 << 20;
  private static final int SIZE = 5 << 20;

  private static CudaDevice exporting(Subject subject) {
    CudaDevice device = subject.cuda().device(0);
    assumeTrue(
        device.attribute(DeviceAttribute.HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0,
        "pages cannot be exported");
    return device;
  }

  private static ElasticMemoryPool pool(Subject subject) {
    return new ElasticMemoryPool(subject.cuda(), ElasticSharingTest.EXPORTABLE);
  }

  @CudaTest
  void rounds_leaveNothingOnEitherSide(Subject subject, Peers peers) throws IOException {
    CudaDevice device = exporting(subject);
    try (ElasticMemoryPool pool = pool(subject);
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("elastic", "pool");
      long here = 0;
      long there = 0;
      long free = 0;
      for (int i = 0; i < ROUNDS; i++) {
        if (i == FIRST) {
          here = HeldBySystem.descriptors();
          there = Long.parseLong(child.ask("descriptors"));
          free = device.memoryInfo().freeBytes();
        }
        round(pool, child, device, i);
        if (i % 10 == 0) {
          pool.freeAllBlocks();
        }
      }
      pool.freeAllBlocks();
      assertThat((long) HeldBySystem.descriptors()).isLessThanOrEqualTo(here + FEW_DESCRIPTORS);
      assertThat(Long.parseLong(child.ask("descriptors")))
          .isLessThanOrEqualTo(there + FEW_DESCRIPTORS);
      assertThat(device.memoryInfo().freeBytes()).isGreaterThanOrEqualTo(free - FEW_BYTES);
      pool.assertConsistent();
      child.ask("close", "pool");
    }
  }

  private static void round(ElasticMemoryPool pool, RemoteSharer child, CudaDevice device, int i) {
    try (Buffer ours = pool.allocate(SIZE);
        PageHandles handles = pool.export(ours)) {
      ours.fill((byte) i);
      child.importPages("theirs", handles);
      assertThat(child.ask("lastByte", "theirs")).isEqualTo(Byte.toString((byte) i));
      child.closeAll("theirs");
    }
    child.ask("allocateElastic", "buffer", "pool", SIZE);
    try (PageHandles handles = child.exportPages("pool", "buffer");
        DeviceBuffer imported = device.importBuffer(handles, device.nullStream())) {
      imported.fill((byte) -i);
      device.synchronize();
      assertThat(child.ask("lastByte", "buffer")).isEqualTo(Byte.toString((byte) -i));
    }
    child.closeAll("buffer");
  }

  @CudaTest
  void importerIsKilled_andTheExporterGoesOn(Subject subject, Peers peers) {
    CudaDevice device = exporting(subject);
    for (int i = 0; i < KILLS; i++) {
      try (ElasticMemoryPool pool = pool(subject)) {
        try (Buffer ours = pool.allocate(SIZE);
            PageHandles handles = pool.export(ours);
            RemoteSharer importer = RemoteSharer.start(peers, subject)) {
          ours.fill((byte) 1);
          importer.importPages("theirs", handles);
          importer.ask("stream", "stream");
          importer.ask("fillOn", "theirs", 3, "stream");
          importer.ask("finish", "stream");
          importer.kill();
          assertThat(Bytes.of(ours)).containsOnly(3);
          ours.fill((byte) 5);
          assertThat(Bytes.of(ours.slice(SIZE - 1000))).containsOnly(5);
        }
        device.synchronize();
        pool.freeAllBlocks();
        assertThat(pool.totalBytes()).isZero();
      }
    }
  }

  @CudaTest
  void exporterIsKilled_beforeOrAfterTheImport(Subject subject, Peers peers) {
    CudaDevice device = exporting(subject);
    for (int i = 0; i < KILLS; i++) {
      try (RemoteSharer exporter = RemoteSharer.start(peers, subject)) {
        exporter.ask("elastic", "pool");
        exporter.ask("allocateElastic", "buffer", "pool", SIZE);
        exporter.ask("put", "buffer", 1);
        try (PageHandles handles = exporter.exportPages("pool", "buffer")) {
          if (i % 2 == 0) {
            exporter.kill();
          }
          try (DeviceBuffer imported = device.importBuffer(handles, device.nullStream())) {
            if (i % 2 != 0) {
              exporter.kill();
            }
            assertThat(Bytes.of(imported)).isEqualTo(Bytes.random(1, SIZE));
            imported.fill((byte) 2);
            assertThat(Bytes.of(imported.slice(0, 100))).containsOnly(2);
          } catch (CudaException e) {
            assertThat(e).hasMessageContaining("CUDA_ERROR");
          }
        }
      }
    }
  }
}
