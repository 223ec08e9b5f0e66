/** Copies between memory of the host, by several threads. */
@NullMarked
package io.cuvette.internal.hostcopy;

import org.jspecify.annotations.NullMarked;
