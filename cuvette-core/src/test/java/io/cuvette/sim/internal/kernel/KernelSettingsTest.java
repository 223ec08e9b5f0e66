package io.cuvette.sim.internal.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** The attributes of a kernel that nobody has set, as measured on an H200. */
class KernelSettingsTest {
  private final KernelSettings settings = new KernelSettings();

  private int[] all() {
    int[] all = new int[16];
    for (int attribute = 0; attribute < all.length; attribute++) {
      all[attribute] = settings.get(attribute);
    }
    return all;
  }

  @Test
  void newKernel_hasTheAttributesOfOneOf32Registers() {
    assertThat(all()).containsExactly(1024, 0, 0, 0, 32, 90, 90, 0, 49_152, -1, 0, 0, 0, 0, 0, 0);
  }

  @Test
  void sharedMemoryThatTheCodeDeclares_isLessForTheRest() {
    settings.declare(1000);
    assertThat(all())
        .containsExactly(1024, 1000, 0, 0, 32, 90, 90, 0, 48_152, -1, 0, 0, 0, 0, 0, 0);
  }
}
