package io.cuvette.instrument.internal.report;

import java.lang.foreign.MemorySegment;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.util.Arrays;
import java.util.StringJoiner;
import org.jspecify.annotations.Nullable;

/** Writes driver calls and their values as text. Stateless. */
public final class CallText {
  private CallText() {}

  /** Returns a call as text, such as {@code memAlloc(device=0, bytes=512)}. */
  public static String of(Method method, Object[] arguments) {
    StringJoiner text = new StringJoiner(", ", method.getName() + "(", ")");
    Parameter[] parameters = method.getParameters();
    for (int i = 0; i < arguments.length; i++) {
      String name = parameters[i].isNamePresent() ? parameters[i].getName() + "=" : "";
      text.add(name + of(arguments[i]));
    }
    return text.toString();
  }

  /** Returns a value as text: addresses and handles, which are large, in hexadecimal. */
  public static String of(@Nullable Object value) {
    return switch (value) {
      case Long number when number < 0 || number >= 1L << 32 -> "0x" + Long.toHexString(number);
      case MemorySegment segment ->
          "0x%x[%d bytes]".formatted(segment.address(), segment.byteSize());
      case int[] numbers -> Arrays.toString(numbers);
      case byte[] bytes -> bytes.length + " bytes";
      case null, default -> String.valueOf(value);
    };
  }
}
