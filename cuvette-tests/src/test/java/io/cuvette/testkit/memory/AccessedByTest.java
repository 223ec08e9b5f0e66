package io.cuvette.testkit.memory;

import static io.cuvette.testkit.support.Sizes.PAGE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryLocation;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.ScriptedDriver;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;

/** The live set of the places for which managed memory is mapped. */
class AccessedByTest {
  private static final int CONCURRENT_MANAGED_ACCESS = 89;
  private static final MemoryLocation HOST = MemoryLocation.host();

  private static void noteAdvice(ScriptedDriver driver) {
    driver.note(
        "memAdvise",
        call ->
            "%d %d:%d"
                .formatted(
                    call.number("advice"), call.number("locationType"), call.number("locationId")));
  }

  private static MemoryLocation device(int id) {
    return new MemoryLocation.Device(id);
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void placesAreInOrder_andEachOnce_whateverTheDriverSays(Cuda cuda, ScriptedDriver driver) {
    driver.answer("memRangeGetAttributeList", _ -> new int[] {1, -1, 0, 1, -2});
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
  void assignment_changesOnlyWhatDiffers(Cuda cuda, ScriptedDriver driver) {
    noteAdvice(driver);
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      buffer.setAccessedBy(List.of(HOST, device(2), device(0)));
      assertThat(buffer.accessedBy()).containsExactly(device(0), device(2), HOST);
      driver.takeNotes();
      buffer.setAccessedBy(Set.of(device(3), device(2)));
      assertThat(driver.takeNotes()).containsExactly("6 1:0", "6 2:0", "5 1:3");
      assertThat(buffer.accessedBy()).containsExactly(device(2), device(3));
      buffer.setAccessedBy(buffer.accessedBy());
      assertThat(driver.takeNotes()).isEmpty();
      buffer.setAccessedBy(List.of());
      assertThat(buffer.accessedBy()).isEmpty();
    }
  }

  @CudaTest
  void everything_isCheckedBeforeTheFirstChange(Cuda cuda, ScriptedDriver driver) {
    noteAdvice(driver);
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      buffer.accessedBy().add(HOST);
      driver.takeNotes();
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
      assertThat(driver.takeNotes()).isEmpty();
      assertThat(buffer.accessedBy()).containsExactly(HOST);
    }
  }

  @CudaTest(devices = 2)
  void deviceWithoutConcurrentAccess_isRefusedByName(Cuda cuda, ScriptedDriver driver) {
    noteAdvice(driver);
    driver.answer(
        "deviceGetAttribute",
        call ->
            call.number("attribute") == CONCURRENT_MANAGED_ACCESS && call.number("device") == 1
                ? 0
                : call.proceed());
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      assertThatThrownBy(() -> buffer.setAccessedBy(List.of(device(0), device(1))))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("device 1")
          .hasMessageContaining("concurrent managed access");
      assertThat(driver.takeNotes()).isEmpty();
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

  /** Each operation says whether it changed the set, as that of any set does. */
  @CudaTest(devices = 4, simulatedOnly = true)
  void everyOperation_isThatOfAPlainSet(Cuda cuda) {
    List<MemoryLocation> all = List.of(device(0), device(1), device(2), device(3), HOST);
    Random random = new Random(7);
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      Set<MemoryLocation> places = buffer.accessedBy();
      Set<MemoryLocation> plain = new HashSet<>();
      for (int i = 0; i < 300; i++) {
        MemoryLocation one = all.get(random.nextInt(all.size()));
        Set<MemoryLocation> some = new HashSet<>();
        all.forEach(each -> {
          if (random.nextBoolean()) {
            some.add(each);
          }
        });
        int kind = random.nextInt(8);
        assertThat(done(kind, places, one, some))
            .as("%d of %s or %s in %s", kind, one, some, plain)
            .isEqualTo(done(kind, plain, one, some));
        assertThat(places).isEqualTo(plain);
        assertThat(places.size()).isEqualTo(plain.size());
        assertThat(places.isEmpty()).isEqualTo(plain.isEmpty());
      }
    }
  }

  private static boolean done(
      int kind, Set<MemoryLocation> set, MemoryLocation one, Set<MemoryLocation> some) {
    return switch (kind) {
      case 0 -> set.add(one);
      case 1 -> set.remove(one);
      case 2 -> set.addAll(some);
      case 3 -> set.removeAll(some);
      case 4 -> set.retainAll(some);
      case 5 -> set.removeIf(some::contains);
      case 6 -> set.contains(one);
      default -> set.containsAll(some);
    };
  }
}
