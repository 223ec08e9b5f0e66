/** Devices, streams, events, memory and pools. */
@NullMarked
package io.cuvette;

import org.jspecify.annotations.NullMarked;
