/** Memory of other processes. */
@NullMarked
package io.cuvette.internal.share;

import org.jspecify.annotations.NullMarked;
