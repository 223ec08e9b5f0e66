/** Callbacks among the work of streams. */
@NullMarked
package io.cuvette.internal.callback;

import org.jspecify.annotations.NullMarked;
