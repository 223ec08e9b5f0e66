/** Closed memory that streams and graphs may still use. */
@NullMarked
package io.cuvette.internal.pending;

import org.jspecify.annotations.NullMarked;
