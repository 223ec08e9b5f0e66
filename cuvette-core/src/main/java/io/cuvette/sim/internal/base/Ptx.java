package io.cuvette.sim.internal.base;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Reads the names and parameters of kernels from PTX. Stateless. */
public final class Ptx {
  private static final Pattern NO_CODE =
      Pattern.compile("\"[^\"\n]*\"|//[^\n]*|/\\*.*?\\*/", Pattern.DOTALL);
  private static final Pattern HEADER = Pattern.compile("\\s*\\.version\\s+\\d+\\.\\d+\\s");
  private static final Pattern ENTRY =
      Pattern.compile("\\.entry\\s+([\\w$%]+)\\s*(?:\\(([^)]*)\\))?");

  /** The alignment behind .ptr is that of the memory it points to. */
  private static final Pattern PARAMETER =
      Pattern.compile(
          "\\s*\\.param\\s+(?:\\.align\\s+(\\d{1,3})\\s+)?\\.[a-z]+(8|16|32|64|128)\\s+"
              + "(?:\\.ptr\\s+(?:\\.[a-z]+\\s+(?:\\d+\\s+)?)*)?"
              + "[\\w$%]+\\s*(?:\\[\\s*(\\d{1,9})\\s*\\])?\\s*");

  private Ptx() {}

  /** The parameters of each kernel, by its name, in the order of the text. */
  public static Map<String, List<KernelParameter>> kernels(byte[] image) {
    String all = new String(image, StandardCharsets.ISO_8859_1);
    int end = all.indexOf('\0');
    String text = NO_CODE.matcher(end < 0 ? all : all.substring(0, end)).replaceAll(" ");
    if (!HEADER.matcher(text).lookingAt()) {
      throw new SimRefusal(
          CudaStatus.INVALID_IMAGE,
          "image: %d bytes (expected: PTX, which starts with .version; no other code is read here)"
              .formatted(image.length));
    }
    Map<String, List<KernelParameter>> kernels = new LinkedHashMap<>();
    Matcher entry = ENTRY.matcher(text);
    while (entry.find()) {
      String list = entry.group(2);
      boolean isEmpty = list == null || list.isBlank();
      kernels.put(entry.group(1), isEmpty ? List.of() : parameters(entry.group(1), list));
    }
    return kernels;
  }

  private static List<KernelParameter> parameters(String kernel, String list) {
    List<KernelParameter> result = new ArrayList<>();
    long end = 0;
    for (String text : list.split(",", -1)) {
      Matcher parameter = PARAMETER.matcher(text);
      if (!parameter.matches()) {
        throw new SimRefusal(
            CudaStatus.INVALID_PTX,
            "parameter %d of kernel %s: %s (expected: such as .param .u64 name)"
                .formatted(result.size(), kernel, text.strip()));
      }
      long element = Long.parseLong(parameter.group(2)) / Byte.SIZE;
      long size = element * number(parameter.group(3));
      long align = Math.max(element, number(parameter.group(1)));
      long offset = (end + align - 1) / align * align;
      result.add(new KernelParameter(offset, size));
      end = offset + size;
    }
    return List.copyOf(result);
  }

  /** The value of digits; 1 where there are none. */
  private static long number(@Nullable String digits) {
    return digits == null ? 1 : Long.parseLong(digits);
  }
}
