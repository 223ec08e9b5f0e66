/** Links C functions, libraries and memory to Java; what is given wrong here crashes the JVM. */
@NullMarked
package io.cuvette.ffm.link;

import org.jspecify.annotations.NullMarked;
