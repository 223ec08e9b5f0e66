package io.cuvette.sim.internal.machine;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemHandleType;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The attributes of a simulated device, by CUdevice_attribute: those of an H200. Stateless. */
public final class SimAttributes {
  private static final int PCI_BUS_ID = 33;
  private static final int FIRST_BUS = 0x10;
  private static final int BUS_STEP = 4;
  private static final Pattern PCI_BUS_ID_TEXT =
      Pattern.compile(
          "(?<domain>\\p{XDigit}{1,8}:)?(?<bus>\\p{XDigit}{1,2}):"
              + "(?<slot>\\p{XDigit}{1,2})(?<function>\\.[0-7])?");
  private static final int MULTI_GPU_BOARD_GROUP = 85;
  private static final int CONCURRENT_MANAGED_ACCESS = 89;
  private static final int VIRTUAL_MEMORY = 102;
  private static final int VIRTUAL_FILE_DESCRIPTORS = 103;
  private static final int POOL_HANDLE_TYPES = 119;
  private static final int HOST_NUMA_ID = 134;
  private static final int HOST_NUMA_VIRTUAL = 141;
  private static final int HOST_VIRTUAL = 145;

  // The order of cuda.h, from attribute 1 on, ten a line; those named above depend on the
  // device or on what can be shared.
  private static final int[] VALUES =
      """
      1024 1024 1024 64 2147483647 65535 65535 49152 65536 32
      2147483647 65536 1980000 512 1 132 0 0 1 0
      131072 131072 65536 16384 16384 16384 32768 32768 2048 512
      1 1 0 0 0 3201000 6144 62914560 2048 3
      1 32768 2048 1 32768 32768 8192 8192 32768 0
      32 32768 32768 2046 32768 131072 65536 16384 16384 16384
      32768 2048 32768 32768 2048 32768 32768 2046 268435456 131072
      65000 2097120 32768 32768 9 0 32768 1 1 1
      233472 65536 1 0 0 0 2 0 1 1
      1 0 1 1 1 1 232448 1 1 0
      0 1 1 0 0 32 1 39321600 134217728 1
      1024 1 1 1 1 1 1 100 9 1
      1 1 1 1 1 4 1 1 1 0
      -1 1 1 0 0 0 0 0 590680286 415109342
      1 1 1 1 1 1 0
      """
          .lines()
          .flatMap(line -> Stream.of(line.split(" ", -1)))
          .mapToInt(Integer::parseInt)
          .toArray();

  private SimAttributes() {}

  public static int get(int attribute, SimDevice device, SimMachine machine) {
    if (attribute < 1 || attribute > VALUES.length) {
      throw SimRefusal.invalidValue(
          "attribute: %d (expected: 1 to %d)".formatted(attribute, VALUES.length));
    }
    return switch (attribute) {
      case PCI_BUS_ID -> busOf(device.index);
      case MULTI_GPU_BOARD_GROUP -> device.index;
      case HOST_NUMA_ID -> device.index % machine.options.numaNodes();
      case CONCURRENT_MANAGED_ACCESS -> machine.options.concurrentManaged() ? 1 : 0;
      case VIRTUAL_MEMORY, HOST_NUMA_VIRTUAL, HOST_VIRTUAL ->
          machine.options.virtualMemory() ? 1 : 0;
      case VIRTUAL_FILE_DESCRIPTORS ->
          machine.options.virtualMemory() && machine.sharing.isPossible() ? 1 : 0;
      case POOL_HANDLE_TYPES -> machine.sharing.isPossible() ? MemHandleType.FILE_DESCRIPTOR : 0;
      default -> VALUES[attribute - 1];
    };
  }

  public static int busOf(int device) {
    return FIRST_BUS + BUS_STEP * device;
  }

  public static String pciBusId(int device) {
    return "0000:%02x:00.0".formatted(busOf(device));
  }

  /** The number a device would have for a text such as {@code 0000:14:00.0} or {@code 14:00.0}. */
  public static int deviceAt(String pciBusId) {
    Matcher matcher = PCI_BUS_ID_TEXT.matcher(pciBusId);
    if (!matcher.matches()) {
      throw SimRefusal.invalidValue("pciBusId: '%s' (expected: dddd:bb:dd.f)".formatted(pciBusId));
    }
    int bus = Integer.parseInt(matcher.group("bus"), 16);
    // Domain, slot and function of all devices are 0.
    String others = matcher.replaceFirst("${domain}${slot}${function}");
    if (!others.matches("[0:.]*") || bus < busOf(0) || bus % BUS_STEP != 0) {
      throw new SimRefusal(CudaStatus.INVALID_DEVICE, "no device at " + pciBusId);
    }
    return (bus - busOf(0)) / BUS_STEP;
  }
}
