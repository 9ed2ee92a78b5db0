/* What the run says to whoever refuses its calls. */
#ifndef FREESTONE_TESTS_REFUSED_RUN_H
#define FREESTONE_TESTS_REFUSED_RUN_H

enum { REFUSED_RUN_ENOUGH = 1 }; /* nothing may be refused from now on */

#endif
