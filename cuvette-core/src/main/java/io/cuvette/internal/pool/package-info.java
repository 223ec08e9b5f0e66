/**
 * What caching pools share: their ends, where chunks come from, limits, and what is done at these.
 */
@NullMarked
package io.cuvette.internal.pool;

import org.jspecify.annotations.NullMarked;
