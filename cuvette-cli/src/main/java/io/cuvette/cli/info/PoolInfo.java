package io.cuvette.cli.info;

import io.cuvette.Cuda;
import io.cuvette.DeviceAttribute;
import io.cuvette.cli.Json;
import io.cuvette.cli.Wrapped;
import java.io.PrintStream;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * What is shown of the driver's pools and of NUMA nodes. Immutable.
 *
 * @param kinds the kinds of pools
 * @param nearest by device the NUMA node of the host it is near to, −1 where that is not known
 */
record PoolInfo(List<PoolProbe.Result> kinds, List<Integer> nearest) {

  static PoolInfo of(Cuda cuda) {
    List<Integer> nearest =
        cuda.devices().stream()
            .map(device -> device.attributes().getOrDefault(DeviceAttribute.HOST_NUMA_ID, -1))
            .toList();
    return new PoolInfo(PoolProbe.all(cuda), nearest);
  }

  /** The nodes that pools can be placed on. */
  private List<Integer> nodes() {
    return kinds.stream()
        .filter(kind -> kind.pool().equals(PoolProbe.HOST_NODE) && kind.available())
        .map(PoolProbe.Result::id)
        .toList();
  }

  void printJson(PrintStream out) {
    for (PoolProbe.Result kind : kinds) {
      out.println(
          new Json()
              .with("kind", "pool")
              .with("pool", kind.pool())
              .with("location", kind.location())
              .with("available", kind.available())
              .with("handleTypes", kind.handleTypes())
              .with("error", kind.error()));
    }
    out.println(
        new Json().with("kind", "numa").with("nodes", nodes()).with("nearestToDevice", nearest));
  }

  void print(PrintStream out) {
    out.println();
    out.println("Pools of the driver");
    for (PoolProbe.Result kind : kinds) {
      String handles = String.join(", ", kind.handleTypes()).replace('-', ' ');
      String text =
          kind.available() ? "yes; handle types: " + handles : "no, " + reason(kind.error());
      line(out, kind.name(), text);
    }
    line(out, "NUMA nodes of the host", text(nodes()));
    for (int device = 0; device < nearest.size(); device++) {
      String node = nearest.get(device) < 0 ? "not known" : "node " + nearest.get(device);
      line(out, "nearest to device " + device, node);
    }
  }

  private static void line(PrintStream out, String name, String value) {
    Wrapped.print(out, "  %-26s ".formatted(name), value);
  }

  private static String reason(@Nullable String error) {
    return String.valueOf(error).toLowerCase(Locale.ROOT).replace('_', ' ');
  }

  private static String text(List<Integer> nodes) {
    String numbers = String.join(", ", nodes.stream().map(String::valueOf).toList());
    return switch (nodes.size()) {
      case 0 -> "none";
      case 1 -> "node " + numbers;
      default -> "nodes " + numbers;
    };
  }
}
