/** Modules, kernels and launches. */
@NullMarked
package io.cuvette.testkit.kernel;

import org.jspecify.annotations.NullMarked;
