/** The grids of kernels, run thread by thread. */
@NullMarked
package io.cuvette.sim.internal.kernel;

import org.jspecify.annotations.NullMarked;
