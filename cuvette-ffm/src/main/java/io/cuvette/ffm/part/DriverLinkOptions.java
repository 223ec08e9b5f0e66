package io.cuvette.ffm.part;

import static io.cuvette.ffm.link.Layouts.INT;
import static io.cuvette.ffm.link.Layouts.POINTER;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Options and inputs of nvJitLink as the driver's linker knows them. Not thread-safe. */
final class DriverLinkOptions {
  /** CU_JIT_INPUT_PTX. */
  static final int PTX = 1;

  /** CUjitInputType of each nvJitLinkInputType: cubin, PTX, none for LTO-IR, fatbin and so on. */
  private static final int[] INPUTS = {-1, 0, PTX, -1, 2, 3, 4};

  private static final int MAX_REGISTERS = 0;
  private static final int OPTIMIZATION_LEVEL = 7;
  private static final int TARGET = 9;
  private static final int DEBUG = 11;
  private static final int VERBOSE = 12;
  private static final int LINE_INFO = 13;

  private static final Pattern ARCHITECTURE = Pattern.compile("-arch=sm_([1-9][0-9]+)([af]?)");
  private static final Pattern REGISTERS = Pattern.compile("-maxrregcount=([1-9][0-9]{0,2})");

  /** CU_COMPUTE_ACCELERATED_TARGET_BASE. */
  private static final int ACCELERATED = 0x10000;

  /** CU_COMPUTE_FAMILY_TARGET_BASE. */
  private static final int FAMILY = 0x20000;

  private final Map<Integer, Long> options = new TreeMap<>();

  private DriverLinkOptions() {}

  /**
   * Options of nvJitLink.
   *
   * @throws UnsupportedOperationException if they ask for LTO-IR, or for PTX
   * @throws IllegalArgumentException for one that the driver's linker does not have
   */
  static DriverLinkOptions of(List<String> arguments) {
    if (arguments.contains("-lto") || arguments.contains("-ptx")) {
      throw new UnsupportedOperationException("the driver's linker does not link LTO-IR");
    }
    DriverLinkOptions result = new DriverLinkOptions();
    arguments.forEach(result::add);
    return result;
  }

  private void add(String argument) {
    Matcher architecture = ARCHITECTURE.matcher(argument);
    Matcher registers = REGISTERS.matcher(argument);
    if (architecture.matches()) {
      add(TARGET, Long.parseLong(architecture.group(1)) + base(architecture.group(2)));
    } else if (registers.matches()) {
      add(MAX_REGISTERS, Integer.parseInt(registers.group(1)));
    } else {
      switch (argument) {
        case "-g" -> add(DEBUG, 1);
        case "-lineinfo" -> add(LINE_INFO, 1);
        case "-verbose" -> add(VERBOSE, 1);
        case "-O0", "-O1", "-O2", "-O3" -> add(OPTIMIZATION_LEVEL, argument.charAt(2) - '0');
        default ->
            throw new IllegalArgumentException(
                ("option: %s (expected: one of -g, -lineinfo, -verbose, -O0 to -O3 and"
                     + " -maxrregcount, which the driver's linker has; nvJitLink, which has more,"
                     + " is not used here)")
                    .formatted(argument));
      }
    }
  }

  private static int base(String suffix) {
    return switch (suffix) {
      case "a" -> ACCELERATED;
      case "f" -> FAMILY;
      default -> 0;
    };
  }

  /** Adds an option with its value. */
  void add(int option, long value) {
    options.put(option, value);
  }

  /** How many there are. */
  int count() {
    return options.size();
  }

  /** The numbers of the options. */
  MemorySegment names() {
    MemorySegment names = Arena.ofAuto().allocate(INT, options.size());
    int next = 0;
    for (int option : options.keySet()) {
      names.setAtIndex(INT, next++, option);
    }
    return names;
  }

  /** Their values, in the same order. */
  MemorySegment values() {
    MemorySegment values = Arena.ofAuto().allocate(POINTER, options.size());
    int next = 0;
    for (long value : options.values()) {
      values.setAtIndex(POINTER, next++, value);
    }
    return values;
  }

  /** The CUjitInputType of an nvJitLinkInputType. */
  static int inputType(int type) {
    int kind = type < 0 || type >= INPUTS.length ? -1 : INPUTS[type];
    if (kind < 0) {
      throw new IllegalArgumentException(
          "type: %d (expected: 1, 2, 4, 5 or 6, which the driver links)".formatted(type));
    }
    return kind;
  }
}
