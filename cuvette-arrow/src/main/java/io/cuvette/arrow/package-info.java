/**
 * Columns of Apache Arrow on devices. A {@link io.cuvette.arrow.DeviceVector} is to memory of a
 * device what a vector of Arrow is to that of the host; an {@link
 * io.cuvette.arrow.ArrowDeviceArray} is the structure by which libraries in one process hand such
 * columns to each other.
 */
@NullMarked
package io.cuvette.arrow;

import org.jspecify.annotations.NullMarked;
