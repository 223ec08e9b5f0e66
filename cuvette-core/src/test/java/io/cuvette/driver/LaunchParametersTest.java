package io.cuvette.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The table of addresses that a launch is given. */
class LaunchParametersTest {
  private final MemorySegment values = Arena.ofAuto().allocate(16, 8);

  @Test
  void table_hasTheAddressOfEachValue_inTheOrderOfParameters() {
    List<KernelParameter> places =
        new ArrayList<>(
            List.of(
                new KernelParameter(8, 8), new KernelParameter(0, 4), new KernelParameter(4, 4)));
    LaunchParameters parameters = new LaunchParameters(values, places);
    places.clear();
    assertThat(parameters.table().toArray(ValueLayout.JAVA_LONG))
        .containsExactly(values.address() + 8, values.address(), values.address() + 4);
    assertThat(parameters.places()).hasSize(3);
    assertThat(parameters.values()).isSameAs(values);
    assertThat(parameters).hasToString("3 parameters");
    assertThat(parameters.watcher()).isNull();
  }

  @Test
  void withoutParameters_thereIsNoTable() {
    LaunchParameters none = new LaunchParameters(MemorySegment.NULL, List.of());
    assertThat(none.table().address()).isZero();
    assertThat(none.table().byteSize()).isZero();
    assertThat(none).hasToString("0 parameters");
  }

  @Test
  void parameterThatIsNotInTheMemory_isRefused() {
    assertThat(new LaunchParameters(values, List.of(new KernelParameter(15, 1))).places())
        .hasSize(1);
    List<KernelParameter> outside =
        List.of(new KernelParameter(16, 1), new KernelParameter(9, 8), new KernelParameter(0, 17));
    for (KernelParameter each : outside) {
      assertThatThrownBy(() -> new LaunchParameters(values, List.of(each)))
          .isInstanceOf(IndexOutOfBoundsException.class);
    }
    assertThatThrownBy(() -> new LaunchParameters(MemorySegment.ofArray(new long[1]), List.of()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("values: heap segment");
  }
}
