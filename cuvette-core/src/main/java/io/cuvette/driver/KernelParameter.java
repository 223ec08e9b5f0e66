package io.cuvette.driver;

/**
 * Where a parameter of a kernel lies in the packed arguments. Immutable.
 *
 * @param offset the distance from the first byte of the arguments, in bytes
 * @param size the size in bytes
 */
public record KernelParameter(long offset, long size) {}
