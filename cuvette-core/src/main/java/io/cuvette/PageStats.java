package io.cuvette;

/**
 * The pages of an {@link ElasticMemoryPool} on one device at one moment. All that it holds is
 * mapped. Immutable.
 *
 * @param pageBytes the size of a page, of which pieces of memory are multiples
 * @param heldPages the pages mapped
 * @param cachedPages those in pieces that no block is in and whose work is done: they can move
 * @param pieces the pieces that the pages are mapped in, each by one allocation of the driver
 * @param movedPieces how many pieces were unmapped so far, for their memory to be elsewhere
 */
public record PageStats(
    long pageBytes, long heldPages, long cachedPages, int pieces, long movedPieces) {}
