/** Compiles and links code for devices, and keeps what was compiled on disk. */
@NullMarked
package io.cuvette.internal.program;

import org.jspecify.annotations.NullMarked;
