/** Blocks of the driver's pools, which are freed in order of their streams. */
@NullMarked
package io.cuvette.internal.ordered;

import org.jspecify.annotations.NullMarked;
