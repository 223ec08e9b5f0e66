package io.cuvette.internal.base;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which texts are sizes and percentages, and of how much. */
class ByteSizeTest {

  @ParameterizedTest
  @CsvSource({
    "0, 0",
    "7, 7",
    "7.0, 7",
    "7.00 B, 7",
    "1.5KiB, 1536",
    "1.3 k, 1331",
    "0.001 KiB, 1",
    "0.001KB, 1",
    "0.0 GiB, 0",
    "1.0005 KB, 1000",
    "0.0009765625 KiB, 1",
    "0.00000095367431640625 MiB, 1",
    "0.00000095367431640626 MiB, 1",
    "1.5 TB, 1500000000000",
    "8388607.999999999 TiB, 9223372036854774708",
    "9223372036854775807, 9223372036854775807"
  })
  void fractionOfALargerUnit_isCutToWholeBytes(String text, long bytes) {
    assertThat(ByteSize.parse("limit", text)).isEqualTo(bytes);
  }

  @ParameterizedTest
  @ValueSource(strings = {"1.5", "0.5 B", "1.000000001b", "0.0009 KiB", "0.0000009 MB"})
  void partsOfAByte_areRefused(String text) {
    assertThatThrownBy(() -> ByteSize.parse("limit", text, ", or 50%"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("limit: '%s' (expected: whole bytes, or 50%%)", text);
  }

  @ParameterizedTest
  @ValueSource(strings = {"8388608 TiB", "9223372036854775808"})
  void moreThanALongHas_isRefused(String text) {
    assertThatThrownBy(() -> ByteSize.parse("limit", text))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("limit: '%s' (expected: less than 8 EiB)", text);
  }

  @ParameterizedTest
  @CsvSource({"0%, 0", "0.00 %, 0", "100%, 1", "100.0%, 1", "12.5 %, 0.125", "0.001%, 0.00001"})
  void percentage_isAFraction(String text, double fraction) {
    assertThat(ByteSize.parsePercent("limit", text).doubleValue()).isEqualTo(fraction);
  }

  /** One that is not 0 is not taken as 0, however small. */
  @ParameterizedTest
  @ValueSource(strings = {"100.0001%", "101%", "-1%", "50", "%", "a%"})
  void otherPercentages_areRefused(String text) {
    assertIsNoPercentage(text);
    assertIsNoPercentage("0." + "0".repeat(400) + "1%");
  }

  private static void assertIsNoPercentage(String text) {
    assertThatThrownBy(() -> ByteSize.parsePercent("limit", text))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("limit: '%s' (expected: 0%% to 100%%)", text);
  }
}
