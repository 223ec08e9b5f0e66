/** Copies and fills. */
@NullMarked
package io.cuvette.internal.transfer;

import org.jspecify.annotations.NullMarked;
