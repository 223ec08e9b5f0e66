package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AllocationHandle;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Peers;
import org.junit.jupiter.api.Assumptions;

/** The contract with device memory, whose pools have peers. */
class PeerDevicePoolTest extends PeerPoolContract {
  PeerDevicePoolTest() {
    super(SharedPool.DEVICE);
  }

  @CudaTest
  void importedBuffer_isADeviceBuffer(Subject subject, Peers peers) {
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("pool", "pool", kind);
      child.ask("allocate", "buffer", "pool", 64);
      child.ask("put", "buffer", 1);
      CudaDevice device = subject.cuda().device(0);
      try (AllocationHandle handle = child.exportPool("pool");
          DeviceMemoryResource pool = DeviceMemoryResource.fromAllocationHandle(device, handle);
          DeviceBuffer buffer = pool.importBuffer(child.descriptor("buffer"))) {
        assertThat(pool.deviceId()).isZero();
        assertThat(buffer.device()).isEqualTo(device);
        assertThat(buffer.isHostAccessible()).isFalse();
        assertHolds(buffer, 1);
      }
      device.synchronize();
      child.closeAll("buffer", "pool");
    }
  }

  @CudaTest(devices = 2)
  void accessOfPeers_isNotImported_andIsGivenAnew(Subject subject, Peers peers) {
    Cuda cuda = subject.cuda();
    CudaDevice second = cuda.device(1);
    Assumptions.assumeTrue(second.canAccess(cuda.device(0)), "the devices are no peers");
    try (DeviceMemoryResource pool =
            new DeviceMemoryResource(
                cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true));
        Buffer buffer = filled(pool, 1);
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      pool.peerAccessibleBy().add(second);
      child.importPool("pool", kind, pool.allocationHandle());
      assertThat(child.ask("peers", "pool")).isEqualTo("[]");
      child.ask("import", "buffer", "pool", buffer.descriptor());
      child.ask("allowPeer", "pool", 1);
      assertThat(child.ask("peers", "pool")).isEqualTo("[device 1]");
      assertThat(child.holds("buffer", 1)).isTrue();
      pool.peerAccessibleBy().clear();
      assertThat(child.ask("peers", "pool")).isEqualTo("[device 1]");
      child.closeAll("buffer", "pool");
    }
  }

  @CudaTest(devices = 2)
  void memoryOfTheSecondDevice_isSharedAsThat(Subject subject, Peers peers) {
    CudaDevice second = subject.cuda().device(1);
    DeviceMemoryResourceOptions options = DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true);
    try (DeviceMemoryResource pool = new DeviceMemoryResource(second, options);
        CudaStream stream = second.createStream();
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      try (Buffer buffer = pool.allocate(1000, stream)) {
        buffer.fill((byte) 5, stream);
        stream.synchronize();
        child.importPoolOf(1, "pool", pool.allocationHandle());
        child.ask("import", "buffer", "pool", buffer.descriptor());
        assertThat(child.ask("deviceOf", "buffer")).isEqualTo("1");
        child.ask("put", "buffer", 3);
        assertThat(Bytes.of(buffer)).isEqualTo(Bytes.random(3, 1000));
        child.closeAll("buffer", "pool");
      }
      stream.synchronize();
    }
  }
}
