/** What the others stand on: ranges of bytes, files, handles, and how a call is refused. */
@NullMarked
package io.cuvette.sim.internal.base;

import org.jspecify.annotations.NullMarked;
