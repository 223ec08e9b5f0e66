/** Modules, their kernels, and launches. */
@NullMarked
package io.cuvette.internal.kernel;

import org.jspecify.annotations.NullMarked;
