package io.cuvette.testkit.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.PoolOptions;
import io.cuvette.Scope;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Capture;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;

/**
 * Copies between the host and memory of a driver's pool, on streams of a device that has no access
 * to the pool.
 */
class KeptOutCopyTest {
  private static final int BYTES = 300_000;

  static DeviceMemoryResource poolOf(CudaDevice device) {
    return new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS);
  }

  private static ManagedBuffer managedOf(CudaDevice device) {
    try (Scope _ = device.use()) {
      return device.cuda().allocateManaged(BYTES);
    }
  }

  private static PinnedBuffer pinnedOf(CudaDevice device) {
    try (Scope _ = device.use()) {
      return device.cuda().allocatePinned(BYTES);
    }
  }

  /** What the stream did before is what is copied, and what it does later does not change it. */
  @CudaTest(devices = 2, seeds = 20)
  void copies_areInOrderOfTheirStream(
      Cuda cuda, DeviceMemoryResource pool, @OnDevice(1) @NonBlocking CudaStream made) {
    CudaDevice other = cuda.device(1);
    try (DeviceBuffer memory = pool.allocate(BYTES);
        ManagedBuffer from = managedOf(other);
        ManagedBuffer to = managedOf(other)) {
      cuda.device(0).synchronize();
      for (CudaStream stream : List.of(made, other.nullStream(), other.perThreadStream())) {
        from.fill((byte) 1, stream);
        memory.copyFrom(from, stream);
        from.fill((byte) 2, stream);
        memory.copyTo(to, stream);
        memory.copyFrom(from, stream);
        to.slice(0, 10).fill((byte) 3, stream);
        stream.synchronize();
        assertThat(Bytes.of(to.slice(0, 10))).as("%s", stream).containsOnly(3);
        assertThat(Bytes.of(to.slice(10))).as("%s", stream).containsOnly(1);
        assertThat(Bytes.of(memory)).as("%s", stream).containsOnly(2);
      }
    }
  }

  @CudaTest(devices = 2, seeds = 3)
  void everyKindOfHostMemory_goesInAndOut(
      Cuda cuda, DeviceMemoryResource pool, @OnDevice(1) CudaStream stream) {
    CudaDevice other = cuda.device(1);
    try (PinnedMemoryResource hostPool =
            new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS.withNumaId(0));
        DeviceBuffer memory = pool.allocate(BYTES);
        Buffer managed = managedOf(other);
        Buffer pinned = pinnedOf(other);
        Buffer fromPool = hostPool.allocate(BYTES, stream)) {
      cuda.devices().forEach(CudaDevice::synchronize);
      for (Buffer host : List.of(managed, pinned, fromPool)) {
        throughHost(memory, host, stream);
      }
    }
    cuda.devices().forEach(CudaDevice::synchronize);
  }

  private static void throughHost(Buffer memory, Buffer host, CudaStream stream) {
    byte[] sent = Bytes.random(5, BYTES);
    Bytes.put(host, sent);
    memory.slice(0, 100).fill((byte) 0);
    memory.slice(100, BYTES - 100).copyFrom(host.slice(0, BYTES - 100), stream);
    host.fill((byte) 0, stream);
    memory.slice(100, 1000).copyTo(host, stream);
    stream.synchronize();
    assertThat(Bytes.of(host.slice(0, 1000))).as("%s", host).isEqualTo(first(sent, 1000));
    assertThat(Bytes.of(host.slice(1000))).as("%s", host).containsOnly(0);
    host.fill((byte) 0);
    host.copyFrom(memory);
    assertThat(Bytes.of(host.slice(100)))
        .as("%s, waiting", host)
        .isEqualTo(first(sent, BYTES - 100));
  }

  private static byte[] first(byte[] all, int count) {
    return Arrays.copyOf(all, count);
  }

  @CudaTest(devices = 2)
  void memoryFromAPool_isFoundWhoeverHandsItOut(
      Cuda cuda, DeviceMemoryResource pool, AsyncMemoryPool async, @OnDevice(1) CudaStream stream) {
    CudaDevice owner = cuda.device(0);
    PoolOptions options = PoolOptions.DEFAULTS.withUpstream(MemoryResource.async());
    try (MemoryPool caching = new MemoryPool(cuda, options);
        Buffer host = pinnedOf(cuda.device(1));
        Buffer memory = pool.allocate(BYTES, owner.nullStream());
        Buffer wrapped = cuda.wrap(memory.address(), BYTES, memory);
        Buffer adopted = owner.adopt(memory.address(), BYTES, () -> {});
        Buffer ofAsync = async.allocate(BYTES, owner.nullStream());
        Buffer current = MemoryResource.async().allocate(BYTES, owner.nullStream());
        Buffer cached = caching.allocate(BYTES, owner.nullStream())) {
      owner.synchronize();
      for (Buffer one : List.of(memory, wrapped, adopted, ofAsync, current, cached)) {
        throughHost(one, host, stream);
      }
    }
    cuda.devices().forEach(CudaDevice::synchronize);
  }

  /** The copy is still to come when its memory is closed and given to somebody else. */
  @CudaTest(devices = 2, seeds = 20)
  void memoryIsFreed_behindTheCopy(
      Cuda cuda, DeviceMemoryResource pool, CudaStream home, @OnDevice(1) CudaStream stream) {
    CudaDevice owner = cuda.device(0);
    CudaDevice other = cuda.device(1);
    try (ManagedBuffer to = managedOf(other)) {
      DeviceBuffer memory = pool.allocate(BYTES, home);
      memory.fill((byte) 1, home);
      stream.waitFor(home);
      memory.copyTo(to, stream);
      memory.close();
      try (DeviceBuffer next = pool.allocate(BYTES, home)) {
        next.fill((byte) 2, home);
        stream.synchronize();
        assertThat(Bytes.of(to)).containsOnly(1);
      }
    }
    cuda.devices().forEach(CudaDevice::synchronize);
  }

  @CudaTest(devices = 2)
  void capturingStream_isRefused_andTheCaptureGoesOn(
      Cuda cuda, DeviceMemoryResource pool, @OnDevice(1) @NonBlocking CudaStream stream) {
    CudaDevice other = cuda.device(1);
    try (DeviceBuffer memory = pool.allocate(BYTES);
        Buffer current = MemoryResource.async().allocate(BYTES, cuda.device(0).nullStream());
        PinnedBuffer host = pinnedOf(other)) {
      cuda.device(0).synchronize();
      Capture.of(
          stream,
          () -> {
            for (Buffer one : List.of(memory, current)) {
              assertThatThrownBy(() -> one.copyFrom(host, stream))
                  .isInstanceOf(IllegalStateException.class)
                  .hasMessageContaining("is capturing a graph")
                  .hasMessageContaining("no access to the pool of device 0")
                  .hasMessageContaining("peerAccessibleBy()");
            }
            host.fill((byte) 1, stream);
          });
    }
    cuda.device(0).synchronize();
  }

  @CudaTest(devices = 2)
  void capturingStreamOfADeviceWithAccess_takesTheCopy(
      Cuda cuda, DeviceMemoryResource pool, @OnDevice(1) @NonBlocking CudaStream stream) {
    CudaDevice other = cuda.device(1);
    assumeTrue(other.canAccess(cuda.device(0)), "the devices are no peers");
    try (DeviceBuffer memory = pool.allocate(BYTES);
        PinnedBuffer host = pinnedOf(other)) {
      cuda.device(0).synchronize();
      pool.peerAccessibleBy().add(other);
      Capture.of(stream, () -> memory.copyFrom(host, stream));
    }
    cuda.device(0).synchronize();
  }

  /** Fills and copies of segments have one buffer, and so one device whose streams they take. */
  @CudaTest(devices = 2)
  void fillsAndSegments_takeNoStreamOfAnotherDevice(
      Cuda cuda, DeviceMemoryResource pool, @OnDevice(1) CudaStream stream) {
    try (DeviceBuffer memory = pool.allocate(64);
        Arena arena = Arena.ofConfined()) {
      MemorySegment segment = arena.allocate(64);
      List<Runnable> calls =
          List.of(
              () -> memory.fill((byte) 1, stream),
              () -> memory.fillShorts((short) 1, stream),
              () -> memory.fillInts(1, stream),
              () -> memory.copyFrom(segment, stream),
              () -> memory.copyTo(segment, stream));
      for (Runnable call : calls) {
        assertThatThrownBy(call::run)
            .as("call %d", calls.indexOf(call))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("expected: a stream of device 0");
      }
    }
    cuda.device(0).synchronize();
  }

  /** The driver is given none of these by its address alone. */
  @CudaTest(devices = 2, seeds = 3)
  void batchesAndBoxes_goThroughTheOwnerToo(
      Cuda cuda, DeviceMemoryResource pool, @OnDevice(1) @NonBlocking CudaStream stream) {
    CopyBox box = CopyBox.of(10, 7).withSource(3, 20).withTarget(5, 30);
    byte[] sent = Bytes.random(9, 1000);
    try (DeviceBuffer memory = pool.allocate(1000);
        PinnedBuffer host = pinnedOf(cuda.device(1))) {
      cuda.device(0).synchronize();
      host.segment().copyFrom(MemorySegment.ofArray(sent).asSlice(0, 1000));
      CopyBatch.of(
              List.of(memory.slice(0, 400), memory.slice(400, 600)),
              List.of(host.slice(0, 400), host.slice(400, 600)))
          .copy(stream);
      host.fill((byte) 0, stream);
      CopyBatch.of(
              List.of(host.slice(400, 600), host.slice(0, 400)),
              List.of(memory.slice(400, 600), memory.slice(0, 400)))
          .copy(stream);
      stream.synchronize();
      assertThat(Bytes.of(host.slice(0, 1000))).isEqualTo(sent);
      for (Buffer[] each : new Buffer[][] {{memory, host}, {host, memory}}) {
        each[0].fill((byte) 0);
        each[0].copyFrom(each[1], box, stream);
        stream.synchronize();
        byte[] copied = Bytes.of(each[0].slice(0, 1000));
        for (int i = 0; i < 70; i++) {
          assertThat(copied[5 + i / 10 * 30 + i % 10]).isEqualTo(sent[3 + i / 10 * 20 + i % 10]);
        }
        Bytes.put(each[0].slice(0, 1000), sent);
      }
      CopyBox layers = CopyBox.of(5, 2, 3).withSource(0, 20, 4).withTarget(0, 10, 10);
      memory.fill((byte) 0);
      memory.copyFrom(host, layers, stream);
      stream.synchronize();
      byte[] copied = Bytes.of(memory.slice(0, 1000));
      for (int i = 0; i < 30; i++) {
        int row = i / 5;
        assertThat(copied[row / 2 * 100 + row % 2 * 10 + i % 5])
            .isEqualTo(sent[row / 2 * 80 + row % 2 * 20 + i % 5]);
      }
    }
    cuda.devices().forEach(CudaDevice::synchronize);
  }
}
