package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AllocationHandle;
import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.DriverPoolResource;
import io.cuvette.EventDescriptor;
import io.cuvette.EventOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.HeldBySystem;
import io.cuvette.testkit.support.Peers;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.Function;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** What is no descriptor, or of other memory than it claims: one clear error, and nothing leaks. */
@ExtendWith(Peers.Extension.class)
class BadDescriptorTest {
  private static final int SIZE = 12_345;
  private static final DescriptorCalls CALLS = DescriptorCalls.find().orElseThrow();

  private static void assertRefused(ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfAny(IllegalArgumentException.class, CudaException.class)
        .message()
        .isNotBlank();
  }

  /** Runs once to load what it needs, then twice while descriptors and pools are counted. */
  private static void assertNothingLeaks(Runnable work) throws IOException {
    work.run();
    int before = HeldBySystem.descriptors();
    Map<String, Integer> kinds = HeldBySystem.kinds();
    work.run();
    work.run();
    assertThat(HeldBySystem.descriptors())
        .as(() -> "of %s, before %s".formatted(HeldBySystem.kinds(), kinds))
        .isLessThanOrEqualTo(before);
  }

  @CudaTest
  void numberThatIsNoOpenDescriptor_isNoPool(Cuda cuda) throws IOException {
    int closed = CALLS.memoryFile("closed", 1);
    CALLS.close(closed);
    assertNothingLeaks(() -> {
      for (SharedPool kind : SharedPool.values()) {
        for (int number : new int[] {-1, Integer.MIN_VALUE, Integer.MAX_VALUE, closed}) {
          assertThatThrownBy(() -> kind.importFrom(cuda, number).close())
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining(Integer.toString(number));
          assertThatThrownBy(() -> AllocationHandle.of(number).close())
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining(Integer.toString(number));
        }
      }
    });
  }

  @CudaTest
  void descriptorOfSomethingElse_isNoPool_andStaysOpen(Cuda cuda, @TempDir Path folder)
      throws IOException {
    Path file = Files.writeString(folder.resolve("plain-file"), "no pool");
    List<Integer> others =
        List.of(
            CALLS.memoryFile("empty", 0),
            CALLS.memoryFile("zeros", 1 << 16),
            CALLS.listen(folder.resolve("socket").toString()));
    try (var plain = Files.newByteChannel(file);
        var device = Files.newByteChannel(Path.of("/dev/zero"))) {
      assertThat(plain.isOpen() && device.isOpen()).isTrue();
      assertNothingLeaks(() -> {
        for (SharedPool kind : SharedPool.values()) {
          others.forEach(each -> assertNoPool(cuda, kind, each));
          assertNoPool(cuda, kind, HeldBySystem.descriptorOf(file));
          assertNoPool(cuda, kind, HeldBySystem.descriptorOf(Path.of("/dev/zero")));
        }
      });
    }
    others.forEach(CALLS::close);
  }

  private static void assertNoPool(Cuda cuda, SharedPool kind, int descriptor) {
    assertThatThrownBy(() -> kind.importFrom(cuda, descriptor).close())
        .isInstanceOf(CudaException.class);
    try (AllocationHandle handle = AllocationHandle.of(CALLS.duplicate(descriptor))) {
      assertThatThrownBy(() -> kind.importFrom(cuda, handle).close())
          .isInstanceOf(CudaException.class);
    }
    assertThat(CALLS.isOpen(descriptor)).isTrue();
  }

  @CudaTest
  void handleThatWasClosed_isNoPool(Cuda cuda) {
    for (SharedPool kind : SharedPool.values()) {
      DriverPoolResource pool = kind.create(cuda);
      AllocationHandle own = pool.allocationHandle();
      AllocationHandle copy = own.duplicate();
      copy.close();
      assertThatThrownBy(() -> kind.importFrom(cuda, copy))
          .isInstanceOf(IllegalStateException.class);
      pool.close();
      assertThatThrownBy(own::descriptor).isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(pool::allocationHandle).isInstanceOf(IllegalStateException.class);
    }
  }

  @CudaTest
  void bytesThatAreNoDescriptor_areRefused(Subject subject) {
    Cuda cuda = subject.cuda();
    try (DriverPoolResource pool = SharedPool.DEVICE.create(cuda);
        Buffer buffer = pool.allocate(SIZE);
        CudaEvent event =
            cuda.device(0).createEvent(EventOptions.ORDER_ONLY.withInterprocess(true))) {
      byte[] ofBuffer = buffer.descriptor().toBytes();
      byte[] ofEvent = event.descriptor().toBytes();
      assertThat(BufferDescriptor.fromBytes(ofBuffer)).isEqualTo(buffer.descriptor());
      assertThat(EventDescriptor.fromBytes(ofEvent)).isEqualTo(event.descriptor());
      assertMalformed(BufferDescriptor::fromBytes, ofBuffer, subject.random());
      assertMalformed(EventDescriptor::fromBytes, ofEvent, subject.random());
      assertMalformed(BufferDescriptor::fromBytes, ofEvent);
      assertMalformed(EventDescriptor::fromBytes, ofBuffer);
    }
    cuda.device(0).synchronize();
  }

  /** Truncated, too long, with any one bit wrong, or random. */
  private static void assertMalformed(
      Function<byte[], ?> read, byte[] right, SplittableRandom random) {
    for (int length = 0; length < right.length; length++) {
      assertMalformed(read, Arrays.copyOf(right, length));
    }
    assertMalformed(read, Arrays.copyOf(right, right.length + 1));
    assertMalformed(read, Arrays.copyOf(right, 1 << 20));
    for (int bit = 0; bit < right.length * Byte.SIZE; bit++) {
      byte[] wrong = right.clone();
      wrong[bit / Byte.SIZE] ^= (byte) (1 << bit % Byte.SIZE);
      assertMalformed(read, wrong);
    }
    for (int i = 0; i < 100; i++) {
      byte[] wrong = new byte[right.length];
      random.nextBytes(wrong);
      assertMalformed(read, wrong);
    }
  }

  private static void assertMalformed(Function<byte[], ?> read, byte[] bytes) {
    assertThatThrownBy(() -> read.apply(bytes)).isInstanceOf(IllegalArgumentException.class);
  }

  @CudaTest
  void descriptorThatClaimsTooMuch_isRefused(Subject subject, Peers peers) throws IOException {
    for (SharedPool kind : SharedPool.values()) {
      try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
        child.ask("pool", "pool", kind);
        child.ask("allocate", "buffer", "pool", SIZE);
        child.ask("put", "buffer", 1);
        BufferDescriptor right = child.descriptor("buffer");
        try (AllocationHandle handle = child.exportPool("pool");
            DriverPoolResource pool = kind.importFrom(subject.cuda(), handle)) {
          assertNothingLeaks(() -> {
            assertTooMuch(wrong -> SharedPool.importBuffer(pool, wrong), right);
            assertHolds(SharedPool.importBuffer(pool, right), 1);
          });
          subject.cuda().device(0).synchronize();
        }
        child.closeAll("buffer", "pool");
      }
    }
  }

  @CudaTest
  void plainDescriptorThatClaimsTooMuch_isRefused(Subject subject, Peers peers) throws IOException {
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("allocatePlain", "buffer", SIZE);
      child.ask("put", "buffer", 1);
      BufferDescriptor right = child.descriptor("buffer");
      assertNothingLeaks(() -> {
        assertTooMuch(wrong -> subject.cuda().device(0).importBuffer(wrong), right);
        assertHolds(subject.cuda().device(0).importBuffer(right), 1);
      });
      child.closeAll("buffer");
    }
  }

  /** By far more than any driver rounds an allocation up to. */
  private static void assertTooMuch(
      Function<BufferDescriptor, Buffer> read, BufferDescriptor right) {
    long large = 1L << 40;
    for (BufferDescriptor wrong :
        List.of(
            Tampered.withRange(right, right.offset(), large),
            Tampered.withRange(right, right.offset(), Long.MAX_VALUE - right.offset()),
            Tampered.withRange(right, right.offset() + large, 1),
            Tampered.withRange(right, Long.MAX_VALUE - 1, 1))) {
      assertThatThrownBy(() -> read.apply(wrong).close())
          .isInstanceOf(IllegalArgumentException.class);
    }
    assertThatThrownBy(() -> Tampered.withRange(right, -1, SIZE))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Tampered.withRange(right, 0, 0))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> Tampered.withRange(right, 2, Long.MAX_VALUE))
        .isInstanceOf(IllegalArgumentException.class);
  }

  private static void assertHolds(Buffer buffer, long seed) {
    try (buffer) {
      assertThat(Bytes.of(buffer)).isEqualTo(Bytes.random(seed, SIZE));
    }
  }

  /** A pool's own descriptor does not say what it is of, and a buffer's can lie. */
  @CudaTest
  void kindThatIsNotTrue_isRefused_andThePoolGoesOn(Subject subject, Peers peers)
      throws IOException {
    for (SharedPool kind : SharedPool.values()) {
      try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
        child.ask("pool", "pool", kind);
        child.ask("allocate", "buffer", "pool", SIZE);
        child.ask("put", "buffer", 1);
        BufferDescriptor right = child.descriptor("buffer");
        BufferDescriptor.Kind other =
            right.kind() == BufferDescriptor.Kind.HOST_POOL
                ? BufferDescriptor.Kind.DEVICE_POOL
                : BufferDescriptor.Kind.HOST_POOL;
        BufferDescriptor lie = Tampered.withKind(right, other);
        BufferDescriptor plain = Tampered.withKind(right, BufferDescriptor.Kind.PLAIN);
        try (AllocationHandle handle = child.exportPool("pool");
            DriverPoolResource pool = kind.importFrom(subject.cuda(), handle)) {
          assertNothingLeaks(() -> {
            try (DriverPoolResource wrong =
                kind.other().importFrom(subject.cuda(), handle.descriptor())) {
              assertRefused(() -> SharedPool.importBuffer(wrong, lie).close());
              assertRefused(() -> SharedPool.importBuffer(wrong, right).close());
            } catch (CudaException e) {
              assertThat(e).hasMessageContaining("CUDA_ERROR"); // a driver that tells them apart
            }
            assertRefused(() -> SharedPool.importBuffer(pool, lie).close());
            assertRefused(() -> subject.cuda().device(0).importBuffer(plain).close());
            assertHolds(SharedPool.importBuffer(pool, right), 1);
            subject.cuda().device(0).synchronize();
          });
        }
        child.closeAll("buffer", "pool");
      }
    }
  }

  @CudaTest
  void handlesMadeUp_areRefused(Subject subject, Peers peers) throws IOException {
    Cuda cuda = subject.cuda();
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("pool", "pool", SharedPool.DEVICE);
      child.ask("allocate", "buffer", "pool", SIZE);
      child.ask("allocatePlain", "plain", SIZE);
      child.ask("event", "event");
      BufferDescriptor buffer = child.descriptor("buffer");
      BufferDescriptor plain = child.descriptor("plain");
      EventDescriptor event = child.eventDescriptor("event");
      try (AllocationHandle handle = child.exportPool("pool");
          DriverPoolResource pool = SharedPool.DEVICE.importFrom(cuda, handle)) {
        SplittableRandom random = subject.random();
        assertNothingLeaks(() -> {
          for (int i = 0; i < 50; i++) {
            assertRefused(
                () -> SharedPool.importBuffer(pool, Tampered.withHandle(buffer, random)).close());
            assertRefused(
                () -> cuda.device(0).importBuffer(Tampered.withHandle(plain, random)).close());
            assertRefused(
                () -> cuda.device(0).importEvent(Tampered.withHandle(event, random)).close());
          }
        });
        cuda.device(0).synchronize();
      }
      child.closeAll("buffer", "plain", "event", "pool");
    }
  }

  /** A handle that still means something may give other bytes of the pool, but nothing beyond. */
  @CudaTest(simulatedOnly = true)
  void handleWithAWrongBit_isRefused_orOfTheSamePool(Subject subject, Peers peers)
      throws IOException {
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("pool", "pool", SharedPool.DEVICE);
      child.ask("allocate", "buffer", "pool", SIZE);
      BufferDescriptor right = child.descriptor("buffer");
      try (AllocationHandle handle = child.exportPool("pool");
          DriverPoolResource pool = SharedPool.DEVICE.importFrom(subject.cuda(), handle)) {
        assertNothingLeaks(() -> {
          for (int bit = 0; bit < 512; bit++) {
            try (Buffer buffer = SharedPool.importBuffer(pool, Tampered.withBit(right, bit))) {
              assertThat(Bytes.of(buffer)).hasSize(SIZE);
            } catch (IllegalArgumentException | CudaException e) {
              assertThat(e).hasMessageNotContaining("sanitizer");
            }
          }
        });
        subject.cuda().device(0).synchronize();
      }
      child.closeAll("buffer", "pool");
    }
  }

  /** Drivers leave it open what a handle of freed memory gives. */
  @CudaTest(simulatedOnly = true)
  void descriptorOfMemoryThatWasFreed_isRefused(Subject subject, Peers peers) {
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("pool", "pool", SharedPool.DEVICE);
      child.ask("allocate", "buffer", "pool", SIZE);
      child.ask("allocatePlain", "plain", SIZE);
      BufferDescriptor buffer = child.descriptor("buffer");
      BufferDescriptor plain = child.descriptor("plain");
      try (AllocationHandle handle = child.exportPool("pool");
          DriverPoolResource pool = SharedPool.DEVICE.importFrom(subject.cuda(), handle)) {
        child.closeAll("buffer", "plain");
        assertRefused(() -> SharedPool.importBuffer(pool, buffer).close());
        assertRefused(() -> subject.cuda().device(0).importBuffer(plain).close());
        subject.cuda().device(0).synchronize();
      }
      child.closeAll("pool");
    }
  }
}
