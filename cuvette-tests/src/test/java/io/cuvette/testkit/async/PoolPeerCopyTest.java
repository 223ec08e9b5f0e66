package io.cuvette.testkit.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.CopyBox;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.Scope;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Copies of pool memory between devices, with access of the peers and without. */
class PoolPeerCopyTest {
  private static final int BYTES = 3 << 20;

  @CudaTest(devices = 2, seeds = 5)
  void copies_workWithAccessAndWithout(
      Cuda cuda, DeviceMemoryResource first, @OnDevice(1) DeviceMemoryResource second) {
    CudaDevice one = cuda.device(0);
    CudaDevice two = cuda.device(1);
    copyThereAndBack(first, second, one, two);
    assumeTrue(one.canAccess(two) && two.canAccess(one), "the devices are no peers");
    first.peerAccessibleBy().add(two);
    copyThereAndBack(first, second, one, two);
    second.peerAccessibleBy().add(one);
    copyThereAndBack(first, second, one, two);
    first.peerAccessibleBy().clear();
    copyThereAndBack(first, second, one, two);
    second.peerAccessibleBy().clear();
    copyThereAndBack(first, second, one, two);
  }

  @CudaTest(devices = 2, peers = "none")
  void devicesThatAreNoPeers_copyThroughTheHost(
      Cuda cuda, DeviceMemoryResource first, @OnDevice(1) DeviceMemoryResource second) {
    copyThereAndBack(first, second, cuda.device(0), cuda.device(1));
  }

  private static DeviceMemoryResource ownPool(CudaDevice device) {
    return new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS);
  }

  private static void copyThereAndBack(
      DeviceMemoryResource first, DeviceMemoryResource second, CudaDevice one, CudaDevice two) {
    byte[] sent = Bytes.random(7, BYTES);
    try (CudaStream here = one.createStream();
        CudaStream there = two.createStream();
        DeviceBuffer source = first.allocate(BYTES, here);
        DeviceBuffer between = second.allocate(BYTES, there);
        DeviceBuffer back = first.allocate(BYTES, here)) {
      here.synchronize();
      Bytes.put(source, sent);
      there.waitFor(here);
      between.fill((byte) 0, there);
      between.copyFrom(source, there);
      here.waitFor(there);
      back.fill((byte) 1, here);
      back.slice(1000, BYTES - 1000).copyFrom(between.slice(0, BYTES - 1000), here);
      here.synchronize();
      assertThat(Bytes.of(between)).isEqualTo(sent);
      byte[] expected = new byte[BYTES];
      Arrays.fill(expected, 0, 1000, (byte) 1);
      System.arraycopy(sent, 0, expected, 1000, BYTES - 1000);
      assertThat(Bytes.of(back)).isEqualTo(expected);
      back.fill((byte) 0);
      back.copyFrom(between);
      assertThat(Bytes.of(back)).as("a copy that waits").isEqualTo(sent);
    }
    one.synchronize();
    two.synchronize();
  }

  @CudaTest(devices = 2)
  void poolMemoryAndPlainMemory_copyBetweenDevices(
      Cuda cuda, @OnDevice(1) DeviceMemoryResource pool) {
    byte[] sent = Bytes.random(3, BYTES);
    try (Buffer plain = cuda.allocate(BYTES, cuda.device(0).nullStream());
        Buffer pooled = pool.allocate(BYTES);
        Buffer back = cuda.allocate(BYTES, cuda.device(0).nullStream())) {
      Bytes.put(plain, sent);
      cuda.device(1).synchronize();
      pooled.copyFrom(plain);
      back.copyFrom(pooled);
      assertThat(Bytes.of(back)).isEqualTo(sent);
    }
    cuda.device(1).synchronize();
  }

  /** The copy runs on a stream of the pool's device, between the work before and after it. */
  @CudaTest(devices = 2, seeds = 24)
  void copyForADeviceWithoutAccess_comesBehindWhatItsStreamHas(
      Cuda cuda, DeviceMemoryResource pool, @OnDevice(1) @NonBlocking CudaStream there) {
    try (Buffer pooled = pool.allocate(BYTES);
        PinnedBuffer host = pinnedOf(cuda.device(1))) {
      pooled.fill((byte) 1);
      try (Gate _ = Gate.on(there)) {
        host.fill((byte) 2, there);
        host.copyFrom(pooled, there);
      }
      there.synchronize();
      assertThat(Bytes.areAll(host, 1)).isTrue();
    }
    cuda.device(0).synchronize();
  }

  /** Neither several rows nor several copies are one call of a device that cannot reach them. */
  @CudaTest(devices = 2, seeds = 5)
  void rowsAndBatchesForADeviceWithoutAccess_areCopiedInBothDirections(
      Cuda cuda, DeviceMemoryResource pool, @OnDevice(1) @NonBlocking CudaStream there) {
    CopyBox box = CopyBox.of(1000, 3).withSource(0, 2000).withTarget(0, 1000);
    try (Buffer pooled = pool.allocate(6000);
        PinnedBuffer host = pinnedOf(cuda.device(1))) {
      cuda.device(0).synchronize();
      for (boolean in : new boolean[] {true, false}) {
        Buffer to = in ? pooled : host;
        Buffer from = in ? host : pooled;
        byte[] sent = Bytes.random(in ? 1 : 2, 6000);
        Bytes.put(from.slice(0, 6000), sent);
        to.copyFrom(from, box, there);
        Buffer after = to.slice(3000, 3000);
        CopyBatch.of(
                List.of(after.slice(0, 1000), after.slice(1000, 1000)),
                List.of(from.slice(0, 1000), from.slice(5000, 1000)))
            .copy(there);
        there.synchronize();
        byte[] came = Bytes.of(to.slice(0, 5000));
        int at = 0;
        for (int row : new int[] {0, 2000, 4000, 0, 5000}) {
          assertThat(Arrays.copyOfRange(came, at, at + 1000))
              .as("%s, of %d", in ? "in" : "out", row)
              .isEqualTo(Arrays.copyOfRange(sent, row, row + 1000));
          at += 1000;
        }
      }
    }
    cuda.device(0).synchronize();
  }

  /** The buffers know the given stream alone, and it does not wait for such a copy. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void copyForADeviceWithoutAccess_thatFailsAlthoughItIsQueued_hasEnded(
      Cuda cuda,
      ScriptedDriver driver,
      DeviceMemoryResource pool,
      @OnDevice(1) @NonBlocking CudaStream there) {
    try (Buffer pooled = pool.allocate(BYTES);
        PinnedBuffer host = pinnedOf(cuda.device(1))) {
      pooled.fill((byte) 1);
      driver.note("memcpyAsync", "streamSynchronize", "streamDestroy");
      driver.answer(
          "memcpyAsync",
          call -> {
            Object _ = call.proceed();
            throw new CudaException(CudaStatus.UNKNOWN, call.name(), "queued all the same");
          });
      assertThatThrownBy(() -> host.copyFrom(pooled, there)).isInstanceOf(CudaException.class);
      assertThat(driver.notes())
          .containsExactly("memcpyAsync", "streamSynchronize", "streamDestroy");
      assertThat(host.segment().get(ValueLayout.JAVA_BYTE, BYTES - 1)).isEqualTo((byte) 1);
    }
    cuda.device(0).synchronize();
  }

  private static PinnedBuffer pinnedOf(CudaDevice device) {
    try (Scope _ = device.use()) {
      return device.cuda().directPinned().allocate(BYTES);
    }
  }

  /** As many devices as there are, each of which gives its bytes to the next. */
  @CudaTest(devices = 4)
  void asyncPool_copiesAroundARingOfDevices(Cuda cuda) {
    aroundTheRing(cuda);
  }

  @CudaTest(devices = 2)
  void asyncPool_copiesBetweenTwoDevices(Cuda cuda) {
    aroundTheRing(cuda);
  }

  private static void aroundTheRing(Cuda cuda) {
    byte[] sent = Bytes.random(11, BYTES);
    List<CudaStream> streams = new ArrayList<>();
    List<Buffer> buffers = new ArrayList<>();
    try (AsyncMemoryPool pool = new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0))) {
      for (CudaDevice device : cuda.devices()) {
        streams.add(device.createStream());
        buffers.add(pool.allocate(BYTES, streams.getLast()));
      }
      streams.getFirst().synchronize();
      Bytes.put(buffers.getFirst(), sent);
      for (int i = 1; i < buffers.size(); i++) {
        streams.get(i).waitFor(streams.get(i - 1));
        buffers.get(i).copyFrom(buffers.get(i - 1), streams.get(i));
      }
      streams.getLast().synchronize();
      assertThat(Bytes.of(buffers.getLast())).isEqualTo(sent);
      for (CudaDevice device : cuda.devices()) {
        assertThat(pool.attributes(device).usedMemCurrent()).isEqualTo(BYTES);
      }
      buffers.forEach(Buffer::close);
      cuda.devices().forEach(CudaDevice::synchronize);
    } finally {
      streams.forEach(CudaStream::close);
    }
  }

  @CudaTest(devices = 2)
  void pinnedPool_isAccessibleFromEveryDevice(Cuda cuda) {
    try (PinnedMemoryResource resource =
        new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS.withNumaId(0))) {
      for (CudaDevice device : cuda.devices()) {
        assertThat(cuda.driver().pools().memPoolGetAccess(resource.handle(), 1, device.id()))
            .isEqualTo(3);
        throughPinned(cuda, resource, device);
      }
    }
  }

  private static void throughPinned(Cuda cuda, PinnedMemoryResource resource, CudaDevice device) {
    byte[] sent = Bytes.random(device.id(), BYTES);
    try (CudaStream stream = device.createStream();
        PinnedBuffer pinned = resource.allocate(BYTES, stream);
        Buffer memory = cuda.allocate(BYTES, stream)) {
      stream.synchronize();
      Bytes.put(pinned, sent);
      memory.copyFrom(pinned, stream);
      pinned.fill((byte) 0, stream);
      pinned.copyFrom(memory, stream);
      stream.synchronize();
      assertThat(Bytes.of(pinned)).isEqualTo(sent);
    }
    device.synchronize();
  }
}
