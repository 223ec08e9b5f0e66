/** The caching pool of device memory. */
@NullMarked
package io.cuvette.internal.devicepool;

import org.jspecify.annotations.NullMarked;
