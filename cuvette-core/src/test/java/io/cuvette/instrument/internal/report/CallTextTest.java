package io.cuvette.instrument.internal.report;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.DeviceCalls;
import io.cuvette.driver.MemoryCalls;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.Method;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** How the arguments and results of calls are written. */
class CallTextTest {
  private static void assertText(@Nullable Object value, String text) {
    assertThat(CallText.of(value)).isEqualTo(text);
  }

  @Test
  void numbers_areDecimalUpTo32Bits_andAddressesBeyond() {
    assertText(0L, "0");
    assertText((1L << 32) - 1, "4294967295");
    assertText(1L << 32, "0x100000000");
    assertText(0x7f00_0000_0000L, "0x7f0000000000");
    assertText(-1L, "0xffffffffffffffff");
    assertText(Long.MIN_VALUE, "0x8000000000000000");
    assertText(-1, "-1");
  }

  /** Names are there if the compiler kept them. */
  @Test
  void calls_haveTheNamesOfTheirArguments() throws NoSuchMethodException {
    Method call = MemoryCalls.class.getMethod("memAlloc", int.class, long.class);
    boolean named = call.getParameters()[0].isNamePresent();
    assertThat(CallText.of(call, new Object[] {0, 512L}))
        .isEqualTo(named ? "memAlloc(device=0, bytes=512)" : "memAlloc(0, 512)");
    Method none = DeviceCalls.class.getMethod("deviceGetCount");
    assertThat(CallText.of(none, new Object[0])).isEqualTo("deviceGetCount()");
  }

  @Test
  void otherValues_areWrittenByWhatTheyAre() {
    assertText(null, "null");
    assertText("text", "text");
    assertText(new int[] {1, 2}, "[1, 2]");
    assertText(new byte[3], "3 bytes");
    assertText(MemorySegment.ofAddress(0x1000), "0x1000[0 bytes]");
  }
}
