/** The block index of a caching pool, on numbers alone. */
@NullMarked
package io.cuvette.internal.index;

import org.jspecify.annotations.NullMarked;
