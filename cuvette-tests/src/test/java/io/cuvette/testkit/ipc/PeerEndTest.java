package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AllocationHandle;
import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.DriverPoolResource;
import io.cuvette.MemoryResource;
import io.cuvette.driver.CudaException;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Peers;
import org.junit.jupiter.api.extension.ExtendWith;

/** One of two processes is killed: the other goes on, and no memory stays behind. */
@ExtendWith(Peers.Extension.class)
class PeerEndTest {
  private static final int SIZE = 10_000;

  /** So much that a device's free memory shows whether it is left behind. */
  private static long muchBytes(Subject subject) {
    return subject.isSimulated() ? 4L << 20 : 1L << 30;
  }

  @CudaTest
  void exporterIsKilled_andTheImporterStillHasTheMemory(Subject subject, Peers peers) {
    for (SharedPool kind : SharedPool.values()) {
      try (RemoteSharer exporter = RemoteSharer.start(peers, subject);
          RemoteSharer importer = RemoteSharer.start(peers, subject)) {
        exporter.ask("pool", "pool", kind);
        exporter.ask("allocate", "buffer", "pool", SIZE);
        exporter.ask("put", "buffer", 1);
        exporter.ask("allocatePlain", "plain", SIZE);
        exporter.ask("put", "plain", 2);
        try (AllocationHandle handle = exporter.exportPool("pool")) {
          importer.importPool("pool", kind, handle);
        }
        importer.ask("import", "buffer", "pool", exporter.descriptor("buffer"));
        importer.ask("importPlain", "plain", exporter.descriptor("plain"));
        exporter.kill();
        useWithoutExporter(subject, importer);
      }
    }
  }

  /** A driver may take the memory away with its process; then it has to say so. */
  private static void useWithoutExporter(Subject subject, RemoteSharer importer) {
    try {
      assertThat(importer.holds("buffer", 1)).isTrue();
      assertThat(importer.holds("plain", 2)).isTrue();
      importer.ask("put", "buffer", 3);
      importer.ask("put", "plain", 4);
      assertThat(importer.holds("buffer", 3)).isTrue();
      assertThat(importer.holds("plain", 4)).isTrue();
      importer.closeAll("buffer", "plain", "pool");
    } catch (AssertionError refused) {
      if (subject.isSimulated() || !refused.getMessage().contains("CudaException")) {
        throw refused;
      }
      importer.kill(); // its context is lost with the memory
    }
  }

  @CudaTest
  void importFromAnExporterThatWasKilled_worksOrIsOneClearError(Subject subject, Peers peers) {
    Cuda cuda = subject.cuda();
    for (SharedPool kind : SharedPool.values()) {
      try (RemoteSharer exporter = RemoteSharer.start(peers, subject)) {
        exporter.ask("pool", "pool", kind);
        exporter.ask("allocate", "buffer", "pool", SIZE);
        exporter.ask("put", "buffer", 1);
        exporter.ask("allocatePlain", "plain", SIZE);
        exporter.ask("put", "plain", 2);
        BufferDescriptor buffer = exporter.descriptor("buffer");
        BufferDescriptor plain = exporter.descriptor("plain");
        try (AllocationHandle handle = exporter.exportPool("pool")) {
          exporter.kill();
          importOrRefuse(() -> {
            try (DriverPoolResource pool = kind.importFrom(cuda, handle);
                Buffer imported = SharedPool.importBuffer(pool, buffer)) {
              assertThat(Bytes.of(imported)).isEqualTo(Bytes.random(1, SIZE));
            }
          });
          importOrRefuse(() -> {
            try (Buffer imported = cuda.device(0).importBuffer(plain)) {
              assertThat(Bytes.of(imported)).isEqualTo(Bytes.random(2, SIZE));
            }
          });
          cuda.device(0).synchronize();
        }
      }
    }
  }

  private static void importOrRefuse(Runnable use) {
    try {
      use.run();
    } catch (CudaException e) {
      assertThat(e).hasMessageContaining("CUDA_ERROR");
    }
  }

  @CudaTest
  void importerIsKilled_andTheExporterGoesOn(Subject subject, Peers peers) {
    Cuda cuda = subject.cuda();
    for (SharedPool kind : SharedPool.values()) {
      long bytes = muchBytes(subject);
      try (DriverPoolResource pool = kind.create(cuda)) {
        try (Buffer buffer = pool.allocate(bytes);
            Buffer plain = MemoryResource.direct().allocate(bytes, cuda.currentStream());
            RemoteSharer importer = RemoteSharer.start(peers, subject)) {
          buffer.fill((byte) 1);
          plain.fill((byte) 2);
          importer.importPool("pool", kind, pool.allocationHandle());
          importer.ask("import", "buffer", "pool", buffer.descriptor());
          importer.ask("importPlain", "plain", plain.descriptor());
          importer.ask("stream", "stream");
          importer.ask("fillOn", "buffer", 3, "stream");
          importer.ask("finish", "stream");
          if (kind == SharedPool.DEVICE || cuda.isSimulated()) { // else the fill would wait
            importer.ask("gate", "gate", "stream");
            importer.ask("fillOn", "buffer", 4, "stream"); // never comes to it
          }
          importer.kill();
          assertThat(Bytes.of(buffer.slice(bytes - 1000))).containsOnly(3);
          assertThat(Bytes.of(plain.slice(bytes - 1000))).containsOnly(2);
          buffer.fill((byte) 5);
          assertThat(Bytes.of(buffer.slice(bytes - 1000))).containsOnly(5);
        }
        cuda.device(0).synchronize();
        assertThat(pool.attributes().usedMemCurrent()).isZero();
        pool.trimTo(0);
        assertThat(pool.attributes().reservedMemCurrent()).isZero();
      }
    }
  }

  @CudaTest
  void exporterExits_whileItsMemoryIsImported(Subject subject, Peers peers) {
    try (RemoteSharer exporter = RemoteSharer.start(peers, subject);
        RemoteSharer importer = RemoteSharer.start(peers, subject)) {
      exporter.ask("pool", "pool", SharedPool.DEVICE);
      exporter.ask("allocate", "buffer", "pool", SIZE);
      exporter.ask("put", "buffer", 1);
      exporter.ask("allocatePlain", "plain", SIZE);
      exporter.ask("put", "plain", 2);
      try (AllocationHandle handle = exporter.exportPool("pool")) {
        importer.importPool("pool", SharedPool.DEVICE, handle);
      }
      importer.ask("import", "buffer", "pool", exporter.descriptor("buffer"));
      importer.ask("importPlain", "plain", exporter.descriptor("plain"));
      exporter.exit();
      useWithoutExporter(subject, importer);
    }
  }
}
