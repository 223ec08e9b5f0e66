/** Calls as text, their traces, and the mistakes that were found. */
@NullMarked
package io.cuvette.instrument.internal.report;

import org.jspecify.annotations.NullMarked;
