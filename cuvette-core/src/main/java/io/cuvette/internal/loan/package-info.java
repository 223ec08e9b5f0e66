/** What is lent: to code outside of Java, and by the program to the driver. */
@NullMarked
package io.cuvette.internal.loan;

import org.jspecify.annotations.NullMarked;
