/** Checks and helpers that the public packages share. */
@NullMarked
package io.cuvette.internal;

import org.jspecify.annotations.NullMarked;
