/** The open driver, its devices, and what is current on a thread. */
@NullMarked
package io.cuvette.internal.session;

import org.jspecify.annotations.NullMarked;
