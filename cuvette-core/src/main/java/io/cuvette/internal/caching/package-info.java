/** The caching pools, of device and of page-locked memory. */
@NullMarked
package io.cuvette.internal.caching;

import org.jspecify.annotations.NullMarked;
