/** Descriptors, files and Unix sockets through the C library of Linux; no CUDA. */
@NullMarked
package io.cuvette.ffm.linux;

import org.jspecify.annotations.NullMarked;
