package io.cuvette.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GraphNodeTypeTest {
  @Test
  void type_hasTheNumberOfItsPlace() {
    for (GraphNodeType type : GraphNodeType.values()) {
      assertThat(GraphNodeType.of(type.ordinal())).isEqualTo(type);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, Integer.MIN_VALUE, 14, Integer.MAX_VALUE})
  void numberOfNoType_isNamed(int value) {
    assertThatThrownBy(() -> GraphNodeType.of(value))
        .isInstanceOf(IllegalStateException.class)
        .hasMessage("CUgraphNodeType: %d (expected: 0 to 13)", value);
  }
}
