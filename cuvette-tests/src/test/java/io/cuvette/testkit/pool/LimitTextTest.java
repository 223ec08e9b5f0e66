package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.MemoryLimit;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The texts of CUVETTE_GPU_MEMORY_LIMIT. */
class LimitTextTest {
  private static final long DEVICE_BYTES = 1000;

  @ParameterizedTest
  @CsvSource({
    "0, 9223372036854775807",
    "0%, 9223372036854775807",
    "1, 1",
    "1073741824, 1073741824",
    "40%, 400",
    "70.5%, 705",
    "100%, 1000",
    "1KiB, 1024",
    "8GiB, 8589934592",
    "8 GiB, 8589934592",
    "1.5GiB, 1610612736",
    "2GB, 2000000000",
    "3MiB, 3145728",
    "' 512 ', 512",
    "' 50 % ', 500"
  })
  void text_meansItsBytes(String text, long bytes) {
    assertThat(MemoryLimit.parse("LIMIT", text).bytesOf(DEVICE_BYTES)).isEqualTo(bytes);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "0.5",
        "0.9B",
        "1.5",
        "0.0001KiB",
        "-0%",
        "1e-400%",
        "-1",
        "-5%",
        "150%",
        "100.1%",
        "%",
        "many",
        "8 XiB",
        "1e3",
        "NaN%",
        "Infinity%",
        "5%%",
        "9999999999999TiB",
        "0x10",
        "1_000",
        "--",
        "GiB",
        "1GiB%"
      })
  void wrongText_isRefusedWithItsNameAndItself(String text) {
    assertThatThrownBy(() -> MemoryLimit.parse("CUVETTE_GPU_MEMORY_LIMIT", text))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("CUVETTE_GPU_MEMORY_LIMIT")
        .hasMessageContaining("'" + text + "'")
        .hasMessageContaining("expected:");
  }
}
