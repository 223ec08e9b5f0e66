/** What a buffer owns, and memory without a pool. */
@NullMarked
package io.cuvette.internal.block;

import org.jspecify.annotations.NullMarked;
