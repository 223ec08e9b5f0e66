/** Allocates from the driver's pools. */
@NullMarked
package io.cuvette.internal.async;

import org.jspecify.annotations.NullMarked;
