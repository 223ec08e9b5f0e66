package io.cuvette.internal.space;

/**
 * Memory taken out of a free run to be unmapped.
 *
 * @param run in use for that
 * @param bytes of whole pieces
 * @param pieces how many
 */
public record Victim(Space space, int run, long address, long bytes, int pieces) {}
