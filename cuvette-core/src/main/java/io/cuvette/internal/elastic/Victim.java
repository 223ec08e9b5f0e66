package io.cuvette.internal.elastic;

/**
 * Memory taken out of a free run to be unmapped.
 *
 * @param run in use for that
 * @param bytes of whole pieces
 * @param pieces how many
 */
record Victim(Space space, int run, long address, long bytes, int pieces) {}
