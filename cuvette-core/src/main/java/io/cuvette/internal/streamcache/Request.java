package io.cuvette.internal.streamcache;

import io.cuvette.internal.base.Refusals;
import io.cuvette.internal.order.OpenStream;

/**
 * An allocation from a caching pool for which its stream has nothing cached.
 *
 * @param arena where the block belongs
 * @param bytes the requested size
 * @param rounded the size of the block
 * @param stream the stream that it is for
 * @param refusals what upstream threw for want of memory
 */
public record Request(
    BlockCache arena, long bytes, long rounded, OpenStream stream, Refusals refusals) {}
