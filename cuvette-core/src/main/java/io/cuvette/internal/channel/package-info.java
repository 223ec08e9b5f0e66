/** Descriptors, and what passes them over a Unix socket. */
@NullMarked
package io.cuvette.internal.channel;

import org.jspecify.annotations.NullMarked;
