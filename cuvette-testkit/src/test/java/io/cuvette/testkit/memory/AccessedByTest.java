package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryLocation;
import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** The live set of the places for which managed memory is mapped. */
class AccessedByTest {
  private static final long PAGE = 2 << 20;
  private static final MemoryLocation HOST = MemoryLocation.host();

  /** Counts the advice, and can pretend that a device cannot share memory. */
  private static final class Watched extends ForwardingDriver {
    private static final int CONCURRENT_MANAGED_ACCESS = 89;
    private final List<String> advice = new ArrayList<>();
    private int unable = -1;

    Watched(CudaDriver driver) {
      super(driver);
    }

    @Override
    public int deviceGetAttribute(int attribute, int device) {
      return attribute == CONCURRENT_MANAGED_ACCESS && device == unable
          ? 0
          : super.deviceGetAttribute(attribute, device);
    }

    @Override
    public void memAdvise(
        int device, long address, long bytes, int code, int locationType, int locationId) {
      advice.add(code + " " + locationType + ":" + locationId);
      super.memAdvise(device, address, bytes, code, locationType, locationId);
    }

    private List<String> take() {
      List<String> taken = List.copyOf(advice);
      advice.clear();
      return taken;
    }
  }

  private static MemoryLocation device(int id) {
    return new MemoryLocation.Device(id);
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void placesAreInOrder_andEachOnce_whateverTheDriverSays(Subject subject) {
    Cuda cuda =
        subject.open(options ->
            options.withDecorator(driver ->
                new ForwardingDriver(driver) {
                  @Override
                  public int[] memRangeGetAttributeList(
                      int device, int attribute, long address, long bytes, int count) {
                    return new int[] {1, -1, 0, 1, -2};
                  }
                }));
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      assertThat(buffer.accessedBy()).containsExactly(device(0), device(1), HOST);
      assertThat(buffer.accessedBy()).hasSize(3);
    }
  }

  @CudaTest
  void addedAndRemoved_isReadBack(Cuda cuda) {
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      Set<MemoryLocation> places = buffer.accessedBy();
      assertThat(places).isEmpty();
      assertThat(places.add(device(0))).isTrue();
      assertThat(places.add(device(0))).isFalse();
      assertThat(places).containsExactly(device(0));
      assertThat(places.add(HOST)).isTrue();
      assertThat(places).containsExactly(device(0), HOST);
      assertThat(buffer.accessedBy()).as("another view").isEqualTo(places);
      assertThat(places.remove(device(0))).isTrue();
      assertThat(places.remove(device(0))).isFalse();
      assertThat(places).containsExactly(HOST);
      places.clear();
      assertThat(places).isEmpty();
    }
  }

  @CudaTest
  void set_isForExactlyTheBuffersRange(Cuda cuda) {
    try (ManagedBuffer whole = cuda.allocateManaged(3 * PAGE)) {
      whole.slice(PAGE, PAGE).accessedBy().add(device(0));
      assertThat(whole.slice(PAGE, PAGE).accessedBy()).containsExactly(device(0));
      assertThat(whole.slice(0, PAGE).accessedBy()).isEmpty();
      assertThat(whole.slice(2 * PAGE).accessedBy()).isEmpty();
      assertThat(whole.accessedBy()).as("not all of it").isEmpty();
      whole.accessedBy().add(device(0));
      assertThat(whole.accessedBy()).containsExactly(device(0));
      whole.slice(PAGE, PAGE).accessedBy().clear();
      assertThat(whole.slice(0, PAGE).accessedBy()).containsExactly(device(0));
    }
  }

  @CudaTest
  void set_isEqualToSetsOfTheSame(Cuda cuda) {
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      Set<MemoryLocation> places = buffer.accessedBy();
      places.addAll(List.of(HOST, MemoryLocation.device(cuda.device(0)), HOST));
      Set<MemoryLocation> same = new HashSet<>(List.of(HOST, device(0)));
      assertThat(places).isEqualTo(same);
      assertThat(same).isEqualTo(places);
      assertThat(places.hashCode()).isEqualTo(same.hashCode());
      assertThat(places.contains(HOST)).isTrue();
      assertThat(places.contains(MemoryLocation.hostNuma(0))).isFalse();
      assertThat(places.contains("host")).isFalse();
      assertThat(places.contains(null)).isFalse();
      assertThat(places.remove("host")).isFalse();
      assertThat(places.removeIf(place -> place == HOST)).isTrue();
      assertThat(places.retainAll(Set.of(HOST))).isTrue();
      assertThat(places).isEmpty();
    }
  }

  @CudaTest(devices = 4)
  void assignment_changesOnlyWhatDiffers(Subject subject) {
    Watched[] watched = new Watched[1];
    Cuda cuda = subject.open(options -> options.withDecorator(d -> watched[0] = new Watched(d)));
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      buffer.setAccessedBy(List.of(HOST, device(2), device(0)));
      assertThat(buffer.accessedBy()).containsExactly(device(0), device(2), HOST);
      watched[0].take();
      buffer.setAccessedBy(Set.of(device(3), device(2)));
      assertThat(watched[0].take()).containsExactly("6 1:0", "6 2:0", "5 1:3");
      assertThat(buffer.accessedBy()).containsExactly(device(2), device(3));
      buffer.setAccessedBy(buffer.accessedBy());
      assertThat(watched[0].take()).isEmpty();
      buffer.setAccessedBy(List.of());
      assertThat(buffer.accessedBy()).isEmpty();
    }
  }

  @CudaTest
  void everything_isCheckedBeforeTheFirstChange(Subject subject) {
    Watched[] watched = new Watched[1];
    Cuda cuda = subject.open(options -> options.withDecorator(d -> watched[0] = new Watched(d)));
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      buffer.accessedBy().add(HOST);
      watched[0].take();
      for (MemoryLocation wrong :
          List.of(
              MemoryLocation.hostNuma(0),
              MemoryLocation.hostNumaCurrent(),
              device(cuda.deviceCount()))) {
        List<MemoryLocation> mixed = List.of(device(0), wrong);
        assertThatThrownBy(() -> buffer.setAccessedBy(mixed))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("location: ");
        assertThatThrownBy(() -> buffer.accessedBy().addAll(mixed))
            .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> buffer.accessedBy().add(wrong))
            .isInstanceOf(IllegalArgumentException.class);
        assertThat(buffer.accessedBy().remove(wrong)).isFalse();
      }
      assertThat(watched[0].take()).isEmpty();
      assertThat(buffer.accessedBy()).containsExactly(HOST);
    }
  }

  @CudaTest(devices = 2)
  void deviceWithoutConcurrentAccess_isRefusedByName(Subject subject) {
    Watched[] watched = new Watched[1];
    Cuda cuda = subject.open(options -> options.withDecorator(d -> watched[0] = new Watched(d)));
    watched[0].unable = 1;
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      assertThatThrownBy(() -> buffer.setAccessedBy(List.of(device(0), device(1))))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("device 1")
          .hasMessageContaining("concurrent managed access");
      assertThat(watched[0].take()).isEmpty();
    }
  }

  @CudaTest
  void noBytes_areAccessedByNobody(Cuda cuda) {
    try (ManagedBuffer buffer = cuda.allocateManaged(0)) {
      assertThat(buffer.accessedBy()).isEmpty();
      buffer.accessedBy().add(device(0));
      assertThat(buffer.accessedBy()).isEmpty();
      assertThatThrownBy(() -> buffer.accessedBy().add(MemoryLocation.hostNuma(0)))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }
}
