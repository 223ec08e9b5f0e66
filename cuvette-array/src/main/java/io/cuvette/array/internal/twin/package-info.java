/** What the kernels do, in Java: for the simulated device and for arrays on the host. */
@NullMarked
package io.cuvette.array.internal.twin;

import org.jspecify.annotations.NullMarked;
