package io.cuvette.driver;

/**
 * The block size that fills a device best for a kernel. Immutable.
 *
 * @param minGridBlocks the least number of blocks that fills the device
 * @param blockThreads the threads of a block
 */
public record PotentialBlockSize(int minGridBlocks, int blockThreads) {}
