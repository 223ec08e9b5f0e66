package io.cuvette.testkit.async;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Set;
import java.util.stream.Collectors;

/** The live set of the devices that can access the memory of a pool. */
class PoolPeersTest {

  /** Notes who was given access, and the ends of pools. */
  private static void noteAccess(ScriptedDriver driver) {
    driver.note("memPoolDestroy");
    driver.note(
        "memPoolSetAccess",
        call ->
            "access %s %s"
                .formatted(
                    Arrays.toString(call.argument("locationIds", int[].class)),
                    Arrays.toString(call.argument("access", int[].class))));
  }

  private static DeviceMemoryResource ownPool(Cuda cuda) {
    cuda.devices()
        .forEach(device -> assumeTrue(device.canAccess(cuda.device(0)), device + " is no peer"));
    return new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
  }

  @CudaTest(devices = 2)
  void deviceOfAnotherCuda_isNoPeer(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    Cuda other = subject.open(options -> options);
    try (DeviceMemoryResource resource = ownPool(cuda)) {
      Set<CudaDevice> peers = resource.peerAccessibleBy();
      peers.add(cuda.device(1));
      assertThat(peers.contains(cuda.device(1))).isTrue();
      assertThat(peers.contains(other.device(1))).isFalse();
    }
  }

  /** Reaching is asked in the direction in which it is needed: from the peer to the memory. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void peer_isADeviceThatReachesTheOwner_notOneThatItReaches(
      Cuda cuda,
      ScriptedDriver driver,
      DeviceMemoryResource first,
      @OnDevice(1) DeviceMemoryResource second) {
    driver.answer("deviceCanAccessPeer", call -> call.number("device") < call.number("peer"));
    assertThatThrownBy(() -> first.peerAccessibleBy().add(cuda.device(1)))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(second.peerAccessibleBy().add(cuda.device(0))).isTrue();
  }

  @CudaTest(devices = 4)
  void everyBulkOperation_isOneCallOfTheDriver(Cuda cuda, ScriptedDriver driver) {
    noteAccess(driver);
    CudaDevice one = cuda.device(1);
    CudaDevice two = cuda.device(2);
    CudaDevice three = cuda.device(3);
    try (DeviceMemoryResource resource = ownPool(cuda)) {
      Set<CudaDevice> peers = resource.peerAccessibleBy();
      assertThat(peers.addAll(List.of(three, one, cuda.device(0), one, two))).isTrue();
      assertThat(driver.takeNotes()).containsExactly("access [3, 1, 2] [3, 3, 3]");
      assertThat(peers.addAll(List.of(one, two))).isFalse();
      assertThat(driver.takeNotes()).as("nothing to do").isEmpty();
      assertThat(peers.removeIf(device -> device.id() > 1)).isTrue();
      assertThat(driver.takeNotes()).containsExactly("access [2, 3] [0, 0]");
      assertThat(peers.add(two)).isTrue();
      assertThat(peers.retainAll(List.of(two, three))).isTrue();
      assertThat(peers.removeAll(Set.of(one, two, three))).isTrue();
      assertThat(driver.takeNotes())
          .containsExactly("access [2] [3]", "access [1] [0]", "access [2] [0]");
      assertThat(peers.removeAll(Set.of(one))).isFalse();
      peers.clear();
      assertThat(driver.takeNotes()).isEmpty();
    }
  }

  @CudaTest(devices = 2)
  void nothing_isAddedWithoutAQuestion(Cuda cuda, ScriptedDriver driver) {
    try (DeviceMemoryResource resource = ownPool(cuda)) {
      Set<CudaDevice> peers = resource.peerAccessibleBy();
      driver.note("memPoolGetAccess");
      assertThat(peers.addAll(List.of())).isFalse();
      assertThat(peers.add(cuda.device(0))).as("the owner").isFalse();
      assertThat(driver.takeNotes()).isEmpty();
      assertThat(peers.add(cuda.device(1))).isTrue();
      assertThat(driver.takeNotes()).as("who has access").isNotEmpty();
    }
  }

  @CudaTest(devices = 2)
  void closedResource_isAssignedNothing_alsoIfNothingWouldChange(Cuda cuda) {
    DeviceMemoryResource resource = ownPool(cuda);
    resource.close();
    for (List<CudaDevice> devices :
        List.of(List.<CudaDevice>of(), List.of(cuda.device(0)), List.of(cuda.device(1)))) {
      assertThatThrownBy(() -> resource.setPeerAccessibleBy(devices))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("closed");
    }
  }

  @CudaTest(devices = 2)
  void closedResource_isNamed_whateverElseIsWrongWithADevice(Subject subject) {
    DeviceMemoryResource resource = ownPool(subject.open(options -> options));
    resource.close();
    CudaDevice foreign = subject.open(options -> options).device(1);
    assertThatThrownBy(() -> resource.setPeerAccessibleBy(List.of(foreign)))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed");
  }

  @CudaTest(devices = 4)
  void assignment_isOneCallForTheNewAndTheGone_andNoneIfNothingChanges(
      Cuda cuda, ScriptedDriver driver) {
    noteAccess(driver);
    CudaDevice one = cuda.device(1);
    CudaDevice two = cuda.device(2);
    CudaDevice three = cuda.device(3);
    try (DeviceMemoryResource resource = ownPool(cuda)) {
      Set<CudaDevice> peers = resource.peerAccessibleBy();
      resource.setPeerAccessibleBy(List.of(two, cuda.device(0), one, two));
      assertThat(driver.takeNotes()).containsExactly("access [2, 1] [3, 3]");
      assertThat(peers).containsExactly(one, two);
      resource.setPeerAccessibleBy(Set.of(three, two));
      assertThat(driver.takeNotes()).containsExactly("access [1, 3] [0, 3]");
      assertThat(peers).containsExactly(two, three);
      resource.setPeerAccessibleBy(List.of(three, two));
      resource.setPeerAccessibleBy(peers);
      assertThat(driver.takeNotes()).as("nothing to do").isEmpty();
      resource.setPeerAccessibleBy(List.of());
      assertThat(driver.takeNotes()).containsExactly("access [2, 3] [0, 0]");
      assertThat(peers).isEmpty();
      resource.setPeerAccessibleBy(List.of(cuda.device(0)));
      assertThat(driver.takeNotes()).as("the owner alone").isEmpty();
    }
  }

  @CudaTest(devices = 4, peers = "0-1+0-2")
  void assignment_isCheckedWhole_beforeTheFirstChange(
      Subject subject, Cuda cuda, ScriptedDriver driver) {
    noteAccess(driver);
    CudaDevice theirs = subject.open(options -> options).device(1);
    DeviceMemoryResource resource =
        new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS);
    try (resource) {
      resource.setPeerAccessibleBy(List.of(cuda.device(1)));
      driver.takeNotes();
      assertThatThrownBy(() -> resource.setPeerAccessibleBy(cuda.devices()))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("device 3")
          .hasMessageContaining("device 0");
      assertThatThrownBy(() -> resource.setPeerAccessibleBy(List.of(cuda.device(2), theirs)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("device 1 of another Cuda");
      assertThatThrownBy(() -> resource.setPeerAccessibleBy(Arrays.asList(cuda.device(2), null)))
          .isInstanceOf(NullPointerException.class);
      assertThat(driver.takeNotes()).isEmpty();
      assertThat(resource.peerAccessibleBy()).containsExactly(cuda.device(1));
    }
    assertThatThrownBy(() -> resource.setPeerAccessibleBy(List.of()))
        .isInstanceOf(IllegalStateException.class);
  }

  @CudaTest(devices = 4)
  void set_isEqualToSetsOfTheSame_andInAscendingOrder(Cuda cuda) {
    try (DeviceMemoryResource resource = ownPool(cuda)) {
      Set<CudaDevice> peers = resource.peerAccessibleBy();
      peers.addAll(List.of(cuda.device(3), cuda.device(1)));
      Set<CudaDevice> same = new HashSet<>(Set.of(cuda.device(1), cuda.device(3)));
      assertThat(peers).containsExactly(cuda.device(1), cuda.device(3)).isEqualTo(same);
      assertThat(same).isEqualTo(peers);
      assertThat(peers.hashCode()).isEqualTo(same.hashCode());
      assertThat(peers.stream().map(CudaDevice::id).toList()).containsExactly(1, 3);
      assertThat(peers.toArray(CudaDevice[]::new)).containsExactly(cuda.device(1), cuda.device(3));
      assertThat(peers.toString()).isEqualTo("[device 1, device 3]");
      Set<CudaDevice> copy = new HashSet<>(peers);
      copy.remove(cuda.device(1));
      assertThat(peers).as("copies are plain sets").hasSize(2);
      peers.clear();
      assertThat(peers).isEmpty();
      assertThat(peers).isNotEqualTo(same);
    }
  }

  @CudaTest(devices = 3)
  void everyTransition_endsInTheStateAskedFor(Cuda cuda) {
    List<Set<CudaDevice>> states =
        List.of(
            Set.of(),
            Set.of(cuda.device(1)),
            Set.of(cuda.device(2)),
            Set.of(cuda.device(1), cuda.device(2)));
    try (DeviceMemoryResource resource = ownPool(cuda)) {
      Set<CudaDevice> peers = resource.peerAccessibleBy();
      for (Set<CudaDevice> from : states) {
        for (Set<CudaDevice> to : states) {
          peers.retainAll(from);
          peers.addAll(from);
          assertThat(peers).isEqualTo(from);
          resource.setPeerAccessibleBy(to);
          assertThat(peers).as("from %s", from).isEqualTo(to);
          for (CudaDevice device : cuda.devices()) {
            boolean access = device.id() == 0 || to.contains(device);
            assertThat(cuda.driver().pools().memPoolGetAccess(resource.handle(), 1, device.id()))
                .isEqualTo(access ? 3 : 0);
          }
        }
      }
    }
  }

  @CudaTest(devices = 2)
  void owner_isIgnored(Cuda cuda) {
    CudaDevice owner = cuda.device(0);
    try (DeviceMemoryResource resource = ownPool(cuda)) {
      Set<CudaDevice> peers = resource.peerAccessibleBy();
      assertThat(peers.add(owner)).isFalse();
      assertThat(peers.addAll(Set.of(owner))).isFalse();
      assertThat(peers.contains(owner)).isFalse();
      assertThat(peers.remove(owner)).isFalse();
      assertThat(peers).isEmpty();
      assertThat(cuda.driver().pools().memPoolGetAccess(resource.handle(), 1, 0)).isEqualTo(3);
    }
  }

  @CudaTest(devices = 4, peers = "0-1+0-2")
  void unreachablePeer_isNamed_andNothingChanges(Cuda cuda, DeviceMemoryResource resource) {
    Set<CudaDevice> peers = resource.peerAccessibleBy();
    assertThatThrownBy(() -> peers.addAll(cuda.devices()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("device 3")
        .hasMessageContaining("device 0");
    assertThat(peers).isEmpty();
    peers.addAll(List.of(cuda.device(1), cuda.device(2)));
    assertThat(peers).hasSize(2);
    assertThat(peers.remove(cuda.device(3))).isFalse();
  }

  @CudaTest(devices = 2)
  void removingWhatIsNotThere_neverFails(Subject subject) {
    Cuda cuda = subject.cuda();
    CudaDevice theirs = subject.open(options -> options).device(1);
    try (DeviceMemoryResource resource = ownPool(cuda)) {
      Set<CudaDevice> peers = resource.peerAccessibleBy();
      for (Object nothing : Arrays.asList(cuda.device(1), theirs, "device 1", null)) {
        assertThat(peers.remove(nothing)).isFalse();
        assertThat(peers.contains(nothing)).isFalse();
      }
      assertThat(peers.removeAll(List.of())).isFalse();
      assertThatThrownBy(() -> peers.add(theirs))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("device 1 of another Cuda");
      assertThat(peers).isEmpty();
    }
  }

  @CudaTest(devices = 2)
  void twoViewsOfOnePool_showTheSame(Cuda cuda) {
    CudaDriver driver = cuda.driver();
    long before = driver.pools().deviceGetMemPool(0);
    try (DeviceMemoryResource owner = ownPool(cuda)) {
      driver.pools().deviceSetMemPool(0, owner.handle());
      try (DeviceMemoryResource view = new DeviceMemoryResource(cuda.device(0))) {
        assertThat(view.handle()).isEqualTo(owner.handle());
        view.peerAccessibleBy().add(cuda.device(1));
        assertThat(owner.peerAccessibleBy()).containsExactly(cuda.device(1));
        owner.peerAccessibleBy().remove(cuda.device(1));
        assertThat(view.peerAccessibleBy()).isEmpty();
        owner.peerAccessibleBy().add(cuda.device(1));
      } finally {
        driver.pools().deviceSetMemPool(0, before);
      }
      assertThat(owner.peerAccessibleBy())
          .as("closing a view takes nothing")
          .containsExactly(cuda.device(1));
    }
  }

  @CudaTest(devices = 3)
  void iterator_removesThroughToTheDriver(Cuda cuda) {
    try (DeviceMemoryResource resource = ownPool(cuda)) {
      Set<CudaDevice> peers = resource.peerAccessibleBy();
      peers.addAll(List.of(cuda.device(1), cuda.device(2)));
      Iterator<CudaDevice> each = peers.iterator();
      assertThatThrownBy(each::remove).isInstanceOf(IllegalStateException.class);
      assertThat(each.next()).isEqualTo(cuda.device(1));
      each.remove();
      assertThatThrownBy(each::remove).isInstanceOf(IllegalStateException.class);
      assertThat(each.next()).isEqualTo(cuda.device(2));
      assertThat(each.hasNext()).isFalse();
      assertThatThrownBy(each::next).isInstanceOf(NoSuchElementException.class);
      assertThat(peers.stream().map(CudaDevice::id).collect(Collectors.toSet()))
          .isEqualTo(Set.of(2));
    }
  }

  /** The driver gives a later pool of the same handle the access of the one before. */
  @CudaTest(devices = 2)
  void ownPool_losesItsPeersBeforeItIsDestroyed(Cuda cuda, ScriptedDriver driver) {
    noteAccess(driver);
    DeviceMemoryResource resource = ownPool(cuda);
    resource.peerAccessibleBy().add(cuda.device(1));
    resource.close();
    assertThat(driver.takeNotes())
        .containsExactly("access [1] [3]", "access [1] [0]", "memPoolDestroy");
    assertThatThrownBy(() -> resource.peerAccessibleBy().size())
        .isInstanceOf(IllegalStateException.class);
    try (DeviceMemoryResource next = ownPool(cuda)) {
      assertThat(next.peerAccessibleBy()).isEmpty();
    }
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void accessForReading_isNotMembership_butIsTakenBackToo(Cuda cuda) {
    try (DeviceMemoryResource resource = ownPool(cuda)) {
      cuda.driver().pools().memPoolSetAccess(resource.handle(), 1, new int[] {1}, 1);
      assertThat(resource.peerAccessibleBy()).isEmpty();
      resource.peerAccessibleBy().clear();
      assertThat(cuda.driver().pools().memPoolGetAccess(resource.handle(), 1, 1)).isZero();
      cuda.driver().pools().memPoolSetAccess(resource.handle(), 1, new int[] {1}, 1);
      resource.setPeerAccessibleBy(List.of());
      assertThat(cuda.driver().pools().memPoolGetAccess(resource.handle(), 1, 1)).isZero();
      cuda.driver().pools().memPoolSetAccess(resource.handle(), 1, new int[] {1}, 1);
      resource.setPeerAccessibleBy(List.of(cuda.device(1)));
      assertThat(cuda.driver().pools().memPoolGetAccess(resource.handle(), 1, 1)).isEqualTo(3);
    }
  }

  @CudaTest(devices = 2)
  void peers_areALiveSet(Cuda cuda, DeviceMemoryResource resource) {
    assertThat(resource.peerAccessibleBy()).isEmpty();
    assertThat(resource.peerAccessibleBy().add(cuda.device(0))).isFalse();
    assertThat(resource.peerAccessibleBy().add(cuda.device(1))).isTrue();
    assertThat(resource.peerAccessibleBy()).containsExactly(cuda.device(1));
    assertThat(cuda.driver().pools().memPoolGetAccess(resource.handle(), 1, 1)).isEqualTo(3);
    resource.peerAccessibleBy().clear();
    assertThat(resource.peerAccessibleBy()).isEmpty();
  }
}
