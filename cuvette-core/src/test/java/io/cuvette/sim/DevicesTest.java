package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PriorityRange;
import io.cuvette.sim.internal.calls.SimLimits;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What the driver says about devices. */
class DevicesTest extends SimTestBase {

  @Test
  void devices_haveIdentities_thatAreTheSameInEveryRun() {
    assertThat(driver.devices().deviceGetCount()).isEqualTo(2);
    assertThat(driver.devices().driverGetVersion()).isEqualTo(13_000);
    assertThat(driver.devices().runtimeGetVersion()).isEqualTo(OptionalInt.of(13_000));
    assertThat(driver.devices().deviceGetName(1)).isEqualTo("Simulated H200 (NVIDIA H200 figures)");
    assertThat(driver.devices().deviceGetUuid(0)).isNotEqualTo(driver.devices().deviceGetUuid(1));
    try (SimulatedDriver again = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
      assertThat(again.devices().deviceGetUuid(0)).isEqualTo(driver.devices().deviceGetUuid(0));
    }
    assertThat(driver.devices().ctxGetStreamPriorityRange(1)).isEqualTo(new PriorityRange(0, -5));
  }

  /** Whichever comes first in a pair. */
  @ParameterizedTest
  @CsvSource({"0-1, 0, 1", "1-0, 0, 1", "1-2, 1, 2", "3-2, 2, 3", "3-1, 1, 3", "2-0, 0, 2"})
  void peersOfAPair_reachEachOther_andNoOther(String peers, int low, int high) {
    SimulatedOptions options = SimulatedOptions.parse("devices=4,peers=" + peers);
    try (SimulatedDriver of = SimulatedDriver.open(options)) {
      for (int device = 0; device < 4; device++) {
        for (int peer = 0; peer < 4; peer++) {
          boolean isPair = Math.min(device, peer) == low && Math.max(device, peer) == high;
          assertThat(of.devices().deviceCanAccessPeer(device, peer)).isEqualTo(isPair);
        }
      }
    }
  }

  @Test
  void pciBusId_goesBothWays() {
    assertThat(driver.devices().deviceGetPciBusId(1)).isEqualTo("0000:14:00.0");
    assertThat(driver.devices().deviceGetAttribute(33, 1)).isEqualTo(0x14);
    for (String text : new String[] {"0000:14:00.0", "00000000:14:00.0", "14:00.0", "14:0"}) {
      assertThat(driver.devices().deviceGetByPciBusId(text)).isEqualTo(1);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "'', INVALID_VALUE",
    "nonsense, INVALID_VALUE",
    "0000:14, INVALID_VALUE",
    "0000:14:00.9, INVALID_VALUE",
    "0000:18:00.0, INVALID_DEVICE",
    "0001:14:00.0, INVALID_DEVICE",
    "0000:14:01.0, INVALID_DEVICE",
    "0000:14:00.1, INVALID_DEVICE",
    "0000:15:00.0, INVALID_DEVICE",
    "0000:04:00.0, INVALID_DEVICE",
  })
  void otherPciBusIds_areRefused(String text, CudaStatus status) {
    assertFails(status, text, () -> driver.devices().deviceGetByPciBusId(text));
  }

  @ParameterizedTest
  @ValueSource(strings = {"0000:00:00.0", "0000:0c:00.0", "0000:0f:00.0", "0000:11:00.0"})
  void busWhereNoDeviceCanBe_isNamed(String text) {
    assertFails(
        CudaStatus.INVALID_DEVICE,
        "no device at " + text,
        () -> driver.devices().deviceGetByPciBusId(text));
  }

  @ParameterizedTest
  @CsvSource({
    "1, 1024",
    "10, 32",
    "16, 132",
    "20, 0",
    "39, 2048",
    "41, 1",
    "75, 9",
    "76, 0",
    "78, 1",
    "83, 1",
    "87, 2",
    "88, 0",
    "89, 1",
    "97, 232448",
    "102, 1",
    "106, 32",
    "111, 1024",
    "115, 1",
    "120, 1",
    "131, -1",
    "134, 0",
    "139, 590680286",
    "144, 1",
    "147, 0"
  })
  void attributes_areThoseOfAnH200(int attribute, int value) {
    assertThat(driver.devices().deviceGetAttribute(attribute, 0)).isEqualTo(value);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, -1, 148, 1000})
  void unknownAttribute_isRefused(int attribute) {
    assertFails(
        CudaStatus.INVALID_VALUE,
        "attribute: " + attribute,
        () -> driver.devices().deviceGetAttribute(attribute, 0));
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 2, 99})
  void unknownDevice_isRefusedByEveryCall(int device) {
    CudaStatus status = CudaStatus.INVALID_DEVICE;
    String message = "device: " + device + " (expected: 0 to 1)";
    assertFails(status, message, () -> driver.devices().deviceGetName(device));
    assertFails(status, message, () -> driver.devices().deviceGetUuid(device));
    assertFails(status, message, () -> driver.devices().deviceTotalMem(device));
    assertFails(status, message, () -> driver.devices().deviceGetAttribute(1, device));
    assertFails(status, message, () -> driver.devices().deviceGetPciBusId(device));
    assertFails(status, message, () -> driver.devices().deviceCanAccessPeer(0, device));
    assertFails(status, message, () -> driver.devices().ctxEnablePeerAccess(0, device));
    assertFails(status, message, () -> driver.devices().ctxSynchronize(device));
    assertFails(status, message, () -> driver.devices().memGetInfo(device));
    assertFails(status, message, () -> driver.memory().memAlloc(device, 1));
    assertFails(status, message, () -> driver.memory().memHostAlloc(device, 1, 0));
    assertFails(status, message, () -> driver.streams().streamCreateWithPriority(device, 0, 0));
    assertFails(status, message, () -> driver.streams().streamQuery(device, 0));
    assertFails(status, message, () -> driver.events().eventCreate(device, 0));
    assertFails(status, message, () -> driver.devices().ctxGetLimit(device, 0));
  }

  @Test
  void limitsThatNobodySet_areThoseOfANewContext() {
    long[] values = {1024, 1 << 20, 8 << 20, -1, 2048, 64, 0};
    for (int limit = 0; limit < values.length; limit++) {
      if (values[limit] >= 0) {
        assertThat(driver.devices().ctxGetLimit(1, limit)).isEqualTo(values[limit]);
      }
    }
  }

  @Test
  void limits_areSetAndRead_perDevice() {
    assertThat(driver.devices().ctxGetLimit(0, 0)).isEqualTo(1024);
    driver.devices().ctxSetLimit(0, 0, 4096);
    assertThat(driver.devices().ctxGetLimit(0, 0)).isEqualTo(4096);
    assertThat(driver.devices().ctxGetLimit(1, 0)).isEqualTo(1024);
    driver.devices().ctxSetLimit(0, 6, Long.MAX_VALUE);
    assertThat(driver.devices().ctxGetLimit(0, 6)).isEqualTo(SimLimits.MAX_PERSISTING_L2);
    assertFails(
        CudaStatus.UNSUPPORTED_LIMIT,
        "limit: 3 (expected: one of [0, 1, 2, 4, 5, 6])",
        () -> driver.devices().ctxGetLimit(0, 3));
    assertFails(
        CudaStatus.UNSUPPORTED_LIMIT, "limit: 77", () -> driver.devices().ctxSetLimit(0, 77, 1));
    assertFails(CudaStatus.INVALID_VALUE, "limit: -1", () -> driver.devices().ctxGetLimit(0, -1));
    assertFails(
        CudaStatus.INVALID_VALUE,
        "value: -1 (expected: >= 0)",
        () -> driver.devices().ctxSetLimit(0, 0, -1));
    assertFails(
        CudaStatus.INVALID_VALUE,
        "value: 129 (expected: 0 to 128)",
        () -> driver.devices().ctxSetLimit(0, 5, 129));
  }

  @Test
  void peerAccess_isPerDirection_andRefusedTwice() {
    assertThat(driver.devices().deviceCanAccessPeer(0, 1)).isTrue();
    assertThat(driver.devices().deviceCanAccessPeer(0, 0)).isFalse();
    driver.devices().ctxEnablePeerAccess(0, 1);
    assertFails(
        CudaStatus.PEER_ACCESS_ALREADY_ENABLED,
        "from device 0 to 1",
        () -> driver.devices().ctxEnablePeerAccess(0, 1));
    assertFails(
        CudaStatus.PEER_ACCESS_NOT_ENABLED,
        "from device 1 to 0",
        () -> driver.devices().ctxDisablePeerAccess(1, 0));
    driver.devices().ctxDisablePeerAccess(0, 1);
    assertFails(
        CudaStatus.PEER_ACCESS_NOT_ENABLED,
        "from device 0 to 1",
        () -> driver.devices().ctxDisablePeerAccess(0, 1));
    assertFails(
        CudaStatus.INVALID_DEVICE, "itself", () -> driver.devices().ctxEnablePeerAccess(1, 1));
  }

  @Test
  void peers_canBePairs_orNone_andCopiesWorkAnyway() {
    try (SimulatedDriver three =
        SimulatedDriver.open(SimulatedOptions.parse("devices=3,peers=0-2"))) {
      assertThat(three.devices().deviceCanAccessPeer(2, 0)).isTrue();
      assertThat(three.devices().deviceCanAccessPeer(0, 1)).isFalse();
      assertFails(
          CudaStatus.PEER_ACCESS_UNSUPPORTED,
          "from device 0 to 1",
          () -> three.devices().ctxEnablePeerAccess(0, 1));
      long source = three.memory().memAlloc(0, 64);
      long target = three.memory().memAlloc(1, 64);
      three.transfers().memsetD8Async(0, source, (byte) 4, 64, 0);
      three.devices().ctxSynchronize(0);
      three.transfers().memcpyPeerAsync(1, target, 1, source, 0, 64, 0);
      three.devices().ctxSynchronize(1);
      assertThat(three.memory().pointerGetAttribute(0, 9, target)).isEqualTo(1);
    }
  }
}
