package io.cuvette.internal.driverpool;

/** Keeps frees of pools' memory apart from mappings, which a driver gives the freed address. */
public interface MappingOrder {
  /** Runs calls of the driver that free memory of pools while no other thread maps some. */
  void freeing(Runnable calls);
}
