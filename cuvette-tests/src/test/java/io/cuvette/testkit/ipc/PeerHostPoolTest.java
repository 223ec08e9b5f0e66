package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AllocationHandle;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Peers;
import java.lang.foreign.ValueLayout;

/** The contract with page-locked host memory, which both hosts see without a copy. */
class PeerHostPoolTest extends PeerPoolContract {
  PeerHostPoolTest() {
    super(SharedPool.HOST);
  }

  @CudaTest
  void hosts_seeEachOthersBytesAtOnce(Subject subject, Peers peers) {
    PinnedMemoryResourceOptions options =
        PinnedMemoryResourceOptions.DEFAULTS.withIpcEnabled(true).withNumaId(0);
    try (PinnedMemoryResource pool = new PinnedMemoryResource(subject.cuda(), options);
        PinnedBuffer buffer = pool.allocate(4096);
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      subject.cuda().device(0).synchronize();
      assertThat(pool.numaId()).isZero();
      buffer.segment().set(ValueLayout.JAVA_BYTE, 4095, (byte) 77);
      child.importPool("pool", kind, pool.allocationHandle());
      child.ask("import", "buffer", "pool", buffer.descriptor());
      assertThat(child.ask("hostByte", "buffer", 4095)).isEqualTo("77");
      buffer.segment().set(ValueLayout.JAVA_BYTE, 4095, (byte) 78);
      assertThat(child.ask("hostByte", "buffer", 4095)).isEqualTo("78");
      child.closeAll("buffer", "pool");
    }
    subject.cuda().device(0).synchronize();
  }

  @CudaTest
  void importedBuffer_isAPinnedBuffer(Subject subject, Peers peers) {
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("pool", "pool", kind);
      child.ask("allocate", "buffer", "pool", 64);
      child.ask("put", "buffer", 1);
      try (AllocationHandle handle = child.exportPool("pool");
          PinnedMemoryResource pool =
              PinnedMemoryResource.fromAllocationHandle(subject.cuda(), handle);
          PinnedBuffer buffer = pool.importBuffer(child.descriptor("buffer"))) {
        assertThat(pool.isHostAccessible()).isTrue();
        assertThat(pool.deviceId()).isEqualTo(-1);
        assertThat(buffer.segment().byteSize()).isEqualTo(64);
        assertHolds(buffer, 1);
      }
      subject.cuda().device(0).synchronize();
      child.closeAll("buffer", "pool");
    }
  }
}
