package io.cuvette.cli.info;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.PoolProperties;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Finds out which pools a driver can make, and which of them can be exported, by making them: the
 * attributes of a device promise more than there is. Stateless.
 */
final class PoolProbe {
  /** Pools of one NUMA node of the host. */
  static final String HOST_NODE = "host-numa";

  private static final String MANAGED_MEMORY = "managed";
  private static final String NOWHERE = "none";
  private static final int PINNED = 1;
  private static final int MANAGED = 2;
  private static final int NO_LOCATION = 0;
  private static final int DEVICE = 1;
  private static final int HOST = 2;
  private static final int HOST_NUMA = 3;
  private static final int DESCRIPTOR = 1;
  private static final int FABRIC = 8;
  private static final int MOST_NODES = 64;

  private final CudaDriver driver;
  private final Optional<DescriptorCalls> descriptors = DescriptorCalls.find();

  private PoolProbe(CudaDriver driver) {
    this.driver = driver;
  }

  /**
   * A kind of pool. Immutable.
   *
   * @param pool device, host, host-numa or managed
   * @param location {@code device 0}, {@code host} or {@code NUMA node 0}; for managed memory what
   *     is preferred; {@code none} if there is none
   * @param id the number of the device or node
   * @param handleTypes what can be asked for: none, file-descriptor, fabric; empty if there is no
   *     such pool
   * @param error why there is none; null if there is
   */
  record Result(
      String pool, String location, int id, List<String> handleTypes, @Nullable String error) {
    boolean available() {
      return error == null;
    }

    /** As people read it. */
    String name() {
      return switch (pool) {
        case HOST_NODE -> location.equals(NOWHERE) ? "host NUMA node" : "host " + location;
        case MANAGED_MEMORY -> location.equals(NOWHERE) ? pool : pool + ", on " + location;
        default -> location;
      };
    }
  }

  /** All kinds; a NUMA node is listed only if a pool can be made there. */
  static List<Result> all(Cuda cuda) {
    PoolProbe probe = new PoolProbe(cuda.driver());
    List<Result> found = new ArrayList<>();
    for (CudaDevice device : cuda.devices()) {
      found.add(probe.kind("device", "device " + device.id(), PINNED, DEVICE, device.id()));
    }
    found.add(probe.kind("host", "host", PINNED, HOST, 0));
    List<Integer> nodes = probe.nodes();
    for (int node : nodes) {
      found.add(probe.kind(HOST_NODE, "NUMA node " + node, PINNED, HOST_NUMA, node));
    }
    if (nodes.isEmpty()) {
      found.add(probe.kind(HOST_NODE, NOWHERE, PINNED, HOST_NUMA, 0));
    }
    found.add(probe.kind(MANAGED_MEMORY, NOWHERE, MANAGED, NO_LOCATION, 0));
    found.add(probe.kind(MANAGED_MEMORY, "device 0", MANAGED, DEVICE, 0));
    found.add(probe.kind(MANAGED_MEMORY, "host", MANAGED, HOST, 0));
    for (int node : nodes) {
      found.add(probe.kind(MANAGED_MEMORY, "NUMA node " + node, MANAGED, HOST_NUMA, node));
    }
    return found;
  }

  private List<Integer> nodes() {
    List<Integer> nodes = new ArrayList<>();
    for (int node = 0; node < MOST_NODES; node++) {
      if (refusal(new PoolProperties(PINNED, 0, HOST_NUMA, node, 0)) == null) {
        nodes.add(node);
      }
    }
    return nodes;
  }

  private Result kind(String name, String location, int allocationType, int locationType, int id) {
    String refusal = refusal(new PoolProperties(allocationType, 0, locationType, id, 0));
    if (refusal != null) {
      return new Result(name, location, id, List.of(), refusal);
    }
    List<String> handles = new ArrayList<>(List.of("none"));
    if (refusal(new PoolProperties(allocationType, DESCRIPTOR, locationType, id, 0)) == null) {
      handles.add("file-descriptor");
    }
    if (refusal(new PoolProperties(allocationType, FABRIC, locationType, id, 0)) == null) {
      handles.add("fabric");
    }
    return new Result(name, location, id, List.copyOf(handles), null);
  }

  /** Makes a pool, exports it if that can be undone, and destroys it; null if all went well. */
  private @Nullable String refusal(PoolProperties properties) {
    try {
      long pool = driver.pools().memPoolCreate(properties);
      try {
        if (properties.handleTypes() == DESCRIPTOR) {
          descriptors.ifPresent(
              calls -> calls.close(driver.sharing().memPoolExportToShareableHandle(pool)));
        }
        return null;
      } finally {
        driver.pools().memPoolDestroy(pool);
      }
    } catch (CudaException e) {
      return e.status().name();
    } catch (UnsupportedOperationException e) {
      return CudaStatus.NOT_SUPPORTED.name();
    }
  }
}
