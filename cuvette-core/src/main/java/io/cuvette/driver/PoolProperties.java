package io.cuvette.driver;

/**
 * What a memory pool of the driver is made of (CUmemPoolProps). Immutable.
 *
 * @param allocationType CUmemAllocationType: 1 pinned, meaning not managed, 2 managed
 * @param handleTypes CUmemAllocationHandleType: 0 none, 1 file descriptor, 8 fabric
 * @param locationType CUmemLocationType: 0 none, 1 device, 2 host, 3 host NUMA node
 * @param locationId the device or node; ignored for the host
 * @param maxBytes the size the pool may reach, 0 for the driver's default
 */
public record PoolProperties(
    int allocationType, int handleTypes, int locationType, int locationId, long maxBytes) {}
