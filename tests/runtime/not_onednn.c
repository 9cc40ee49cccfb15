/* SPDX-License-Identifier: Apache-2.0 */
/* A library with oneDNN's file name and none of its functions. */
__attribute__((visibility("default"))) int compute_not_onednn(void) { return 1; }
