package io.cuvette.driver;

/**
 * The memory of a device at one moment. Immutable.
 *
 * @param freeBytes bytes the driver could still give
 * @param totalBytes bytes of the device
 */
public record MemoryInfo(long freeBytes, long totalBytes) {}
