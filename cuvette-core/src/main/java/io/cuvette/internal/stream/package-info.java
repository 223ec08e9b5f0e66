/** Streams, events, captures and callbacks. */
@NullMarked
package io.cuvette.internal.stream;

import org.jspecify.annotations.NullMarked;
