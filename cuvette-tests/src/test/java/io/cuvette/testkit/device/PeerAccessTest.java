package io.cuvette.testkit.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;

class PeerAccessTest {

  @CudaTest
  void device_canAccessItself(Cuda cuda) {
    assertThat(cuda.device(0).canAccess(cuda.device(0))).isTrue();
  }

  @CudaTest(devices = 2, peers = "all")
  void access_isEnabledAndTakenBack_asOftenAsOneLikes(Cuda cuda) {
    CudaDevice one = cuda.device(0);
    CudaDevice two = cuda.device(1);
    assertThat(one.canAccess(two)).isTrue();
    for (int i = 0; i < 2; i++) {
      one.enablePeerAccess(two);
      one.enablePeerAccess(two);
      one.disablePeerAccess(two);
      one.disablePeerAccess(two);
    }
    two.enablePeerAccess(one);
    two.disablePeerAccess(one);
  }

  @CudaTest(devices = 2, peers = "all", simulatedOnly = true)
  void accessOfADevice_isGivenAndTakenByTheDriver(Cuda cuda, ScriptedDriver driver) {
    CudaDevice one = cuda.device(0);
    CudaDevice two = cuda.device(1);
    driver.note("ctxEnablePeerAccess", call -> "enable " + call.number("peer"));
    driver.note("ctxDisablePeerAccess", call -> "disable " + call.number("peer"));
    one.enablePeerAccess(two);
    one.disablePeerAccess(two);
    one.enablePeerAccess(two);
    assertThat(driver.notes()).containsExactly("enable 1", "disable 1", "enable 1");
  }

  @CudaTest(devices = 2, peers = "all", simulatedOnly = true)
  void copy_hasTheDeviceOfItsSourceReachTheOther(Cuda cuda, ScriptedDriver driver) {
    driver.note(
        "ctxEnablePeerAccess", call -> call.number("device") + " to " + call.number("peer"));
    try (Buffer source = cuda.allocate(1000, cuda.device(1).nullStream());
        Buffer target = cuda.allocate(1000, cuda.device(0).nullStream())) {
      target.copyFrom(source);
    }
    assertThat(driver.notes()).containsExactly("1 to 0");
  }

  @CudaTest(devices = 2)
  void copies_workBeforeAndAfterAccessIsSwitched(Cuda cuda) {
    CudaDevice one = cuda.device(0);
    CudaDevice two = cuda.device(1);
    try (Buffer source = cuda.allocate(1000, one.nullStream());
        Buffer target = cuda.allocate(1000, two.nullStream())) {
      for (int i = 1; i <= 4; i++) {
        source.fill((byte) i);
        target.copyFrom(source);
        assertThat(Bytes.of(target)).containsOnly(i);
        if (one.canAccess(two)) {
          if (i % 2 == 0) {
            one.enablePeerAccess(two);
          } else {
            one.disablePeerAccess(two);
          }
        }
      }
    }
  }

  @CudaTest(devices = 3, peers = "0-1")
  void devicesThatCannot_areRefused(Cuda cuda) {
    assertThat(cuda.device(0).canAccess(cuda.device(1))).isTrue();
    assertThat(cuda.device(0).canAccess(cuda.device(2))).isFalse();
    assertThatThrownBy(() -> cuda.device(0).enablePeerAccess(cuda.device(2)))
        .isInstanceOfSatisfying(
            CudaException.class,
            e -> assertThat(e.status()).isEqualTo(CudaStatus.PEER_ACCESS_UNSUPPORTED));
    cuda.device(0).disablePeerAccess(cuda.device(2));
  }

  @CudaTest
  void itself_isNoPeer(Cuda cuda) {
    CudaDevice device = cuda.device(0);
    assertThatThrownBy(() -> device.enablePeerAccess(device))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("expected: another device");
    assertThatThrownBy(() -> device.disablePeerAccess(device))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @CudaTest
  void deviceOfAnotherCuda_isNoPeer(Subject subject) {
    CudaDevice mine = subject.cuda().device(0);
    CudaDevice theirs = subject.open(options -> options).device(0);
    assertThatThrownBy(() -> mine.canAccess(theirs))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("another Cuda");
    assertThatThrownBy(() -> mine.enablePeerAccess(theirs))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> subject.cuda().setCurrentDevice(theirs))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> subject.cuda().currentStream(theirs))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
