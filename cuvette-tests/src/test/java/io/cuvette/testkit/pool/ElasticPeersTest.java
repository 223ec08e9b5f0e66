package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.GrowableBuffer;
import io.cuvette.MemoryResource;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemLocationType;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import java.util.List;

/** Memory of an elastic pool that other devices access. */
class ElasticPeersTest {
  private static final long MIB = 1L << 20;

  private static CudaDevice peer(Cuda cuda) {
    CudaDevice two = cuda.device(1);
    assumeTrue(two.canAccess(cuda.device(0)), "no peers");
    return two;
  }

  /** On a GPU all drivers of the process see the same addresses. */
  private static int access(Subject subject, long address, int device) {
    CudaDriver driver = subject.isSimulated() ? subject.simulator() : subject.driver();
    return driver.virtual().memGetAccess(address, MemLocationType.DEVICE, device);
  }

  private static void assertShared(Subject subject, Buffer buffer) {
    for (long at = 0; at < buffer.byteSize(); at += 2 * MIB) {
      assertThat(access(subject, buffer.address() + at, 0)).isEqualTo(MemAccessFlags.READ_WRITE);
      assertThat(access(subject, buffer.address() + at, 1)).isEqualTo(MemAccessFlags.READ_WRITE);
    }
    CudaDevice two = subject.cuda().device(1);
    CudaStream stream = two.nullStream();
    try (Buffer there = MemoryResource.direct().allocate(1000, stream)) {
      there.fill((byte) 9, stream);
      buffer.slice(buffer.byteSize() - 1000).copyFrom(there, stream);
      two.synchronize();
    }
    assertThat(Bytes.of(buffer.slice(buffer.byteSize() - 1000))).containsOnly(9);
  }

  @CudaTest(devices = 2)
  void peers_haveAccessToAllMemory_alsoToWhatIsMappedLater(Subject subject) {
    Cuda cuda = subject.cuda();
    CudaDevice two = peer(cuda);
    try (ElasticMemoryPool pool =
        new ElasticMemoryPool(cuda, ElasticPoolOptions.DEFAULTS.withPeers(two))) {
      for (long bytes : new long[] {1000, 70 * MIB, 3 * MIB}) { // pieces of several sizes
        try (Buffer buffer = pool.allocate(bytes)) {
          assertShared(subject, buffer);
        }
        cuda.device(0).synchronize();
        assertThat(pool.freeAllBlocks()).isPositive();
      }
    }
  }

  @CudaTest(devices = 2)
  void othersHaveNone(Subject subject) {
    Cuda cuda = subject.cuda();
    peer(cuda);
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
        Buffer buffer = pool.allocate(100)) {
      assertThat(access(subject, buffer.address(), 0)).isEqualTo(MemAccessFlags.READ_WRITE);
      assertThat(access(subject, buffer.address(), 1)).isEqualTo(MemAccessFlags.NONE);
    }
  }

  /** As the driver copies between devices: each with access to its own memory. */
  @CudaTest(devices = 2)
  void memoryOfOneDeviceAlone_isCopiedToAnother_andBack(Cuda cuda) {
    int bytes = 100_000;
    for (CudaDevice near : List.of(cuda.device(0), cuda.device(1))) {
      CudaDevice far = cuda.device(1 - near.id());
      try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
          CudaStream stream = near.createStream();
          CudaStream there = far.createStream();
          GrowableBuffer growable = near.growable(4 * MIB)) {
        growable.grow(bytes);
        for (Buffer buffer : List.of(pool.allocate(bytes, stream), growable.slice(0, bytes))) {
          assertCopied(buffer, stream, MemoryResource.direct().allocate(bytes, there), there);
          assertCopied(buffer, stream, MemoryResource.async().allocate(bytes, there), there);
          assertCopied(buffer, stream, pool.allocate(bytes, there), there);
          buffer.close();
        }
      }
    }
  }

  private static void assertCopied(Buffer one, CudaStream near, Buffer other, CudaStream far) {
    one.fill((byte) 1, near);
    far.waitFor(near);
    other.copyFrom(one, far);
    far.synchronize();
    assertThat(Bytes.of(other)).containsOnly(1);
    other.fill((byte) 2, far);
    near.waitFor(far);
    one.copyFrom(other, near);
    near.synchronize();
    assertThat(Bytes.of(one)).containsOnly(2);
    other.close();
  }

  @CudaTest(devices = 2, peers = "none")
  void peersThatCannot_areRefusedBeforeAnythingIsMade(Subject subject) {
    Cuda cuda = subject.cuda();
    ElasticPoolOptions options = ElasticPoolOptions.DEFAULTS.withPeers(cuda.device(1));
    assertThatThrownBy(() -> new ElasticMemoryPool(cuda, options))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("cannot access");
  }
}
