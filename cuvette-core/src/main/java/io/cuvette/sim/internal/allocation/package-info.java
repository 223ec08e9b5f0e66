/** The calls that allocate, free and share memory. */
@NullMarked
package io.cuvette.sim.internal.allocation;

import org.jspecify.annotations.NullMarked;
