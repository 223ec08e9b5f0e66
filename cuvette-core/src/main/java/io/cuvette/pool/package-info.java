/**
 * Allocator algorithms on plain longs: which block to hand out, how blocks split and merge. Nothing
 * here calls a driver, knows a stream, or touches the memory that it manages.
 */
@NullMarked
package io.cuvette.pool;

import org.jspecify.annotations.NullMarked;
