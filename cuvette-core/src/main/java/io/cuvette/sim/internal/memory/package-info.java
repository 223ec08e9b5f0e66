/** The bytes that a device or the host has, and which of them are taken. */
@NullMarked
package io.cuvette.sim.internal.memory;

import org.jspecify.annotations.NullMarked;
