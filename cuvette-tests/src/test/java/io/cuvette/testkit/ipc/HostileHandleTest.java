package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.CudaEvent;
import io.cuvette.DriverPoolResource;
import io.cuvette.EventOptions;
import io.cuvette.MemoryResource;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Peers;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.extension.ExtendWith;

/**
 * Handles with one bit changed, each bit in turn, imported by another process, which must not end:
 * each is refused, or of the same allocation, which stays to the last. The bit that ends a process
 * is named, and the next one goes on with the bits behind it.
 */
@ExtendWith(Peers.Extension.class)
class HostileHandleTest {
  private static final int SIZE = 12_345;
  private static final int HANDLE_BITS = 512;

  /** So many processes may end before the rest of the bits is left out. */
  private static final int MOST_ENDS = 6;

  /** What an importer does for each bit. */
  private interface Attempt {
    /** Has the importer import something, and close it if it could. */
    boolean isTaken(RemoteSharer importer, int bit);
  }

  /** The importer has what it imported right, and memory of its own. */
  @CudaTest
  void memoryOfAPool_besideTheSameImportedRight(Subject subject, Peers peers) {
    try (DriverPoolResource pool = SharedPool.DEVICE.create(subject.cuda());
        Buffer buffer = pool.allocate(SIZE);
        Buffer _ = pool.allocate(SIZE)) {
      Bytes.put(buffer, Bytes.random(1, SIZE));
      BufferDescriptor right = buffer.descriptor();
      int taken =
          attempt(
              subject,
              peers,
              pool,
              (importer, bit) -> {
                importer.ask("import", "right", "pool", right);
                boolean accepted =
                    isTaken(importer, "import", "pool", altered(subject, right, bit));
                assertThat(importer.holds("right", 1)).as("the other import, bit %d", bit).isTrue();
                importer.closeAll("right");
                return accepted;
              });
      assertThat(taken).as("bits that no driver reads").isPositive();
    }
    subject.cuda().device(0).synchronize();
  }

  @CudaTest
  void memoryOfAPool_alone(Subject subject, Peers peers) {
    try (DriverPoolResource pool = SharedPool.DEVICE.create(subject.cuda());
        Buffer buffer = pool.allocate(SIZE)) {
      BufferDescriptor right = buffer.descriptor();
      attempt(
          subject,
          peers,
          pool,
          (importer, bit) -> isTaken(importer, "import", "pool", altered(subject, right, bit)));
    }
    subject.cuda().device(0).synchronize();
  }

  @CudaTest
  void plainMemory_besideTheSameImportedRight(Subject subject, Peers peers) {
    try (DriverPoolResource pool = SharedPool.DEVICE.create(subject.cuda());
        Buffer plain = MemoryResource.direct().allocate(SIZE, subject.cuda().currentStream())) {
      Bytes.put(plain, Bytes.random(1, SIZE));
      BufferDescriptor right = plain.descriptor();
      int taken =
          attempt(
              subject,
              peers,
              pool,
              (importer, bit) -> {
                importer.ask("importPlain", "right", right);
                boolean accepted = isTaken(importer, "importPlain", altered(subject, right, bit));
                assertThat(importer.holds("right", 1)).as("the other import, bit %d", bit).isTrue();
                importer.closeAll("right");
                return accepted;
              });
      assertThat(taken).as("bits that no driver reads").isPositive();
    }
  }

  @CudaTest
  void plainMemory_alone(Subject subject, Peers peers) {
    try (DriverPoolResource pool = SharedPool.DEVICE.create(subject.cuda());
        Buffer plain = MemoryResource.direct().allocate(SIZE, subject.cuda().currentStream())) {
      BufferDescriptor right = plain.descriptor();
      attempt(
          subject,
          peers,
          pool,
          (importer, bit) -> isTaken(importer, "importPlain", altered(subject, right, bit)));
    }
  }

  @CudaTest
  void event(Subject subject, Peers peers) {
    try (DriverPoolResource pool = SharedPool.DEVICE.create(subject.cuda());
        CudaEvent event =
            subject.cuda().device(0).createEvent(EventOptions.ORDER_ONLY.withInterprocess(true))) {
      attempt(
          subject,
          peers,
          pool,
          (importer, bit) ->
              isTaken(importer, "importEvent", Tampered.withBit(event.descriptor(), bit)));
    }
  }

  private static BufferDescriptor altered(Subject subject, BufferDescriptor right, int bit) {
    return subject.cuda().isSimulated()
        ? Tampered.withSimulatedBit(right, bit)
        : Tampered.withBit(right, bit);
  }

  /** How many bits were accepted. */
  private static int attempt(
      Subject subject, Peers peers, DriverPoolResource pool, Attempt attempt) {
    List<String> ends = new ArrayList<>();
    int taken = 0;
    int bit = 0;
    while (bit < HANDLE_BITS && ends.size() < MOST_ENDS) {
      try (RemoteSharer importer = RemoteSharer.start(peers, subject)) {
        try {
          importer.importPool("pool", SharedPool.DEVICE, pool.allocationHandle());
          importer.ask("allocatePlain", "own", SIZE);
          importer.ask("put", "own", 3);
          for (; bit < HANDLE_BITS; bit++) {
            taken += attempt.isTaken(importer, bit) ? 1 : 0;
            assertThat(importer.holds("own", 3)).as("what is its own, bit %d", bit).isTrue();
          }
          importer.closeAll("own", "pool");
        } catch (AssertionError e) {
          importer.kill();
          if (!isEnd(e)) {
            throw e;
          }
          ends.add("bit %d (byte %d): %s".formatted(bit, bit / Byte.SIZE, e.getMessage()));
          bit++;
        }
      }
    }
    if (!subject.isSimulated()) {
      assumeThat(ends).as("processes that the driver itself ended").isEmpty();
    }
    assertThat(ends).as("processes that were ended").isEmpty();
    return taken;
  }

  /** Also what a JVM says when it crashes. */
  private static boolean isEnd(AssertionError e) {
    String message = String.valueOf(e.getMessage());
    return message.contains("the second JVM has ended")
        || message.contains("said nothing (expected: a line), but #");
  }

  /** Whether the other process imports something, which it closes then. */
  private static boolean isTaken(RemoteSharer importer, String verb, Object... words) {
    List<Object> line = new ArrayList<>(List.of(verb, "altered"));
    line.addAll(List.of(words));
    importer.tell(line.toArray());
    try {
      importer.answer();
    } catch (AssertionError refused) {
      if (isEnd(refused)) {
        throw refused;
      }
      assertThat(refused)
          .hasMessageMatching(
              "(?s)refused .*(IllegalArgumentException|CudaException|IllegalState).*");
      return false;
    }
    close(importer);
    return true;
  }

  /** A driver may refuse to free at an address that it has given for a handle like that. */
  private static void close(RemoteSharer importer) {
    try {
      importer.closeAll("altered");
    } catch (AssertionError refused) {
      if (isEnd(refused)) {
        throw refused;
      }
      assertThat(refused).hasMessageContaining("CudaException: cuMemFreeAsync");
    }
  }
}
