package io.cuvette.sim.internal.base;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Reads the names and parameters of kernels from PTX, and remembers those of the last texts, which
 * each driver loads again. Thread-safe.
 */
public final class Ptx {
  private static final Pattern NO_CODE =
      Pattern.compile("\"[^\"\n]*\"|//[^\n]*|/\\*.*?\\*/", Pattern.DOTALL);
  private static final Pattern HEADER =
      Pattern.compile("\\s*\\.version\\s+(\\d{1,6})\\.(\\d{1,6})\\s");
  private static final Pattern TARGET = Pattern.compile("\\.target\\s+sm_(\\d{1,4})(a?)");
  private static final Pattern ENTRY =
      Pattern.compile("\\.entry\\s+([\\w$%]+)\\s*(?:\\(([^)]*)\\))?");

  /** The alignment behind .ptr is that of the memory it points to. */
  private static final Pattern PARAMETER =
      Pattern.compile(
          "\\s*\\.param\\s+(?:\\.align\\s+(\\d{1,3})\\s+)?\\.[a-z]+(8|16|32|64|128)\\s+"
              + "(?:\\.ptr\\s+(?:\\.[a-z]+\\s+(?:\\d+\\s+)?)*)?"
              + "[\\w$%]+\\s*(?:\\[\\s*(\\d{1,9})\\s*\\])?\\s*");

  /** PTX 8 came with CUDA 12, and 9 with 13. */
  private static final int CUDA_BEFORE_PTX = 4;

  /** Where ELF has the version of the cubin's format, the machine, and the architecture. */
  private static final int FORMAT = 8;

  private static final int MACHINE = 18;
  private static final int FLAGS = 48;
  private static final int CUDA = 190;
  private static final int NEW_FORMAT = 8;

  private static final int MOST_READ = 16;

  private static final Map<Text, Map<String, List<KernelParameter>>> READ =
      new ConcurrentHashMap<>();

  private Ptx() {}

  /**
   * The parameters of each kernel, by its name, in the order of the text.
   *
   * @param driverVersion the CUDA version, 1000 × major + 10 × minor: newer PTX is refused
   * @param capability the compute capability of the devices, 10 × major + minor
   */
  public static Map<String, List<KernelParameter>> kernels(
      byte[] image, int driverVersion, int capability) {
    String all = new String(image, StandardCharsets.ISO_8859_1);
    Text text = new Text(all, driverVersion, capability);
    Map<String, List<KernelParameter>> known = READ.get(text);
    if (known == null) {
      known = Collections.unmodifiableMap(read(image, all, driverVersion, capability));
      if (READ.size() >= MOST_READ) {
        READ.clear();
      }
      READ.put(text, known);
    }
    return known;
  }

  /** What kernels are read from, and for. */
  private record Text(String all, int driverVersion, int capability) {}

  private static Map<String, List<KernelParameter>> read(
      byte[] image, String all, int driverVersion, int capability) {
    int end = all.indexOf('\0');
    String text = NO_CODE.matcher(end < 0 ? all : all.substring(0, end)).replaceAll(" ");
    Matcher header = HEADER.matcher(text);
    if (!header.lookingAt()) {
      checkNoCubin(image, capability);
      throw new SimRefusal(
          CudaStatus.INVALID_IMAGE,
          "image: %d bytes (expected: PTX, which starts with .version; no other code is read here)"
              .formatted(image.length));
    }
    checkVersion(
        Integer.parseInt(header.group(1)), Integer.parseInt(header.group(2)), driverVersion);
    checkTarget(text, capability);
    Map<String, List<KernelParameter>> kernels = new LinkedHashMap<>();
    Matcher entry = ENTRY.matcher(text);
    while (entry.find()) {
      String list = entry.group(2);
      boolean isEmpty = list == null || list.isBlank();
      kernels.put(entry.group(1), isEmpty ? List.of() : parameters(entry.group(1), list));
    }
    return kernels;
  }

  private static void checkVersion(int major, int minor, int driverVersion) {
    int cudaMajor = driverVersion / 1000;
    int cudaMinor = driverVersion % 1000 / 10;
    int newestMajor = cudaMajor - CUDA_BEFORE_PTX;
    int newestMinor = cudaMajor == 12 && cudaMinor > 5 ? cudaMinor - 1 : cudaMinor;
    if (major > newestMajor || (major == newestMajor && minor > newestMinor)) {
      throw new SimRefusal(
          CudaStatus.UNSUPPORTED_PTX_VERSION,
          ".version %d.%d (expected: <= %d.%d, that of CUDA %d.%d)"
              .formatted(major, minor, newestMajor, newestMinor, cudaMajor, cudaMinor));
    }
  }

  private static void checkTarget(String text, int capability) {
    Matcher target = TARGET.matcher(text);
    if (target.find()) {
      int wanted = Integer.parseInt(target.group(1));
      boolean isExact = !target.group(2).isEmpty();
      if (wanted > capability || (isExact && wanted != capability)) {
        throw new SimRefusal(
            CudaStatus.INVALID_PTX,
            "%s (expected: sm_%d, the architecture of the device, or an older one)"
                .formatted(target.group(), capability));
      }
    }
  }

  /** Code for another architecture has a status of its own. */
  private static void checkNoCubin(byte[] image, int capability) {
    boolean isCubin =
        image.length > FLAGS + 1
            && image[0] == 0x7F
            && image[1] == 'E'
            && image[2] == 'L'
            && image[3] == 'F'
            && (image[MACHINE] & 0xFF) == CUDA;
    if (isCubin) {
      int wanted = image[image[FORMAT] < NEW_FORMAT ? FLAGS : FLAGS + 1] & 0xFF;
      if (wanted / 10 != capability / 10 || wanted > capability) {
        throw new SimRefusal(
            CudaStatus.NO_BINARY_FOR_GPU,
            "a cubin for sm_%d (expected: sm_%d)".formatted(wanted, capability));
      }
    }
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
