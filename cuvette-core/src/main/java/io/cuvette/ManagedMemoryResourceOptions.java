package io.cuvette;

import io.cuvette.driver.MemLocationType;
import io.cuvette.internal.session.Device;
import java.util.Objects;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/**
 * How the new pool of a {@link ManagedMemoryResource} is made: where its memory is kept preferably.
 * Immutable.
 *
 * <table>
 * <caption>What the two mean together; anything else is refused</caption>
 * <tr><th>type</th><th>location</th><th>the memory is preferably kept</th></tr>
 * <tr><td>none</td><td>none</td><td>nowhere</td></tr>
 * <tr><td>none</td><td>−1</td><td>on the host</td></tr>
 * <tr><td>none</td><td>at least 0</td><td>on that device</td></tr>
 * <tr><td>DEVICE</td><td>at least 0</td><td>on that device</td></tr>
 * <tr><td>HOST</td><td>none</td><td>on the host</td></tr>
 * <tr><td>HOST_NUMA</td><td>at least 0</td><td>on that NUMA node of the host</td></tr>
 * <tr><td>HOST_NUMA</td><td>none</td><td>on the NUMA node nearest to the current device</td></tr>
 * </table>
 *
 * @param preferredLocationType the kind of place; null if the location implies it
 * @param preferredLocation the device or node; empty where the kind of place needs none
 */
public record ManagedMemoryResourceOptions(
    @Nullable LocationType preferredLocationType, OptionalInt preferredLocation) {

  /** Kinds of places. */
  public enum LocationType {
    /** A device. */
    DEVICE,
    /** The host. */
    HOST,
    /** A NUMA node of the host. */
    HOST_NUMA
  }

  /** No preference. */
  public static final ManagedMemoryResourceOptions DEFAULTS =
      new ManagedMemoryResourceOptions(null, OptionalInt.empty());

  /** Creates options. */
  public ManagedMemoryResourceOptions {
    Objects.requireNonNull(preferredLocation, "preferredLocation");
    String rule = brokenRule(preferredLocationType, preferredLocation);
    if (rule != null) {
      throw new IllegalArgumentException(
          "preferred location: %s of type %s (expected: %s)"
              .formatted(
                  preferredLocation.isPresent() ? preferredLocation.getAsInt() : "none",
                  preferredLocationType == null ? "none" : preferredLocationType,
                  rule));
    }
  }

  private static @Nullable String brokenRule(@Nullable LocationType type, OptionalInt location) {
    int id = location.orElse(0);
    return switch (type) {
      case null ->
          id < MemLocationType.HOST_AS_DEVICE ? "a device, -1 for the host, or none" : null;
      case DEVICE -> location.isEmpty() || id < 0 ? "a device, >= 0" : null;
      case HOST -> location.isPresent() ? "none" : null;
      case HOST_NUMA -> id < 0 ? "a NUMA node, >= 0, or none" : null;
    };
  }

  /**
   * {@return the options for a type and a location}
   *
   * @param type the type of place; null for a device or −1
   * @param location the number of the device or node; −1 for the host where there is no type
   */
  public static ManagedMemoryResourceOptions of(@Nullable LocationType type, int location) {
    return new ManagedMemoryResourceOptions(type, OptionalInt.of(location));
  }

  /**
   * {@return these options with a preferred place}
   *
   * @param location a device, the host, or a NUMA node of it; null for no preference
   */
  public ManagedMemoryResourceOptions withPreferredLocation(@Nullable MemoryLocation location) {
    return switch (location) {
      case null -> DEFAULTS;
      case MemoryLocation.Device device -> of(LocationType.DEVICE, device.id());
      case MemoryLocation.Host _ -> withHost();
      case MemoryLocation.HostNuma node -> of(LocationType.HOST_NUMA, node.id());
      case MemoryLocation.HostNumaCurrent _ ->
          throw new IllegalArgumentException(
              "preferred location: the current NUMA node (expected: a certain one, or withHostNuma"
                  + " for that of the current device)");
    };
  }

  /**
   * {@return these options with a preferred place}
   *
   * @param location the number of a device, or −1 for the host
   */
  public ManagedMemoryResourceOptions withPreferredLocation(int location) {
    return of(null, location);
  }

  /** {@return these options with the host as the preferred place} */
  public ManagedMemoryResourceOptions withHost() {
    return new ManagedMemoryResourceOptions(LocationType.HOST, OptionalInt.empty());
  }

  /**
   * {@return these options with the NUMA node of the host that is nearest to the current device}
   */
  public ManagedMemoryResourceOptions withHostNuma() {
    return new ManagedMemoryResourceOptions(LocationType.HOST_NUMA, OptionalInt.empty());
  }

  /** Returns the location, resolved with the attributes of the current device; null for none. */
  @Nullable MemoryLocation resolve(Device current) {
    return switch (preferredLocationType) {
      case null -> preferredLocation.isEmpty() ? null : untyped(preferredLocation.getAsInt());
      case DEVICE -> new MemoryLocation.Device(preferredLocation.getAsInt());
      case HOST -> MemoryLocation.host();
      case HOST_NUMA ->
          MemoryLocation.hostNuma(
              preferredLocation.isPresent() ? preferredLocation.getAsInt() : nearestNode(current));
    };
  }

  private static MemoryLocation untyped(int location) {
    return location == MemLocationType.HOST_AS_DEVICE
        ? MemoryLocation.host()
        : new MemoryLocation.Device(location);
  }

  private static int nearestNode(Device device) {
    int node = device.nearestNode();
    if (node < 0) {
      throw new IllegalStateException(
          "%s has no NUMA node of the host near it: name a node, or make another device current"
              .formatted(device));
    }
    return node;
  }
}
