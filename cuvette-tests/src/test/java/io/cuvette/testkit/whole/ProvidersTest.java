package io.cuvette.testkit.whole;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CompilerCalls;
import io.cuvette.driver.ForeignCalls;
import io.cuvette.driver.LinkerCalls;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What the module of the driver provides is found, whether its libraries are there or not. */
@Tag("simulated")
class ProvidersTest {
  @Test
  void callsOfTheModuleOfTheDriver_areFound() {
    assertThat(CompilerCalls.find()).isPresent();
    assertThat(ForeignCalls.find()).isPresent();
    assertThat(LinkerCalls.all()).hasSize(2);
  }
}
