package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.SimulatedDriver;
import org.junit.jupiter.api.Test;

/** The ends of what can be shared: devices out of reach, and pools of any size. */
class SimSharingEdgesTest extends SimSharingBase {

  @Test
  void plainMemoryThatIsOpen_isRefusedOnADeviceThatCannotReachIt() {
    long address = exporter.memory().memAlloc(1, 64);
    byte[] handle = exporter.sharing().ipcGetMemHandle(1, address);
    try (SimulatedDriver apart = open("devices=2,peers=none")) {
      for (int round = 0; round < 2; round++) {
        assertFails(
            CudaStatus.PEER_ACCESS_UNSUPPORTED,
            "from device 0 to device 1",
            () -> apart.sharing().ipcOpenMemHandle(0, handle));
        apart.sharing().ipcOpenMemHandle(1, handle); // from now on it is open
      }
    }
    exporter.memory().memFree(1, address);
  }

  @Test
  void sharedPool_mayHaveAnyMaximum() {
    for (int location : new int[] {DEVICE, HOST_NUMA}) {
      for (long most : new long[] {1, 64 * MIB, 1L << 50, Long.MAX_VALUE}) {
        long pool = exporter.pools().memPoolCreate(new PoolProperties(1, 1, location, 0, most));
        exporter.pools().memPoolSetAccess(pool, 1, new int[] {0}, 3);
        DESCRIPTORS.close(exporter.sharing().memPoolExportToShareableHandle(pool));
        long ours = allocate(pool, 4 * KIB);
        fill(exporter, ours, 7, 4 * KIB, out);
        long theirs =
            importer
                .sharing()
                .memPoolImportPointer(
                    imported(pool), exporter.sharing().memPoolExportPointer(ours));
        assertThat(read(importer, theirs + 4 * KIB - 1)).isEqualTo((byte) 7);
        exporter.ordered().memFreeAsync(0, ours, out);
        exporter.streams().streamSynchronize(0, out);
        exporter.pools().memPoolDestroy(pool);
      }
    }
  }
}
