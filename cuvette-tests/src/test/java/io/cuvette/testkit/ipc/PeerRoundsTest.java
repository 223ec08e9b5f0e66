package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AllocationHandle;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.DriverPoolResource;
import io.cuvette.EventOptions;
import io.cuvette.MemoryResource;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.HeldBySystem;
import io.cuvette.testkit.support.Peers;
import java.io.IOException;
import org.junit.jupiter.api.extension.ExtendWith;

/** Sharing leaves nothing behind, however often: no descriptor, no mapping, no memory. */
@ExtendWith(Peers.Extension.class)
class PeerRoundsTest {
  private static final int ROUNDS = 250;

  /** The rounds before the first count, in which classes are loaded and caches filled. */
  private static final int FIRST = 50;

  /** Far less than one for each round; the collector and the compiler open and map some. */
  private static final int FEW_DESCRIPTORS = 5;

  private static final int FEW_MAPPINGS = 100;
  private static final long SIZE = 1 << 20;
  private static final long FEW_BYTES = 64 << 20;

  private record Held(long descriptors, long mappings, long freeBytes, String kinds) {
    static Held here(CudaDevice device) throws IOException {
      device.synchronize();
      return new Held(
          HeldBySystem.descriptors(),
          HeldBySystem.mappings().size(),
          device.memoryInfo().freeBytes(),
          HeldBySystem.kinds().toString());
    }

    static Held there(RemoteSharer child) {
      child.ask("synchronize");
      return new Held(
          Long.parseLong(child.ask("descriptors")),
          Long.parseLong(child.ask("mappings")),
          Long.parseLong(child.ask("free")),
          child.ask("kinds"));
    }

    void assertNotGrown(Held before) {
      assertThat(descriptors)
          .as("descriptors of %s", kinds)
          .isLessThanOrEqualTo(before.descriptors + FEW_DESCRIPTORS);
      assertThat(mappings).isLessThanOrEqualTo(before.mappings + FEW_MAPPINGS);
      assertThat(freeBytes).isGreaterThanOrEqualTo(before.freeBytes - FEW_BYTES);
    }
  }

  @FunctionalInterface
  private interface Round {
    void run(int number) throws Exception;
  }

  private static void repeat(Subject subject, RemoteSharer child, Round round) throws Exception {
    CudaDevice device = subject.cuda().device(0);
    Held here = null;
    Held there = null;
    for (int i = 0; i < ROUNDS; i++) {
      round.run(i);
      if (i == FIRST) {
        here = Held.here(device);
        there = Held.there(child);
      }
    }
    Held.here(device).assertNotGrown(here);
    Held.there(child).assertNotGrown(there);
  }

  @CudaTest
  void poolsBuffersAndEvents_ofThisProcess(Subject subject, Peers peers) throws Exception {
    Cuda cuda = subject.cuda();
    EventOptions shared = EventOptions.ORDER_ONLY.withInterprocess(true);
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      repeat(
          subject,
          child,
          i -> {
            SharedPool kind = SharedPool.values()[i % 2];
            try (DriverPoolResource pool = kind.create(cuda);
                Buffer buffer = pool.allocate(SIZE);
                CudaEvent event = cuda.device(0).createEvent(shared)) {
              buffer.fill((byte) i);
              child.importPool("pool", kind, pool.allocationHandle());
              child.ask("import", "buffer", "pool", buffer.descriptor());
              child.ask("importEvent", "event", event.descriptor());
              assertThat(child.ask("lastByte", "buffer")).isEqualTo(Byte.toString((byte) i));
              child.closeAll("buffer", "pool", "event");
            }
          });
    }
  }

  @CudaTest
  void poolsBuffersAndEvents_ofTheOtherProcess(Subject subject, Peers peers) throws Exception {
    Cuda cuda = subject.cuda();
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      repeat(
          subject,
          child,
          i -> {
            SharedPool kind = SharedPool.values()[i % 2];
            child.ask("pool", "pool", kind);
            child.ask("allocate", "buffer", "pool", SIZE);
            child.ask("event", "event");
            try (AllocationHandle handle = child.exportPool("pool");
                DriverPoolResource pool = kind.importFrom(cuda, handle);
                Buffer buffer = SharedPool.importBuffer(pool, child.descriptor("buffer"));
                CudaEvent _ = cuda.device(0).importEvent(child.eventDescriptor("event"))) {
              buffer.fill((byte) i);
              assertThat(child.ask("lastByte", "buffer")).isEqualTo(Byte.toString((byte) i));
            }
            cuda.device(0).synchronize();
            child.closeAll("buffer", "pool", "event");
          });
    }
  }

  @CudaTest
  void buffersOfOnePool_andPlainOnes(Subject subject, Peers peers) throws Exception {
    Cuda cuda = subject.cuda();
    try (DriverPoolResource pool = SharedPool.DEVICE.create(cuda);
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.importPool("pool", SharedPool.DEVICE, pool.allocationHandle());
      repeat(
          subject,
          child,
          i -> {
            try (Buffer buffer = pool.allocate(SIZE);
                Buffer plain = MemoryResource.direct().allocate(SIZE, cuda.currentStream())) {
              buffer.fill((byte) i);
              plain.fill((byte) -i);
              child.ask("import", "buffer", "pool", buffer.descriptor());
              child.ask("importPlain", "plain", plain.descriptor());
              assertThat(child.ask("lastByte", "buffer")).isEqualTo(Byte.toString((byte) i));
              assertThat(child.ask("lastByte", "plain")).isEqualTo(Byte.toString((byte) -i));
              child.closeAll("buffer", "plain");
            }
          });
      child.closeAll("pool");
      cuda.device(0).synchronize();
      assertThat(pool.attributes().usedMemCurrent()).isZero();
    }
  }
}
