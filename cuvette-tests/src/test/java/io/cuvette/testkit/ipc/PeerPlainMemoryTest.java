package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DriverPoolResource;
import io.cuvette.ManagedMemoryResource;
import io.cuvette.ManagedMemoryResourceOptions;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Peers;
import java.util.List;
import org.junit.jupiter.api.extension.ExtendWith;

/** Device memory without a pool of the driver, and what cannot be shared at all. */
@ExtendWith(Peers.Extension.class)
class PeerPlainMemoryTest {
  private static final int SIZE = 10_000;

  private static Buffer direct(Cuda cuda, long bytes) {
    return MemoryResource.direct().allocate(bytes, cuda.device(0).nullStream());
  }

  private static void put(Buffer buffer, long seed) {
    Bytes.put(buffer, Bytes.random(seed, Math.toIntExact(buffer.byteSize())));
  }

  private static byte[] pattern(long seed, long bytes) {
    return Bytes.random(seed, Math.toIntExact(bytes));
  }

  @CudaTest
  void allocation_isSharedBothWays(Subject subject, Peers peers) {
    try (Buffer mine = direct(subject.cuda(), SIZE);
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      put(mine, 1);
      assertThat(mine.descriptor().kind()).isEqualTo(BufferDescriptor.Kind.PLAIN);
      child.ask("importPlain", "yours", mine.descriptor());
      assertThat(child.holds("yours", 1)).isTrue();
      child.ask("put", "yours", 2);
      assertThat(Bytes.of(mine)).isEqualTo(pattern(2, SIZE));

      child.ask("allocatePlain", "theirs", SIZE);
      child.ask("put", "theirs", 3);
      CudaDevice device = subject.cuda().device(0);
      try (DeviceBuffer theirs = device.importBuffer(child.descriptor("theirs"))) {
        assertThat(theirs.isMapped()).isTrue();
        assertThat(theirs.byteSize()).isEqualTo(SIZE);
        assertThat(Bytes.of(theirs)).isEqualTo(pattern(3, SIZE));
        put(theirs, 4);
        assertThat(child.holds("theirs", 4)).isTrue();
      }
      device.synchronize();
      child.closeAll("yours", "theirs");
    }
  }

  @CudaTest
  void slice_isSharedAsItsPartOfTheAllocation(Subject subject, Peers peers) {
    try (Buffer buffer = direct(subject.cuda(), SIZE);
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      put(buffer, 1);
      byte[] content = Bytes.of(buffer);
      BufferDescriptor part = buffer.slice(1000).slice(234, 500).descriptor();
      assertThat(part.byteSize()).isEqualTo(500);
      child.ask("importPlain", "part", part);
      child.ask("importPlain", "all", buffer.descriptor());
      child.ask("slice", "mine", "all", 1234, 500);
      child.ask("put", "part", 2);
      assertThat(child.holds("mine", 2)).isTrue();
      System.arraycopy(pattern(2, 500), 0, content, 1234, 500);
      assertThat(Bytes.of(buffer)).isEqualTo(content);
      child.closeAll("all");
      assertThat(child.holds("part", 2)).as("the other import stays").isTrue();
      child.closeAll("part");
    }
  }

  @CudaTest
  void blocksOfTheCachingPool_areShared_eachAsItsPartOfTheChunk(Subject subject, Peers peers) {
    Cuda cuda = subject.cuda();
    try (Buffer one = cuda.allocate(SIZE);
        Buffer two = cuda.allocate(SIZE);
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      put(one, 1);
      put(two, 2);
      child.ask("importPlain", "one", one.descriptor());
      child.ask("importPlain", "two", two.descriptor());
      assertThat(child.holds("one", 1)).isTrue();
      assertThat(child.holds("two", 2)).isTrue();
      child.ask("put", "one", 11);
      assertThat(Bytes.of(one)).isEqualTo(pattern(11, SIZE));
      assertThat(Bytes.of(two)).isEqualTo(pattern(2, SIZE));
      child.closeAll("one", "two");
    }
  }

  @CudaTest
  void importedAllocation_isSharedOn(Subject subject, Peers peers) {
    try (Buffer buffer = direct(subject.cuda(), SIZE);
        RemoteSharer second = RemoteSharer.start(peers, subject);
        RemoteSharer third = RemoteSharer.start(peers, subject)) {
      put(buffer, 1);
      second.ask("importPlain", "buffer", buffer.descriptor());
      third.ask("importPlain", "buffer", second.descriptor("buffer"));
      third.ask("put", "buffer", 3);
      assertThat(second.holds("buffer", 3)).isTrue();
      assertThat(Bytes.of(buffer)).isEqualTo(pattern(3, SIZE));
      second.closeAll("buffer");
      third.closeAll("buffer");
    }
  }

  @CudaTest
  void fourThreads_importAndCloseTheSameAllocation_overAndOver(Subject subject, Peers peers)
      throws InterruptedException {
    CudaDevice device = subject.cuda().device(0);
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("allocatePlain", "buffer", SIZE);
      child.ask("put", "buffer", 1);
      BufferDescriptor descriptor = child.descriptor("buffer");
      Together.run(
          4,
          50,
          () -> {
            try (Buffer buffer = device.importBuffer(descriptor)) {
              assertThat(Bytes.of(buffer)).isEqualTo(pattern(1, SIZE));
            }
          });
      device.synchronize();
      assertThat(child.holds("buffer", 1)).isTrue();
      child.closeAll("buffer");
    }
  }

  @CudaTest
  void ownAllocation_isNotImported(Cuda cuda) {
    try (Buffer buffer = direct(cuda, SIZE)) {
      BufferDescriptor descriptor = buffer.descriptor();
      assertThatThrownBy(() -> cuda.device(0).importBuffer(descriptor))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @CudaTest
  void memoryThatCannotBeShared_saysSo(Cuda cuda) {
    CudaDevice device = cuda.device(0);
    try (Buffer pinned = cuda.allocatePinned(64);
        Buffer managed = MemoryResource.managed().allocate(64, device.nullStream());
        Buffer async = MemoryResource.async().allocate(64, device.nullStream());
        Buffer empty = cuda.allocate(0)) {
      for (Buffer buffer : List.of(pinned, managed, async, empty)) {
        assertRefused(buffer);
      }
    }
    Buffer closed = cuda.allocate(64);
    closed.close();
    assertThatThrownBy(closed::descriptor).isInstanceOf(IllegalStateException.class);
    device.synchronize();
  }

  private static void assertRefused(Buffer buffer) {
    assertThatThrownBy(buffer::descriptor)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("shared");
  }

  @CudaTest
  void poolsThatAreNotMadeForIt_sayThatTheyCannotBeShared(Cuda cuda, DeviceMemoryResource own) {
    CudaDevice device = cuda.device(0);
    try (DeviceMemoryResource current = new DeviceMemoryResource(device);
        PinnedMemoryResource pinned =
            new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS);
        ManagedMemoryResource managed =
            new ManagedMemoryResource(
                cuda, ManagedMemoryResourceOptions.DEFAULTS.withPreferredLocation(0))) {
      for (DriverPoolResource pool : List.of(own, current, pinned, managed)) {
        assertThat(pool.isIpcEnabled()).as("%s", pool).isFalse();
        assertThat(pool.isMapped()).isFalse();
        assertThat(pool.uuid()).isEmpty();
        assertThatThrownBy(pool::allocationHandle).isInstanceOf(IllegalStateException.class);
        try (Buffer buffer = pool.allocate(64)) {
          assertRefused(buffer);
        }
      }
      device.synchronize();
    }
  }
}
