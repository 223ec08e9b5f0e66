/** The caching pool of page-locked memory. */
@NullMarked
package io.cuvette.internal.pinnedpool;

import org.jspecify.annotations.NullMarked;
