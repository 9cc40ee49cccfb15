/* SPDX-License-Identifier: Apache-2.0 */
/* A library to link with that is not there at run time. */
void FUNCTION(void);
void FUNCTION(void) {}
