package io.cuvette.internal.paged;

/**
 * What other processes import a part of memory by.
 *
 * @param offset where the part begins in the pages, in bytes
 */
public record PageExport(long offset, PageFiles files) {}
