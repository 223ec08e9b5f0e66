/** The kernels of this module: their names, arguments and launches. */
@NullMarked
package io.cuvette.array.internal.kernel;

import org.jspecify.annotations.NullMarked;
